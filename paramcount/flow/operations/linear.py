"""Operations with a matrix: linear layers, fused ones, one per head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from paramcount.flow.graph import Data, Size, Weight, Width, as_axes, last_size, multiply
from paramcount.flow.operation import Array, Form, Operation, Pass, Shape
from paramcount.flow.operations.shapes import Split


class Linear(Operation, name="linear", form=Form.LINEAR, named_by_weights=True):
    """x · W + b over all axes but the first. W is stored [out, in], or [in, out] if `transposed`."""

    transposed: bool = False

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return out[0] * multiply(weights[0]) if weights else 0

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x, matrix = inputs[0], weights[0]
        rows = x.reshape(len(x), -1)
        if matrix.ndim != 2:  # an expert may be one vector
            matrix = matrix.reshape((rows.shape[1], -1) if self.transposed else (-1, rows.shape[1]))
        y = rows @ (matrix if self.transposed else matrix.T)
        if len(weights) > 1:
            y = y + weights[1]
        return y.reshape(len(x), *shape[1:])


def linear(
    x: Data,
    name: str,
    component: str,
    width: Width,
    *,
    bias: bool = False,
    transposed: bool = False,
    tied_to: str | None = None,
) -> Data:
    """A linear layer over all axes but the first: [n, …] to [n, *width]."""
    out = as_axes(width)
    n, d_in = multiply(out), last_size(x)
    weight = Weight(name + ".weight", component, (d_in, n) if transposed else (n, d_in), (), 0, tied_to)
    weights = (weight, Weight(name + ".bias", component, (n,))) if bias else (weight,)
    return Data(Linear(transposed), (x,), x.shape[:1] + out, weights)


def fused(
    x: Data,
    name: str,
    parts: Mapping[str, Width],
    *,
    bias: bool = False,
    transposed: bool = False,
    suffixes: tuple[str, str] = (".weight", ".bias"),
    groups: Size = 1,
) -> tuple[Data, ...]:
    """The outputs of one fused linear layer, split into `parts` of {component: size}.

    `groups`: how often the sequence of parts recurs: 1 if each part is contiguous, the number of heads if every head
    has its own q, k and v, the size of a part if single values alternate.
    """
    splits = tuple((component, multiply(as_axes(width))) for component, width in parts.items())
    n = splits[0][1]
    for _, width in splits[1:]:
        n = n + width
    d_in, first = last_size(x), splits[0][0]
    weights: tuple[Weight, ...] = (
        Weight(name + suffixes[0], first, (d_in, n) if transposed else (n, d_in), splits, int(transposed)),
    )
    if bias:
        weights += (Weight(name + suffixes[1], first, (n,), splits),)
    y = Data(Linear(transposed), (x,), (*x.shape[:1], n), weights)
    widths = tuple(width for _, width in splits)
    return tuple(
        Data(Split(widths, i, groups, component), (y,), x.shape[:1] + as_axes(width))
        for i, (component, width) in enumerate(parts.items())
    )


class HeadLinear(Operation, name="linear per head", form=Form.LINEAR_PER_HEAD, named_by_weights=True):
    """One matrix per head: [n, heads, d_in] to [n, heads, d_out].

    Stored [heads, out, in] or [heads · out, in], or [heads, in, out] if `transposed`.
    """

    phrase: ClassVar[str] = "one matrix per head"
    transposed: bool = False

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return out[0] * multiply(weights[0])

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        heads, d_in = inputs[0].shape[1:]
        matrices = weights[0] if self.transposed else weights[0].reshape(heads, -1, d_in).transpose(0, 2, 1)
        y = (inputs[0].transpose(1, 0, 2) @ matrices).transpose(1, 0, 2)
        return y + weights[1] if len(weights) > 1 else y


class GroupLinear(HeadLinear, name="grouped linear", phrase="one matrix per group"):
    """The same with one matrix per group of channels."""


class SharedLinear(HeadLinear, name="grouped linear", phrase="one matrix for all heads"):
    """One matrix for all heads, stored [out, in], or [in, out] if `transposed`."""

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return out[0] * multiply(weights[0]) * out[1]

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0] @ (weights[0] if self.transposed else weights[0].T)


def linear_by_head(
    x: Data,
    d_out: Size,
    weight: Weight,
    *bias: Weight,
    transposed: bool = False,
    of: Literal["head", "group", "all heads"] = "head",
) -> Data:
    kind = {"head": HeadLinear, "group": GroupLinear, "all heads": SharedLinear}[of]
    return Data(kind(transposed), (x,), (*x.shape[:2], d_out), (weight, *bias))


class ScoreKeys(Operation, name="q · k", form=Form.LINEAR_PER_HEAD, named_by_weights=True):
    """Products of queries [n, heads, d] with keys that are no tokens, [m, heads, d], learned or the second input."""

    phrase: ClassVar[str] = "product of each query with position or segment vectors"

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return multiply(out) * inputs[0][-1]

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        keys = (*inputs[1:], *weights)[0]
        return (inputs[0].transpose(1, 0, 2) @ keys.transpose(1, 2, 0)).transpose(1, 0, 2)


def score_keys(q: Data, keys: Data | Weight) -> Data:
    """Products of queries [n, heads, d] with keys that are no tokens, [m, heads, d]: [n, heads, m]."""
    inputs, weights = ((q, keys), ()) if isinstance(keys, Data) else ((q,), (keys,))
    return Data(ScoreKeys(), inputs, (*q.shape[:2], keys.shape[0]), weights)
