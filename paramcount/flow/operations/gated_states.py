"""Recurrent states of linear attention whose decays are inputs, fixed or absent, and memory slots."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import ClassVar

from paramcount.flow.graph import Data, Size, Weight, make_step, multiply
from paramcount.flow.operation import Array, Form, Operation, Pass, Shape, np
from paramcount.flow.operations.elementwise import softplus
from paramcount.flow.operations.recurrence import Recurrence


@make_step("log sigmoid", phrase="logarithm of the decay: log sigmoid(x) / {divisor:g}")
def log_decay(x: Array, divisor: float = 1.0) -> Array:
    """The logarithm of a decay between 0 and 1. `divisor`: brings it close to 0, the decay to 1."""
    return -softplus(-x) / np.float32(divisor)


@make_step("1 − eˣ", phrase="the share that the decay frees")
def one_minus_exp(x: Array) -> Array:
    """1 minus a decay, of which x is the logarithm."""
    return -np.expm1(x)


@make_step("−eˣ", phrase="logarithm of the decay")
def minus_exp(x: Array) -> Array:
    """The logarithm of a decay exp(−exp(x))."""
    return -np.exp(x)


@make_step("divide by the sum", phrase="divided by the sum of the vector")
def divide_by_sum(x: Array, least: float = 0.0) -> Array:
    """Vectors divided by their sum. `least`: is added to the sum."""
    return np.asarray(x / (x.sum(-1, keepdims=True) + np.float32(least)))


@make_step("times the sum", phrase="times the sum of the other vector")
def scale_by_sum(x: Array, y: Array) -> Array:
    """Each vector of x times the sum of the values of the one of y."""
    return x * y.sum(-1, keepdims=True)


class StreamLinear(Operation, name="linear per stream", form=Form.LINEAR_PER_HEAD, named_by_weights=True):
    """One matrix per stream, [n, streams, d_in] to [n, streams, d_out]; stored [d_out, streams · d_in]."""

    phrase: ClassVar[str] = "one matrix per stream"

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return out[0] * multiply(weights[0])

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        streams, d_in = inputs[0].shape[1:]
        matrices = weights[0].reshape(-1, streams, d_in).transpose(1, 2, 0)
        return (inputs[0].transpose(1, 0, 2) @ matrices).transpose(1, 0, 2)


def linear_by_stream(x: Data, name: str, component: str, d_out: Size) -> Data:
    """[n, streams, d_in] to [n, streams, d_out], with one matrix per stream."""
    streams, d_in = x.shape[1:]
    weight = Weight(name + ".weight", component, (d_out, streams * d_in))
    return Data(StreamLinear(), (x,), (x.shape[0], streams, d_out), (weight,))


class KeyValueState(Recurrence, form=Form.LINEAR_ATTENTION, state=("heads", "d_k", "d_v"), state_in_float32=True):
    """A state S [heads, d_k, d_v] that fades: S = decay · S + k·vᵀ, y = Sᵀq, q divided by √d_k if it is `scaled`.

    Inputs: q [n, heads, d_k], k [n, groups, d_k], v [n, groups, d_v] and what the decay is made of; groups of heads
    share k and v.
    """

    phrase: ClassVar[str] = "recurrent state with a decay, updated per token"
    heads: Size
    d_k: Size
    d_v: Size
    scaled: bool = True

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        q, k, v, *gates = inputs
        heads = int(self.heads)
        k, v, *gates = (np.repeat(x, heads // x.shape[1], axis=1) for x in (k, v, *gates))
        q = q / np.float32(sqrt(q.shape[-1])) if self.scaled else q
        decays, bonus = self.find_decays(len(q), gates, weights), self.find_bonus(weights)
        state = run.state.get("state", np.zeros((heads, k.shape[-1], v.shape[-1]), np.float32))
        y = np.empty(v.shape, np.float32)
        for t in range(len(q)):
            update = k[t, :, :, None] * v[t, :, None, :]
            seen = state if bonus is None else state + bonus * update
            state = decays[t] * state + update
            y[t] = (q[t, :, None, :] @ (state if bonus is None else seen))[:, 0]
        run.state["state"] = state.astype(np.float32)
        return y

    def find_decays(self, n: int, gates: Sequence[Array], weights: Sequence[Array]) -> Sequence[Array] | Array:
        """The factors of the state before each token: [n, heads, d_k or 1, 1]."""
        return np.exp(gates[0]).reshape(n, int(self.heads), -1, 1)

    def find_bonus(self, weights: Sequence[Array]) -> Array | None:
        """The weight [heads, d_k, 1] with which a token sees itself, before it enters the state; None: as it enters."""
        return None


class GatedState(KeyValueState, name="scan"):
    """With the logarithm of a decay for each channel of the keys, or for each head. Source: arXiv:2312.06635 §4."""


class BonusState(KeyValueState, name="scan"):
    """The same of RWKV-6, in which a token sees itself with a learned weight u. Weight: u. Source: arXiv:2404.05892."""

    def find_bonus(self, weights: Sequence[Array]) -> Array | None:
        return weights[-1].reshape(int(self.heads), -1, 1)


class LearnedBonusState(BonusState, name="scan"):
    """RWKV-5: a learned decay exp(−exp(w)) that no token changes. Weights: w, u. Source: arXiv:2404.05892."""

    phrase: ClassVar[str] = "recurrent state with a learned decay, updated per token"

    def find_decays(self, n: int, gates: Sequence[Array], weights: Sequence[Array]) -> Sequence[Array] | Array:
        return [np.exp(-np.exp(weights[0])).reshape(int(self.heads), -1, 1)] * n


class Retention(KeyValueState, name="scan"):
    """RetNet: head h fades by 1 − 2^(−5 − h). Source: arXiv:2307.08621 §2.1; naive_retention in
    fla/ops/retention/naive.py of fla-org/flash-linear-attention."""

    phrase: ClassVar[str] = "recurrent state with a fixed decay per head, updated per token"

    def find_decays(self, n: int, gates: Sequence[Array], weights: Sequence[Array]) -> Sequence[Array] | Array:
        return [(1 - 2.0 ** (-5 - np.arange(int(self.heads)))).astype(np.float32).reshape(-1, 1, 1)] * n


class SummedState(KeyValueState, name="scan"):
    """Without a decay. Source: arXiv:2006.16236 §3.4."""

    phrase: ClassVar[str] = "recurrent state, a sum over all tokens"

    def find_decays(self, n: int, gates: Sequence[Array], weights: Sequence[Array]) -> Sequence[Array] | Array:
        return np.ones((n, 1, 1, 1), np.float32)


class KeySum(Recurrence, name="normalise", form=Form.LINEAR_ATTENTION, state=("heads", "d_k"), state_in_float32=True):
    """y / (q · Σk / √d_k + 1e-10), where the sum of the keys is over all tokens so far.

    Inputs: y [n, heads, d_v], q [n, heads, d_k], k [n, groups, d_k].
    """

    phrase: ClassVar[str] = "divided by the query times the sum of the keys"
    heads: Size
    d_k: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        y, q, k = inputs
        k = np.repeat(k, q.shape[1] // k.shape[1], axis=1)
        sums = np.cumsum(k, axis=0) + run.state.get("keys", np.zeros(k.shape[1:], np.float32))
        run.state["keys"] = sums[-1].astype(np.float32)
        return y / ((q * sums).sum(-1, keepdims=True) / np.float32(sqrt(q.shape[-1])) + np.float32(1e-10))


class SlotState(Recurrence, name="slots", form=Form.LINEAR_ATTENTION, state_in_float32=True):
    """Gated slot attention: slots of keys and values that fade by exp(g) and take in the rest; y = Vᵀ softmax(Kᵀq).

    Inputs: q [n, heads, d_k], k [n, groups, d_k], v [n, groups, d_v], g [n, groups, slots].
    Source: arXiv:2409.07146 §3.
    """

    phrase: ClassVar[str] = "memory slots with a decay, updated per token"
    heads: Size
    d_k: Size
    d_v: Size
    slots: Size

    @property
    def state_shapes(self) -> tuple[tuple[Size, ...], ...]:
        return (self.heads, self.d_k, self.slots), (self.heads, self.slots, self.d_v)

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        q, heads = inputs[0], int(self.heads)
        k, v, g = (np.repeat(x, heads // x.shape[1], axis=1) for x in inputs[1:])
        sizes = [tuple(int(n) for n in size) for size in self.state_shapes]
        keys, values = (run.state.get(str(i), np.zeros(size, np.float32)) for i, size in enumerate(sizes))
        decay, y = np.exp(g), np.empty((len(q), heads, v.shape[-1]), np.float32)
        for t in range(len(q)):
            freed = 1 - decay[t]
            keys = keys * decay[t, :, None, :] + k[t, :, :, None] * freed[:, None, :]
            values = values * decay[t, :, :, None] + freed[:, :, None] * v[t, :, None, :]
            scores = (q[t, :, None, :] @ keys)[:, 0]
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            y[t] = ((scores / scores.sum(-1, keepdims=True))[:, None, :] @ values)[:, 0]
        run.state.update({str(i): x.astype(np.float32) for i, x in enumerate((keys, values))})
        return y


@make_step("− Σ", phrase="minus the sum over all tokens so far")
def less_so_far(x: Array) -> Array:
    """For each token minus the sum of it and all tokens before."""
    return -np.cumsum(x, axis=0)
