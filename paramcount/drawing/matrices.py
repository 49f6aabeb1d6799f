"""Converts tensor shapes to rectangles: rows, columns, and copies stacked or concatenated."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from paramcount.drawing.shapes import Rectangle
from paramcount.errors import format_shape
from paramcount.flow.operation import Form
from paramcount.tracing.trace import Shape, Step, WeightUse


def multiply_sizes(sizes: Sequence[int | str]) -> int | str:
    """The product of sizes; if some are names, the names."""
    names = [n for n in sizes if isinstance(n, str)]
    return " × ".join(names) if names else prod(n for n in sizes if isinstance(n, int))


def make_data(shape: Shape, step: int, *, flat: bool = False, column: bool = False, label: str = "") -> Rectangle:
    """Data with one row per token. Heads are stacked, or with `flat` concatenated. `column`: one element per token."""
    if len(shape) == 3 and isinstance(shape[1], int) and flat:
        text = f"[{shape[0]}, {shape[1]} · {shape[2]}]" if shape[1] > 1 else f"[{shape[0]}, {shape[2]}]"
        return Rectangle(shape[0], multiply_sizes(shape[1:]), "data", text, step, label, beside=shape[1])
    if len(shape) == 3 and isinstance(shape[1], int):
        return make_stack(shape[1], (shape[0], shape[2]), "data", step, label)
    if len(shape) < 2:
        n = shape[0] if shape else 1
        return Rectangle(n if column else 1, 1 if column else n, "data", format_shape(shape), step, label)
    return Rectangle(shape[0], multiply_sizes(shape[1:]), "data", format_shape(shape), step, label)


def make_output(step: Step, index: int, *, column: bool = False, label: str = "") -> Rectangle:
    """The output of a step. A bias per pair of tokens is drawn like attention scores, one matrix per head."""
    if (
        step.form is Form.LOOKUP
        and len(step.out) == 3
        and step.inputs[0] == step.out[:2]
        and isinstance(step.out[2], int)
    ):
        return make_stack(step.out[2], step.out[:2], "data", index, label)
    return make_data(step.out, index, column=column, label=label)


def make_stack(copies: int, shape: Shape, role: str, step: int, label: str = "", name: str = "") -> Rectangle:
    stack = Rectangle(shape[0], shape[1], role, "", step, label, name, copies)
    return stack._replace(shape=stack.repeat_shape(format_shape(shape)))


def make_state(shape: Shape, step: int) -> Rectangle:
    """A recurrent state. The first of three axes is the heads."""
    while len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    if len(shape) == 3 and isinstance(shape[0], int):
        return make_stack(shape[0], shape[1:], "data", step, "recurrent state")
    return Rectangle(shape[0], multiply_sizes(shape[1:]), "data", format_shape(shape), step, "recurrent state")


def make_weight(weight: WeightUse, step: int, form: Form = Form.PLAIN, label: str = "") -> Rectangle:
    """A weight as a matrix: a vector becomes a column, and further axes are flattened into the second."""
    shape = weight.shape
    tied = weight.tied_to is not None
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    if len(shape) == 3 and form is Form.LINEAR_PER_HEAD and isinstance(shape[0], int):
        return make_stack(shape[0], shape[1:], "weight", step, label, weight.name)._replace(tied=tied)
    rows, cols = shape[0] if shape else 1, multiply_sizes(shape[1:])
    return Rectangle(rows, cols, "weight", format_shape(weight.shape), step, label, weight.name, tied=tied)


def make_bias(weight: WeightUse, right: Rectangle) -> Rectangle:
    """A bias, as wide as its matrix."""
    bias = make_stack(right.copies, (1, right.cols), "weight", right.step, name=weight.name)
    return bias._replace(shape=right.repeat_shape(f"[{right.cols}]"))


def has_equal_rows(a: Shape, b: Shape) -> bool:
    """Whether two shapes have equal rows and equally many elements per row."""
    return a == b or (a[:1] == b[:1] and multiply_sizes(a[1:]) == multiply_sizes(b[1:]))


def count_features(shape: Shape) -> int:
    """Elements per row; 0 if unknown."""
    n = multiply_sizes(shape[1:])
    return n if isinstance(n, int) else 0
