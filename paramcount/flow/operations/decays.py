"""Decays of recurrent states that depend on other layers or on all tokens so far, and the state of HGRN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from paramcount.flow.graph import Data, Size, Weight
from paramcount.flow.operation import Array, Form, Pass, Shape, np
from paramcount.flow.operations.elementwise import sigmoid, softplus
from paramcount.flow.operations.gated_states import log_decay
from paramcount.flow.operations.recurrence import Recurrence


class ChannelState(Recurrence, name="scan", form=Form.STATE_SPACE, state=("channels",), state_in_float32=True):
    """HGRN: h = exp(g)·h + x per channel. Inputs: x and g, [n, channels]. Source: arXiv:2311.04823 §3."""

    phrase: ClassVar[str] = "recurrent state with a decay per channel, updated per token"
    channels: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x, g), decay = inputs, np.exp(inputs[1])
        state, y = run.state.get("state", np.zeros(x.shape[1], np.float32)), np.empty(x.shape, np.float32)
        for t in range(len(g)):
            y[t] = state = decay[t] * state + x[t]
        run.state["state"] = state.astype(np.float32)
        return y


class LowerBounds(Recurrence, name="lower bounds", phrase="of the decay in each layer: rising shares"):
    """The least decay of each channel in each layer, [layers, channels]: a softmax over the layers, summed up to each
    without the first. Weight: its logits. Source: arXiv:2311.04823 §3.2."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (logits,) = weights
        shares = np.exp(logits - logits.max(0))
        shares = shares / shares.sum(0)
        return np.asarray(shares.cumsum(0) - shares[0])


class BoundedDecay(Recurrence, name="log decay", phrase="sigmoid(x), above the layer's lower bound"):
    """log(b + (1 − b)·sigmoid(x)), with the layer's row b of the bounds; the first layer has none.

    Inputs: x [n, channels], bounds [layers, channels].
    """

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x, bounds = inputs
        if run.layer == 0:
            return -softplus(-x)
        return np.log(bounds[run.layer] + (1 - bounds[run.layer]) * sigmoid(x))


def lower_bounds(x: Data, name: str, n_layers: Size, d: Size) -> Data:
    """The bounds of all layers, [n_layers, d]. `x`: any data."""
    return Data(LowerBounds(), (x,), (n_layers, d), (Weight(name, "mixer.forget_gate", (n_layers, d)),))


def bounded_log_decay(x: Data, *bounds: Data) -> Data:
    """The logarithm of a decay between 0 and 1, above the bounds if there are any."""
    return Data(BoundedDecay(), (x, *bounds), x.shape) if bounds else log_decay(x)


class SoftmaxDecay(Recurrence, name="log decay", state=("channels",), state_in_float32=True):
    """The logarithm of what is left of the earlier share when exp(x) joins a sum over all tokens so far.

    x [n, *channels]: log Σ before − log Σ with it. The first token leaves nothing. Source: arXiv:2110.02488 §3;
    naive_recurrent_abc in fla/ops/abc/naive.py of fla-org/flash-linear-attention.
    """

    phrase: ClassVar[str] = "by the share of all tokens so far, exponentially weighted"
    form: ClassVar[Form] = Form.LINEAR_ATTENTION
    channels: tuple[Size, ...]

    @property
    def state_shapes(self) -> tuple[tuple[Size, ...], ...]:
        return (self.channels,)

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        sums, y = run.state.get("sums", np.full(x.shape[1:], -1e30, np.float32)), np.empty(x.shape, np.float32)
        for t in range(len(x)):
            after = np.logaddexp(sums, x[t])
            y[t], sums = sums - after, after
        run.state["sums"] = sums.astype(np.float32)
        return y


def softmax_decay(x: Data) -> Data:
    return Data(SoftmaxDecay(x.shape[1:]), (x,), x.shape)


class ModalState(Recurrence, name="scan", form=Form.STATE_SPACE, state=("channels", "d_state", "two")):
    """Hyena's long convolution as a recurrence: h = p·h + x with complex poles p, y = Re Σ r·h.

    Input: x [n, channels]. Weights: poles p and residues r, [channels, d_state, 1, 2], the last axis real and
    imaginary. Source: arXiv:2310.18780 §3; step_iir in stripedhyena/engine.py of togethercomputer/stripedhyena.
    """

    phrase: ClassVar[str] = "complex recurrent state per channel, updated per token"
    state_in_float32: ClassVar[bool] = True
    channels: Size
    d_state: Size
    two: int = 2  # the real and the imaginary part

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        poles, residues = (w[..., 0, 0] + 1j * w[..., 0, 1] for w in weights)
        parts = run.state.get("state", np.zeros((*poles.shape, 2), np.float32))
        state, y = parts[..., 0] + 1j * parts[..., 1], np.empty(x.shape, np.float32)
        for t in range(len(x)):
            state = poles * state + x[t][:, None]
            y[t] = (residues * state).sum(-1).real
        run.state["state"] = np.stack((state.real, state.imag), axis=-1).astype(np.float32)
        return y
