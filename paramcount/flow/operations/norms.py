"""Norms, which divide vectors by their magnitude."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from paramcount.flow.graph import Data, Size, Weight, last_size, make_step
from paramcount.flow.operation import Array, Pass, Shape, Unknown, is_known, np, require
from paramcount.flow.operations.elementwise import Rescaling


class Norm(Rescaling, name="norm"):
    """Values divided by their root mean square (after subtracting their mean: layer norm), times a learned vector."""

    kind: Literal["rms", "layer"] | Unknown
    eps: float | Unknown
    offset: float = 0.0  # added to the learned vector: 1 in Gemma
    groups: Size = 1  # norms of equal parts of the last axis

    def describe(self) -> str:
        if not isinstance(self.kind, str):
            return ""
        scaled = ", scaled by 1 + weight" if self.offset else ""
        return ("layer norm" if self.kind == "layer" else "RMS norm") + scaled + describe_eps(self.eps)

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        kind, eps = require(self.kind), np.float32(require(self.eps))
        whole = bool(weights) and weights[0].shape[-1] != x.shape[-1]  # over all heads together
        flat = x.reshape(len(x), -1) if whole else x
        y = flat.reshape(*flat.shape[:-1], int(self.groups), flat.shape[-1] // int(self.groups))
        y = divide_by_magnitude(y, eps, -1, centred=kind == "layer").reshape(flat.shape)
        return apply_weights(y, weights, self.offset).reshape(x.shape)


def describe_eps(eps: float | Unknown) -> str:
    return f", ε = {eps:g}".replace("e-0", "e-") if is_known(eps) else ""


def divide_by_magnitude(x: Array, eps: Any, axes: int | tuple[int, ...], *, centred: bool) -> Array:
    """x divided by its root mean square over these axes, after subtracting its mean if centred."""
    y = x - x.mean(axes, keepdims=True) if centred else x
    return np.asarray(y / np.sqrt((y * y).mean(axes, keepdims=True) + eps))


def apply_weights(x: Array, weights: Sequence[Array], offset: float = 0.0) -> Array:
    """x times a learned vector plus an offset, plus a second one."""
    if weights:
        x = x * (weights[0] + np.float32(offset)) if offset else x * weights[0]
    return x + weights[1] if len(weights) > 1 else x


class OtherNorm(Rescaling, name="norm"):
    """A norm with a text of its own."""

    eps: float | Unknown

    def describe(self) -> str:
        return super().describe() + describe_eps(self.eps)


class NormOfScaled(OtherNorm, phrase="RMS norm of x · (1 + weight)"):
    """An RMS norm of x times 1 + a learned vector."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x = inputs[0] * (weights[0] + np.float32(1))
        return divide_by_magnitude(x, np.float32(require(self.eps)), -1, centred=False)


class L2Norm(OtherNorm, name="L2 norm", phrase="L2 norm"):
    """Vectors divided by their length, to whose square eps is added."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        return x / np.sqrt((x * x).sum(-1, keepdims=True) + np.float32(require(self.eps)))


class GroupNorm(OtherNorm, phrase="group norm of {n_groups} groups of channels"):
    """Each group of channels over all rows of an image. Source: arXiv:1803.08494."""

    n_groups: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        y = x.reshape(*x.shape[:-1], int(self.n_groups), x.shape[-1] // int(self.n_groups))
        y = divide_by_magnitude(y, np.float32(require(self.eps)), (0, -1), centred=True).reshape(x.shape)
        return apply_weights(y, weights)


class BatchNorm(OtherNorm, phrase="batch norm"):
    """Values of which the mean and the variance are stored, with the number of batches that they come from. Source:
    arXiv:1502.03167."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        scale, shift, mean, variance = weights[:4]
        return (inputs[0] - mean) / np.sqrt(variance + np.float32(require(self.eps))) * scale + shift


class CumulativeNorm(OtherNorm, phrase="layer norm over all rows so far"):
    """A layer norm over all axes and all rows so far, from whose means so far the variance is measured."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        axes = tuple(range(1, x.ndim))
        count = x[0].size * np.arange(1, len(x) + 1, dtype=np.float32).reshape(-1, *(1,) * (x.ndim - 1))
        y = x - x.sum(axes, keepdims=True).cumsum(0) / count
        variance = (y * y).sum(axes, keepdims=True).cumsum(0) / count
        return y / np.sqrt(variance + np.float32(require(self.eps))) * weights[0]


@make_step("norm", Rescaling, phrase="scaled to the RMS of the first stream")
def norm_to_first(x: Array, least: float) -> Array:
    """Streams [n, streams, d], scaled to the root mean square of the first one, which is not changed. `least`: of what
    a mean square is taken for."""
    squares = (x * x).mean(-1, keepdims=True)
    factors = np.sqrt(squares[:, :1]) / np.sqrt(np.maximum(squares, np.float32(least)))
    return np.concatenate((x[:, :1], x[:, 1:] * factors[:, 1:]), axis=1)


def norm(
    x: Data,
    name: str,
    *,
    bias: bool = False,
    kind: Literal["rms", "layer"] | Unknown = Unknown("norm"),  # noqa: B008 it is immutable
    eps: float | Unknown = Unknown("norm_eps"),  # noqa: B008
    offset: float = 0.0,
    groups: Size = 1,
    wide: bool = False,
) -> Data:
    """A norm over the last axis, or over all axes but the first if `wide`."""
    width = (last_size(x),) if wide else x.shape[-1:]
    ends = (".weight", ".bias") if bias else (".weight",)
    weights = tuple(Weight(name + end, "norm", width) for end in ends)
    return Data(Norm(kind, eps, offset, groups), (x,), x.shape, weights)


def layer_norm_per_head(x: Data, name: str, eps: float | Unknown, *, bias: bool = False) -> Data:
    """A layer norm of each head of [n, heads, d], with weights for each."""
    ends = (".weight", ".bias") if bias else (".weight",)
    weights = tuple(Weight(name + end, "norm", x.shape[1:]) for end in ends)
    return Data(Norm("layer", eps), (x,), x.shape, weights)


def rms_norm(
    x: Data, name: str, eps: float | Unknown, *, offset: float = 0.0, groups: Size = 1, wide: bool = False
) -> Data:
    """Source: arXiv:1910.07467."""
    return norm(x, name, kind="rms", eps=eps, offset=offset, groups=groups, wide=wide)


def norm_of_scaled(x: Data, name: str, eps: float | Unknown) -> Data:
    """An RMS norm of x times 1 + a learned vector."""
    return Data(NormOfScaled(eps), (x,), x.shape, (Weight(name + ".weight", "norm", x.shape[-1:]),))


def layer_norm(
    x: Data, name: str, eps: float | Unknown, *, bias: bool = True, offset: float = 0.0, wide: bool = False
) -> Data:
    """Source: arXiv:1607.06450."""
    return norm(x, name, kind="layer", eps=eps, bias=bias, offset=offset, wide=wide)


def group_norm(x: Data, name: str, groups: Size, eps: float | Unknown) -> Data:
    """Each group of channels over all rows of an image."""
    weights = tuple(Weight(f"{name}.{end}", "norm", x.shape[-1:]) for end in ("weight", "bias"))
    return Data(GroupNorm(eps, groups), (x,), x.shape, weights)


def batch_norm(x: Data, name: str, eps: float) -> Data:
    learned = tuple(Weight(name + end, "norm", x.shape[-1:]) for end in (".weight", ".bias"))
    stored = [(".running_mean", x.shape[-1:]), (".running_var", x.shape[-1:]), (".num_batches_tracked", ())]
    buffers = tuple(Weight(name + end, "norm", shape, role="buffer") for end, shape in stored)
    return Data(BatchNorm(eps), (x,), x.shape, learned + buffers)


def cumulative_norm(x: Data, name: str, eps: float | Unknown) -> Data:
    """A layer norm of each row with the mean and variance of all rows so far, over all axes."""
    return Data(CumulativeNorm(eps), (x,), x.shape, (Weight(name + ".weight", "norm", x.shape[-1:]),))


def plain_norm(x: Data, kind: Literal["rms", "layer", "l2"], eps: float | Unknown) -> Data:
    """A norm without learned values, over the last axis."""
    return Data(L2Norm(eps) if kind == "l2" else Norm(kind, eps), (x,), x.shape)
