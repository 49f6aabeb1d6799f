"""All weights of a model with polynomials as sizes, checked against the same weights with numbers as sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod
from typing import NamedTuple

from paramcount.counting.sum_weights import STRUCTURE_ERRORS, list_numbers, list_weight_flows, make_symbolic
from paramcount.flow import Repeat, Size, list_steps
from paramcount.flow.walk import locate_weights, name_stacks
from paramcount.sizes import Sizes
from paramcount.symbolic.polynomials import Condition, Polynomial, decide_by


class Piece(NamedTuple):
    """One weight, or the share of one component in a fused weight. Sizes may be polynomials."""

    name: str  # as in the checkpoint
    component: str  # "qkv.q"
    part: str
    role: str
    tied_to: str | None
    shape: tuple[Size, ...]  # as stored; of the share if the weight is fused
    one: Size  # parameters per layer and expert
    stack: str  # the prefix of its layers: "model.layers."; "" outside all layers
    layer: Repeat | None
    expert: Repeat | None

    @property
    def each(self) -> Size:
        """Parameters per layer, all experts together."""
        return self.one * self.expert.count if self.expert else self.one

    @property
    def active(self) -> Size:
        """Parameters per layer that one token uses."""
        return self.one * self.expert.active if self.expert else self.one

    @property
    def is_bias(self) -> bool:
        """Whether it is the bias of a matrix; `dt_bias` is a parameter of the recurrence."""
        return self.name.rpartition(".")[2].endswith("bias") and not self.component.endswith(".state")

    @property
    def module(self) -> str:
        """The name without ".weight" or ".bias"."""
        return re.sub(r"\.(weight|bias)$", "", self.name)

    @property
    def layers(self) -> Size:
        """The number of layers that have it; 1 outside all layers."""
        return self.layer.count if self.layer else 1

    @property
    def is_counted(self) -> bool:
        """Whether the total includes it: learned, not tied to another weight, not in an MTP layer."""
        return self.role == "parameter" and self.tied_to is None and self.part != "mtp"


class Walk(NamedTuple):
    """The weights of a model, the values of its symbols, and the sizes that stay numbers."""

    pieces: tuple[Piece, ...]
    values: Mapping[str, int]
    fixed: Mapping[str, int]
    c: Sizes  # a stand-in with symbols as sizes
    conditions: tuple[Condition, ...]  # which sizes are equal: other sizes have other weights

    def evaluate(self, size: Size) -> int:
        """The value of a number or polynomial."""
        return evaluate(size, self.values)


def evaluate(size: Size, values: Mapping[str, int]) -> int:
    n: int = size.substitute(values) if isinstance(size, Polynomial) else size
    return n


def to_polynomial(size: Size) -> Polynomial:
    return size if isinstance(size, Polynomial) else Polynomial({(): size})


def walk_model(sizes: Sizes, head: bool = True, numeric: frozenset[str] = frozenset()) -> Walk:
    """All weights, with as many symbolic sizes as the structure allows. `numeric`: sizes to keep as numbers."""
    values = list_numbers(sizes)
    expected = list_pieces(sizes, head)
    for fixed in choose_fixed(values, numeric):
        c = make_symbolic(sizes, False, concrete=fixed)
        try:
            with decide_by(values) as decisions:
                pieces = list_pieces(c, head)
        except STRUCTURE_ERRORS:
            continue
        free = {name: value for name, value in values.items() if name not in fixed}
        if are_equal(pieces, expected, free):
            numbers = {name: value for name, value in values.items() if name in fixed}
            return Walk(tuple(pieces), free, numbers, c, decisions.conditions)
    raise AssertionError("with numbers only, the weights equal the expected ones")


def choose_fixed(values: Mapping[str, int], numeric: frozenset[str]) -> Iterator[frozenset[str]]:
    """Sets of sizes to keep as numbers: none, each one, all counts (`n_*`), then one more at a time."""
    names = sorted(values, key=lambda name: not is_count(name))
    yield numeric
    yield from (numeric | {name} for name in names)
    yield numeric | {name for name in values if is_count(name)}
    yield from (numeric | set(names[: i + 1]) for i in range(len(names)))


def is_count(name: str) -> bool:
    return name.rpartition(".")[2].startswith("n_")


def are_equal(symbolic: list[Piece], expected: list[Piece], values: Mapping[str, int]) -> bool:
    """Whether symbolic weights have the expected sizes. They may differ if the forward pass branches on a size."""
    present = [piece for piece in symbolic if evaluate(piece.layers, values)]
    if len(present) != len(expected):
        return False
    pairs = zip(present, expected, strict=True)
    return all(a[:5] == b[:5] and evaluate_all(a, values) == evaluate_all(b, values) for a, b in pairs)


def evaluate_all(piece: Piece, values: Mapping[str, int]) -> list[int]:
    return [evaluate(n, values) for n in (*piece.shape, piece.each, piece.active, piece.layers)]


def list_pieces(c: Sizes, head: bool) -> list[Piece]:
    """The weights in the order of the forward pass."""
    pieces: list[Piece] = []
    for out, part in list_weight_flows(c, head):
        steps = list_steps(out, part)
        stacks = name_stacks(steps)
        for record in locate_weights(steps):
            layer, expert = record.layer, record.expert
            others = prod(repeat.count for repeat in record.repeats if repeat is not layer and repeat is not expert)
            stack = stacks[id(layer)] if layer else ""
            role = record.weight.role
            for component, shape in record.share_shapes:
                one = prod(shape) * others
                place = (component, record.part, role, record.tied_to)
                pieces.append(Piece(record.name, *place, shape, one, stack, layer, expert))
    return pieces
