"""Operations with a state of fixed size: causal convolutions, state space models, linear attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from paramcount.flow.graph import Data, Size, Weight
from paramcount.flow.operation import Array, Operation, Pass, Shape, np, require
from paramcount.flow.operation import Unknown as Unknown
from paramcount.flow.operations.elementwise import softplus


@dataclass(frozen=True, slots=True)
class Convolve(Operation):
    """Each channel over the last d_conv tokens, stored [channels, 1, d_conv].

    It keeps its last inputs: [channels, d_conv - 1].
    """

    name: ClassVar[str] = "convolve"
    channels: Size
    d_conv: Size

    @property
    def state_shapes(self) -> tuple[tuple[Size, ...], ...]:
        return ((self.channels, self.d_conv - 1),)

    def describe(self) -> str:
        return "per channel, over the last tokens"

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return out[0] * weights[0][0] * weights[0][2]

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,), kernel = inputs, weights[0][:, 0]
        n, width = len(x), kernel.shape[1]
        before = run.state.get("inputs", np.zeros((width - 1, x.shape[1]), np.float32))
        padded = np.concatenate((before, x))
        run.state["inputs"] = padded[len(padded) - (width - 1) :]
        y = sum(padded[i : i + n] * kernel[:, i] for i in range(width))
        return y + weights[1] if len(weights) > 1 else np.asarray(y)


def convolve(x: Data, name: str, d_conv: Size, *, bias: bool = True, component: str = "mixer.convolution") -> Data:
    """Each channel over the last d_conv tokens: [n, channels] to [n, channels]."""
    channels = x.shape[-1]
    weights: tuple[Weight, ...] = (Weight(name + ".weight", component, (channels, 1, d_conv)),)
    if bias:
        weights += (Weight(name + ".bias", component, (channels,)),)
    return Data(Convolve(channels, d_conv), (x,), x.shape, weights)


@dataclass(frozen=True, slots=True)
class SelectiveScan(Operation):
    """Mamba 1: a state [channels, d_state] per token, h = exp(dt·A)·h + dt·B·u, y = C·h + D·u, dt = softplus(step).

    Inputs: u and step [n, channels], B and C [n, d_state]. Weights: A_log, D. Source: arXiv:2312.00752 §3.
    """

    name: ClassVar[str] = "scan"
    channels: Size
    d_state: Size

    @property
    def state_shapes(self) -> tuple[tuple[Size, ...], ...]:
        return ((self.channels, self.d_state),)

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        u, step, b, c = inputs
        a, d = -np.exp(weights[0]), weights[1]
        delta = softplus(step)
        state = run.state.get("state", np.zeros(a.shape, np.float32))
        y = np.empty(u.shape, np.float32)
        for t in range(len(u)):
            state = np.exp(delta[t, :, None] * a) * state + delta[t, :, None] * b[t] * u[t, :, None]
            y[t] = state @ c[t]
        run.state["state"] = state.astype(np.float32)
        return y + u * d


@dataclass(frozen=True, slots=True)
class StateSpaceDual(Operation):
    """Mamba 2: a state [heads, d_head, d_state] per token with one decay per head; groups of heads share B and C.

    Inputs: u [n, heads · d_head], step [n, heads], B and C [n, groups · d_state]. Weights: dt_bias, A_log, D.
    Source: arXiv:2405.21060 §7.
    """

    name: ClassVar[str] = "scan"
    heads: Size
    d_head: Size
    d_state: Size
    limit: tuple[float, float] | Unknown = (0.0, float("inf"))  # of the step, after the softplus

    @property
    def state_shapes(self) -> tuple[tuple[Size, ...], ...]:
        return ((self.heads, self.d_head, self.d_state),)

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
