"""The delta rule in other forms than that of Qwen and Kimi: without a decay, in a closed loop, in several steps."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import ClassVar

from paramcount.flow.graph import Size
from paramcount.flow.operation import Array, Form, Pass, Shape, np
from paramcount.flow.operations.elementwise import softplus
from paramcount.flow.operations.recurrence import Recurrence


class StepDecay(Recurrence, name="log decay", phrase="−exp(A)·softplus(step + bias)"):
    """The logarithm of the decay of each head, [n, heads]. Weights: A_log, dt_bias. Source: arXiv:2405.21060 §6."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return -np.exp(weights[0]) * softplus(inputs[0] + weights[1])


class DeltaState(Recurrence, name="delta rule", form=Form.LINEAR_ATTENTION, state=("heads", "d_k", "d_v")):
    """A state S [heads, d_k, d_v] without a decay: S += β·k·(v − kᵀS)ᵀ; y = Sᵀq / √d_k.

    Inputs: q and k [n, heads, d_k], v [n, heads, d_v], β [n, heads]; β is 1 without it. Source: arXiv:2406.06484 §2.
    """

    phrase: ClassVar[str] = "recurrent state, updated per token by the delta rule"
    state_in_float32: ClassVar[bool] = True
    heads: Size
    d_k: Size
    d_v: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        q, k, v, *rates = inputs
        beta = rates[0] if rates else np.ones(v.shape[:2], np.float32)
        state = run.state.get("state", np.zeros((v.shape[1], k.shape[2], v.shape[2]), np.float32))
        q, y = q / np.float32(sqrt(q.shape[-1])), np.empty(v.shape, np.float32)
        for t in range(len(v)):
            change = beta[t, :, None] * (v[t] - (k[t, :, None, :] @ state)[:, 0])
            state = state + k[t, :, :, None] * change[:, None, :]
            y[t] = (q[t, :, None, :] @ state)[:, 0]
        run.state["state"] = state.astype(np.float32)
        return y


class DeltaProduct(Recurrence, name="delta rule", form=Form.LINEAR_ATTENTION, state=("heads", "d_k", "d_v")):
    """A state S [heads, d_k, d_v] that several keys and values correct for each token, one after the other:
    S = exp(g)·S, then S += β·k·(v − kᵀS)ᵀ for each; y = Sᵀq / √d_k.

    Inputs: q [n, heads, d_k], k [n, steps · heads, d_k], v and β likewise, and g [n, heads], if there is a decay.
    Source: arXiv:2502.10297 §3.
    """

    phrase: ClassVar[str] = "recurrent state, updated {steps} times per token by the delta rule"
    state_in_float32: ClassVar[bool] = True
    heads: Size
    d_k: Size
    d_v: Size
    steps: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        q, k, v, beta, *decays = inputs
        n, heads, d_k = q.shape
        k, v, beta = (x.reshape(n, -1, heads, *x.shape[2:]) for x in (k, v, beta))
        state = run.state.get("state", np.zeros((heads, d_k, v.shape[-1]), np.float32))
        q, y = q / np.float32(sqrt(d_k)), np.empty((n, heads, v.shape[-1]), np.float32)
        for t in range(n):
            if decays:
                state = state * np.exp(decays[0][t])[:, None, None]
            for i in range(k.shape[1]):
                change = beta[t, i, :, None] * (v[t, i] - (k[t, i, :, None, :] @ state)[:, 0])
                state = state + k[t, i, :, :, None] * change[:, None, :]
            y[t] = (q[t, :, None, :] @ state)[:, 0]
        run.state["state"] = state.astype(np.float32)
        return y


class RankOneState(Recurrence, name="delta rule", form=Form.LINEAR_ATTENTION, state=("heads", "d_k", "d_v")):
    """RWKV-7: S = exp(g)·S + b·(aᵀS)ᵀ + k·vᵀ, all with the state before; y = Sᵀq.

    Inputs: q, g, k [n, heads, d_k], v [n, heads, d_v], a and b [n, heads, d_k]. Source: arXiv:2503.14456 §4.
    """

    phrase: ClassVar[str] = "recurrent state, updated per token by a generalised delta rule"
    state_in_float32: ClassVar[bool] = True
    heads: Size
    d_k: Size
    d_v: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        q, g, k, v, a, b = inputs
        state = run.state.get("state", np.zeros((v.shape[1], k.shape[2], v.shape[2]), np.float32))
        decay, y = np.exp(g)[..., None], np.empty(v.shape, np.float32)
        for t in range(len(v)):
            removed = b[t, :, :, None] * (a[t, :, None, :] @ state)
            state = decay[t] * state + removed + k[t, :, :, None] * v[t, :, None, :]
            y[t] = (q[t, :, None, :] @ state)[:, 0]
        run.state["state"] = state.astype(np.float32)
        return y


class ClosedLoopState(Recurrence, name="delta rule", form=Form.LINEAR_ATTENTION, state=("heads", "d_k", "d_v")):
    """Comba: S = exp(g)·S + β·k·(v − pᵀS)ᵀ, where p reads the state before it fades; y = Sᵀq / √d_k.

    Inputs: q and k [n, heads, d_k], v [n, heads, d_v], p [n, heads, d_k], g and β [n, heads]. Source: arXiv:2506.02475
    §3; fused_recurrent_comba of fla-org/flash-linear-attention.
    """

    phrase: ClassVar[str] = "recurrent state, updated per token by the delta rule"
    state_in_float32: ClassVar[bool] = True
    heads: Size
    d_k: Size
    d_v: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        q, k, v, p, g, beta = inputs
        state = run.state.get("state", np.zeros((v.shape[1], k.shape[2], v.shape[2]), np.float32))
        q, y, decay = q / np.float32(sqrt(q.shape[-1])), np.empty(v.shape, np.float32), np.exp(g)[..., None, None]
        for t in range(len(v)):
            change = beta[t, :, None] * (v[t] - (p[t, :, None, :] @ state)[:, 0])
            state = decay[t] * state + k[t, :, :, None] * change[:, None, :]
            y[t] = (q[t, :, None, :] @ state)[:, 0]
        run.state["state"] = state.astype(np.float32)
        return y
