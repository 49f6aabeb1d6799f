"""Operations with a state of fixed size: state space models, linear attention, gated recurrence; and Fourier mixing."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import ClassVar

from paramcount.errors import ParamcountError
from paramcount.flow.graph import Data, Size, Weight, as_axes, multiply
from paramcount.flow.operation import Array, Form, Operation, Pass, Shape, Unknown, is_known, np, require
from paramcount.flow.operations.elementwise import sigmoid, softplus
from paramcount.flow.operations.linear import Linear
from paramcount.flow.operations.relations import find_alibi_slopes


class Fourier(Operation, name="Fourier transform", saves_inputs=False):
    """The real part of the Fourier transform over all tokens and over the last axis. Source: arXiv:2105.03824 §3.2."""

    phrase: ClassVar[str] = "real part, over all tokens and over the last axis"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return np.fft.fft2(inputs[0]).real.astype(np.float32)


def fourier(x: Data) -> Data:
    return Data(Fourier(), (x,), x.shape)


class SelectiveScan(Operation, name="scan", form=Form.STATE_SPACE, state_in_float32=True):
    """Mamba 1: a state [*channels, d_state], h = exp(dt·A)·h + dt·B·u, y = C·h + D·u, dt = softplus(step).

    Inputs: u and step [n, *channels], B and C [n, d_state], or [n, heads, d_state] if channels are (heads, d_head).
    Weights: A_log, D. Source: arXiv:2312.00752 §3.
    """

    phrase: ClassVar[str] = "recurrent state, updated per token"
    channels: Size
    d_state: Size

    @property
    def state_shapes(self) -> tuple[tuple[Size, ...], ...]:
        return ((*as_axes(self.channels), self.d_state),)

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        u, step, b, c = inputs
        a, d = -np.exp(weights[0]), weights[1]
        delta, b, c = softplus(step)[..., None], b[..., None, :], c[..., None, :]
        state = run.state.get("state", np.zeros(a.shape, np.float32))
        y = np.empty(u.shape, np.float32)
        for t in range(len(u)):
            state = np.exp(delta[t] * a) * state + delta[t] * b[t] * u[t][..., None]
            y[t] = (state * c[t]).sum(-1)
        run.state["state"] = state.astype(np.float32)
        return y + u * d


class StateSpaceDual(Operation, name="scan", form=Form.STATE_SPACE, state=("heads", "d_head", "d_state")):
    """Mamba 2: a state [heads, d_head, d_state] per token with one decay per head; groups of heads share B and C.

    Inputs: u [n, heads · d_head], step [n, heads], B and C [n, groups · d_state]. Weights: dt_bias, A_log, D.
    Source: arXiv:2405.21060 §7.
    """

    phrase: ClassVar[str] = "recurrent state, updated per token"
    state_in_float32: ClassVar[bool] = True
    heads: Size
    d_head: Size
    d_state: Size
    limit: tuple[float, float] | Unknown = (0.0, float("inf"))  # of the step, after the softplus

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        u, step, b, c = inputs
        heads, d_head, d_state = int(self.heads), int(self.d_head), int(self.d_state)
        dt_bias, a_log, d = weights
        delta = np.clip(softplus(step + dt_bias), *require(self.limit))
        u = u.reshape(len(u), heads, d_head)
        groups = b.shape[-1] // d_state
        b, c = (np.repeat(x.reshape(len(x), groups, d_state), heads // groups, axis=1) for x in (b, c))
        decay = np.exp(delta * -np.exp(a_log))
        state = run.state.get("state", np.zeros((heads, d_head, d_state), np.float32))
        y = np.empty(u.shape, np.float32)
        for t in range(len(u)):
            state = decay[t, :, None, None] * state + (delta[t, :, None] * u[t])[..., None] * b[t, :, None, :]
            y[t] = (state @ c[t, :, :, None])[..., 0]
        run.state["state"] = state.astype(np.float32)
        return np.asarray((y + u * d[:, None]).reshape(len(u), *shape[1:]))


class DeltaRule(Operation, name="delta rule", form=Form.LINEAR_ATTENTION, state=("heads", "d_k", "d_v")):
    """A state S [heads, d_k, d_v]: S = exp(g)·S, then S += β·k·(v − kᵀS)ᵀ; y = Sᵀq / √d_k.

    g = −exp(A_log)·softplus(step + dt_bias), or floor·sigmoid(exp(A_log)·(step + dt_bias)) if there is a floor.

    Inputs: q and k [n, groups, d_k], v [n, heads, d_v], step [n, heads] or [n, heads, d_k], β [n, heads]; groups of
    heads share q and k. Weights: A_log, dt_bias.

    Source: arXiv:2412.06464 §3; with one decay per channel arXiv:2510.26692 §3.
    """

    state_in_float32: ClassVar[bool] = True
    heads: Size
    d_k: Size
    d_v: Size
    floor: float | Unknown | None = None  # of the logarithm of the decay

    def describe(self) -> str:
        text = "recurrent state, updated per token by the delta rule"
        return text if self.floor is None or not is_known(self.floor) else f"{text}, log decay above {self.floor:g}"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        q, k, v, step, beta = inputs
        heads, d_k, d_v = int(self.heads), int(self.d_k), int(self.d_v)
        q, k = (np.repeat(x, heads // x.shape[1], axis=1) for x in (q / np.float32(sqrt(d_k)), k))
        step = step + weights[1].reshape(step.shape[1:])
        rate = np.exp(weights[0]).reshape(heads, *(1,) * (step.ndim - 2))
        floor = require(self.floor)
        log_decay = -rate * softplus(step) if floor is None else np.float32(floor) * sigmoid(rate * step)
        decay = np.exp(log_decay).reshape(len(v), heads, -1, 1)
        state = run.state.get("state", np.zeros((heads, d_k, d_v), np.float32))
        y = np.empty(v.shape, np.float32)
        for t in range(len(v)):
            state = decay[t] * state
            change = beta[t, :, None] * (v[t] - (k[t, :, None, :] @ state)[:, 0])
            state = state + k[t, :, :, None] * change[:, None, :]
            y[t] = (q[t, :, None, :] @ state)[:, 0]
        run.state["state"] = state.astype(np.float32)
        return y


class LinearAttention(Operation, name="scan", form=Form.LINEAR_ATTENTION, state=("heads", "d_k", "d_v")):
    """A state S [heads, d_k, d_v] with a fixed decay per head: S = exp(−slope)·S + k·vᵀ, y = Sᵀq.

    Inputs: q, k and v [n, heads, d]. Weights: the slopes [heads, 1, 1], if the checkpoint stores them, and values
    derived from them; else they are those of ALiBi, times 1 − layer / (n_layers − 1) + 1e-5.
    Source: arXiv:2501.08313 §2.2; MiniMaxText01Model in modeling_minimax_text_01.py of MiniMaxAI/MiniMax-Text-01.
    """

    phrase: ClassVar[str] = "recurrent state with a fixed decay per head, updated per token"
    heads: Size
    d_k: Size
    d_v: Size
    n_layers: Size | None = None

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        q, k, v = inputs
        decay = np.exp(-(weights[0].reshape(-1, 1, 1) if weights else self.find_slopes(run.layer)))
        state = run.state.get("state", np.zeros((q.shape[1], q.shape[2], v.shape[2]), np.float32))
        y = np.empty(v.shape, np.float32)
        for t in range(len(v)):
            state = decay * state + k[t, :, :, None] * v[t, :, None, :]
            y[t] = (q[t, :, None, :] @ state)[:, 0]
        run.state["state"] = state.astype(np.float32)
        return y

    def find_slopes(self, layer: int) -> Array:
        if self.n_layers is None:
            raise ParamcountError("the checkpoint does not contain the decays of linear attention")
        slopes = find_alibi_slopes(int(self.heads)) * (1 - layer / (int(self.n_layers) - 1) + 1e-5)
        return slopes.astype(np.float32).reshape(-1, 1, 1)


class Recurrence(Operation, name="scan"):
    """A state that fades by gates; what it computes per token is not counted as work."""

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return 0


class GatedUnit(Recurrence, form=Form.STATE_SPACE, state=("channels",), state_in_float32=True):
    """RG-LRU: h = a·h + √(1 − a²)·(i·u) per channel, a = exp(−8·r·softplus(Λ)); the first token enters whole.

    Inputs: u [n, channels], the input gate i and the recurrence gate r, as long. Weight: Λ. Source: arXiv:2402.19427
    §2.4.
    """

    phrase: ClassVar[str] = "recurrent state, updated per token"
    channels: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        u, enters, stays = (x.reshape(len(x), -1) for x in inputs)
        log_decay, is_first = -8 * stays * softplus(weights[0]), run.positions[:, None] == 0
        share = np.where(is_first, 1, np.sqrt(1 - np.exp(2 * log_decay)))
        decay, added = np.where(is_first, 0, np.exp(log_decay)), (u * enters * share).astype(np.float32)
        state, y = run.state.get("state", np.zeros(u.shape[1], np.float32)), np.empty(u.shape, np.float32)
        for t in range(len(u)):
            y[t] = state = decay[t] * state + added[t]
        run.state["state"] = state.astype(np.float32)
        return y.reshape(len(u), *shape[1:])


class ExponentialMean(Recurrence, form=Form.LINEAR_ATTENTION, state_in_float32=True):
    """RWKV-4: y = (S + exp(u + k)·v) / (z + exp(u + k)), S = exp(−exp(w))·S + exp(k)·v, and z likewise with 1 for v.

    Inputs: the logarithms k of the weights and the values v, [n, channels]. Weights: the decay w and the bonus u of the
    token itself. Sums are kept relative to the largest exponent. Source: arXiv:2305.13048 §3.1.
    """

    phrase: ClassVar[str] = "recurrent state with exponential gates, updated per token"
    channels: Size

    @property
    def state_shapes(self) -> tuple[tuple[Size, ...], ...]:
        return ((3, self.channels),)

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (k, v), (rate, bonus) = inputs, weights
        empty = np.array([0, 0, -1e38], np.float32)[:, None] + 0 * rate
        (sums, total, largest), decay = run.state.get("state", empty), np.exp(rate)
        y = np.empty(v.shape, np.float32)
        for t in range(len(k)):
            peak = np.maximum(largest, k[t] + bonus)
            old, new = np.exp(largest - peak), np.exp(k[t] + bonus - peak)
            y[t] = (old * sums + new * v[t]) / (old * total + new)
            peak = np.maximum(largest - decay, k[t])
            old, new = np.exp(largest - decay - peak), np.exp(k[t] - peak)
            sums, total, largest = old * sums + new * v[t], old * total + new, peak
        run.state["state"] = np.stack((sums, total, largest)).astype(np.float32)
        return y


class MatrixMemory(Recurrence, form=Form.LINEAR_ATTENTION):
    """mLSTM: y = Sᵀq / max(|z·q|, 1), S = σ(f)·S + exp(i)·k·vᵀ, q divided by √d_k, and z likewise with 1 for v.

    Inputs: q, k and v [n, heads, d], the input gate i and the forget gate f [n, heads], both before their functions.
    Sums are kept relative to the largest exponent. Source: arXiv:2405.04517 §2.3.
    """

    phrase: ClassVar[str] = "recurrent state with exponential gates, updated per token"
    heads: Size
    d_k: Size
    d_v: Size
    eps: float | Unknown  # added to the divisor

    @property
    def state_shapes(self) -> tuple[tuple[Size, ...], ...]:
        return (self.heads, self.d_k, self.d_v), (self.heads, self.d_k), (self.heads, 1)

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        q, k, v, enters, stays = inputs
        sizes = [tuple(int(n) for n in size) for size in self.state_shapes]
        sums, total, largest = (run.state.get(str(i), np.zeros(size, np.float32)) for i, size in enumerate(sizes))
        log_decay, eps = -softplus(-stays)[..., None], np.float32(require(self.eps))
        q, y = q / np.float32(sqrt(q.shape[-1])), np.empty(v.shape, np.float32)
        for t in range(len(q)):
            peak = np.maximum(log_decay[t] + largest, enters[t, :, None])
            old, new = np.exp(log_decay[t] + largest - peak), np.exp(enters[t, :, None] - peak)
            sums = old[..., None] * sums + new[..., None] * k[t, :, :, None] * v[t, :, None, :]
            total, largest = old * total + new * k[t], peak
            scale = np.abs((total * q[t]).sum(-1, keepdims=True))
            y[t] = (q[t, :, None, :] @ sums)[:, 0] / (np.maximum(scale, np.exp(-largest)) + eps)
        run.state.update({str(i): x.astype(np.float32) for i, x in enumerate((sums, total, largest))})
        return y


class Lstm(Recurrence, phrase="LSTM, updated per row", form=Form.STATE_SPACE):
    """c = σ(f)·c + σ(i)·tanh(g), h = σ(o)·tanh(c), where W·h + b plus the input, [n, 4 · d], is cut into i, f, g and o.

    All rows are read at once, so no state is kept. Weights: W [4 · d, d], b. Source: torch.nn.LSTM;
    doi:10.1162/neco.1997.9.8.1735.
    """

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return int(out[0] * multiply(weights[0]))

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,), (matrix, bias) = inputs, weights
        state = cell = np.zeros(matrix.shape[1], np.float32)
        y = np.empty((len(x), *shape[1:]), np.float32)
        for t in range(len(x)):
            enters, stays, new, leaves = np.split(x[t] + matrix @ state + bias, 4)
            cell = sigmoid(stays) * cell + sigmoid(enters) * np.tanh(new)
            y[t] = state = sigmoid(leaves) * np.tanh(cell)
        return y


def lstm(x: Data, prefix: str, i: int) -> Data:
    """Layer i of an LSTM, over rows that are read at once: [n, d] to [n, d]."""
    d = x.shape[-1]
    first, second = (
        (Weight(f"{prefix}weight_{of}_l{i}", "mixer", (4 * d, d)), Weight(f"{prefix}bias_{of}_l{i}", "mixer", (4 * d,)))
        for of in ("ih", "hh")
    )
    gates = Data(Linear(), (x,), (x.shape[0], 4 * d), first)
    return Data(Lstm(), (gates,), x.shape, second)
