"""Shapes as what rectangles show: rows and columns, equal ones behind one another or side by side."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from paramcount.tracing.trace import Shape, Step, WeightUse


class Matrix(NamedTuple):
    """What a rectangle shows. Fields as in `shapes.Rectangle`."""

    rows: int | str
    cols: int | str
    role: str
    shape: str
    step: int
    label: str = ""
    name: str = ""
    copies: int = 1
    beside: int = 1
    mask: str = ""
    window: int | None = None
    tied: bool = False

    def times(self, one: str) -> str:
        """The shape of one of its copies as the shape of all."""
        return f"{self.copies} × {one}" if self.copies > 1 else one


def printed(shape: Shape) -> str:
    """A shape as people read it.

    >>> printed((5, 768)), printed(("source", 512))
    ('[5, 768]', '[source, 512]')
    """
    return f"[{', '.join(map(str, shape))}]"


def times(sizes: Sequence[int | str]) -> int | str:
    """A product of sizes; of words their names."""
    words = [n for n in sizes if isinstance(n, str)]
    return " × ".join(words) if words else prod(n for n in sizes if isinstance(n, int))


def of_data(shape: Shape, step: int, *, flat: bool = False, column: bool = False, label: str = "") -> Matrix:
    """Data: a row for each token; heads behind one another, or side by side if `flat`. `column`: one number for each token."""
    if len(shape) == 3 and isinstance(shape[1], int) and flat:
        text = f"[{shape[0]}, {shape[1]} · {shape[2]}]" if shape[1] > 1 else f"[{shape[0]}, {shape[2]}]"
        return Matrix(shape[0], times(shape[1:]), "data", text, step, label, beside=shape[1])
    if len(shape) == 3 and isinstance(shape[1], int):
        return stacked(shape[1], (shape[0], shape[2]), "data", step, label)
    if len(shape) < 2:
        n = shape[0] if shape else 1
        return Matrix(n if column else 1, 1 if column else n, "data", printed(shape), step, label)
    return Matrix(shape[0], times(shape[1:]), "data", printed(shape), step, label)


def of_output(step: Step, index: int, *, column: bool = False, label: str = "") -> Matrix:
    """What a step gives. A bias for each pair of tokens stands as the attention scores do: a matrix per head."""
    if step.op == "lookup" and len(step.out) == 3 and step.inputs[0] == step.out[:2] and isinstance(step.out[2], int):
        return stacked(step.out[2], step.out[:2], "data", index, label)
    return of_data(step.out, index, column=column, label=label)


def stacked(copies: int, shape: Shape, role: str, step: int, label: str = "", name: str = "") -> Matrix:
    """Equal ones behind one another."""
    one = Matrix(shape[0], shape[1], role, "", step, label, name, copies)
    return one._replace(shape=one.times(printed(shape)))


def of_state(shape: Shape, step: int) -> Matrix:
    """What is carried from token to token: of three axes, the first is of heads."""
    while len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    if len(shape) == 3 and isinstance(shape[0], int):
        return stacked(shape[0], shape[1:], "data", step, "recurrent state")
    return Matrix(shape[0], times(shape[1:]), "data", printed(shape), step, "recurrent state")


def of_weight(held: WeightUse, step: int, op: str, label: str = "") -> Matrix:
    """A weight by itself: a vector stands upright, what has more axes than two is as wide as all but the first."""
    shape = held.shape
    tied = held.tied_to is not None
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    if len(shape) == 3 and op == "linear by head" and isinstance(shape[0], int):
        return stacked(shape[0], shape[1:], "weight", step, label, held.name)._replace(tied=tied)
    rows = shape[0] if shape else 1
    return Matrix(rows, times(shape[1:]), "weight", printed(held.shape), step, label, held.name, tied=tied)


def below(held: WeightUse, right: Matrix) -> Matrix:
    """A bias under its matrix, as wide."""
    return stacked(right.copies, (1, right.cols), "weight", right.step, name=held.name)._replace(shape=right.times(f"[{right.cols}]"))


def alike(a: Shape, b: Shape) -> bool:
    """Whether two shapes hold the same numbers, a row for each token."""
    return a == b or (a[:1] == b[:1] and times(a[1:]) == times(b[1:]))


def width(shape: Shape) -> int:
    """How many numbers stand behind the first axis; 0 where nobody knows."""
    n = times(shape[1:])
    return n if isinstance(n, int) else 0
