"""Every weight of a model in named sizes: the declaration walked with symbols, held against the same walk with numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

from paramcount.counting.sum_weights import UNWALKED, list_flows, make_symbolic
from paramcount.flow import Repeat, Size, list_steps, list_weights
from paramcount.flow.walk import name_stacks
from paramcount.sizes import Sizes, inner_configs
from paramcount.symbolic.polynomials import Polynomial


class Piece(NamedTuple):
    """One weight, or what is in a fused one for one component. Numbers may be polynomials."""

    name: str  # as in the checkpoint
    component: str  # "qkv.q"
    part: str
    role: str
    tied_to: str | None
    shape: tuple[Size, ...]  # of one of them, as stored; a fused one's share
    one: Size  # parameters in one layer and one expert
    stack: str  # what the layers that it stands in are stored under: "model.layers."; "" outside
    layer: Repeat | None  # the layers that it stands in
    expert: Repeat | None  # the experts that it stands in

    @property
    def each(self) -> Size:
        """Parameters in one layer, all experts together."""
        return self.one * self.expert.count if self.expert else self.one

    @property
    def used(self) -> Size:
        """Those of them that one token uses."""
        return self.one * self.expert.active if self.expert else self.one

    @property
    def bias(self) -> bool:
        return self.name.rpartition(".")[2].endswith("bias")

    @property
    def layers(self) -> Size:
        """How many layers hold it; 1 outside."""
        return self.layer.count if self.layer else 1

    @property
    def owned(self) -> bool:
        """Whether it counts: learned, tied to nothing, and not of a layer beside the model."""
        return self.role == "parameter" and self.tied_to is None and self.part != "mtp"


class Walk(NamedTuple):
    """The pieces of a model, what its symbols stand for, and which of its sizes had to stay numbers."""

    pieces: tuple[Piece, ...]
    values: Mapping[str, int]
    kept: Mapping[str, int]
    c: Any  # the sizes as the declaration took them

    def at(self, size: Size) -> int:
        """The value of a number or a polynomial."""
        return value_of(size, self.values)


def value_of(size: Size, values: Mapping[str, int]) -> int:
    n: int = size._at(values) if isinstance(size, Polynomial) else size
    return n


def polynomial(size: Size) -> Polynomial:
    """A number or a polynomial as a polynomial."""
    return size if isinstance(size, Polynomial) else Polynomial({(): size})


def numbers(sizes: Sizes, prefix: str = "") -> dict[str, int]:
    """Every size that is a number, in the order of its declaration, those of inner configs by their paths: "vision.n_layers"."""
    found: dict[str, int] = {}
    for name, value in sizes.__dict__.items():
        if name in inner_configs(type(sizes)) and value is not None:
            found |= numbers(value, f"{prefix}{name}.")
        elif type(value) is int:
            found[prefix + name] = value
    return found


def walk(sizes: Sizes, head: bool = True, given: frozenset[str] = frozenset()) -> Walk:
    """Every weight with as many sizes named as the structure leaves free. `given`: sizes that stay numbers whatever it leaves."""
    values = numbers(sizes)
    counted = walked(sizes, head)
    for kept in chosen(values, given):
        c = make_symbolic(sizes, False, kept=kept)
        try:
            found = walked(c, head)
        except UNWALKED:
            continue
        named = {name: value for name, value in values.items() if name not in kept}
        if same(found, counted, named):
            return Walk(tuple(found), named, {name: value for name, value in values.items() if name in kept}, c)
    raise AssertionError("a walk over numbers equals itself")


def chosen(values: Mapping[str, int], given: frozenset[str]) -> Iterator[frozenset[str]]:
    """Which sizes to keep as numbers, the fewest first: none, one, how many there are of something, then one more at a time."""
    first = sorted(values, key=lambda name: not how_many(name))
    yield given
    yield from (given | {name} for name in first)
    yield given | {name for name in values if how_many(name)}
    yield from (given | set(first[: i + 1]) for i in range(len(first)))


def how_many(name: str) -> bool:
    return name.rpartition(".")[2].startswith("n_")


def same(found: list[Piece], counted: list[Piece], values: Mapping[str, int]) -> bool:
    """Whether symbols gave what the numbers give. A branch that compares sizes does not stop at symbols."""
    at = [piece for piece in found if value_of(piece.layers, values)]
    return len(at) == len(counted) and all(
        a[:5] == b[:5] and [value_of(n, values) for n in (*a.shape, a.each, a.used, a.layers)] == [*b.shape, b.each, b.used, b.layers]
        for a, b in zip(at, counted)
    )


def walked(c: Any, head: bool) -> list[Piece]:
    """The pieces of a declaration, in the order the forward pass reads them."""
    found: list[Piece] = []
    for out, part in list_flows(c, head):
        stacks = name_stacks(list_steps(out, part))
        for record in list_weights(out, part):
            layer, expert = record.layer, record.expert
            others = prod(repeat.count for repeat in record.repeats if repeat is not layer and repeat is not expert)
            stack = stacks[id(layer)] if layer else ""
            for component, shape in record.share_shapes:
                one = prod(shape) * others
                found.append(Piece(record.name, component, record.part, record.weight.role, record.tied_to, shape, one, stack, layer, expert))
    return found
