"""All weights of a model with polynomials as sizes, checked against the same weights with numbers as sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from paramcount.counting.sum_weights import STRUCTURE_ERRORS, list_numbers, list_weight_flows, make_symbolic
from paramcount.flow import Size, TensorRow, list_rows, multiply
from paramcount.sizes import Sizes
from paramcount.symbolic.polynomials import Condition, Polynomial, decide_by


class PieceWalk(NamedTuple):
    """The weights of a model, the values of its symbols, and the sizes that stay numbers."""

    rows: tuple[TensorRow, ...]  # a fused tensor is several, one of each component
    values: Mapping[str, int]
    fixed: Mapping[str, int]
    c: Sizes  # a stand-in with symbols as sizes
    conditions: tuple[Condition, ...]  # which sizes are equal: other sizes have other weights

    def evaluate(self, size: Size) -> int:
        return evaluate(size, self.values)

    def has_layers(self, row: TensorRow) -> bool:
        return row.layer is not None and self.evaluate(row.layer.count) > 0


def evaluate(size: Size, values: Mapping[str, int]) -> int:
    n: int = size.substitute(values) if isinstance(size, Polynomial) else size
    return n


def walk_model(sizes: Sizes, head: bool = True, numeric: frozenset[str] = frozenset()) -> PieceWalk:
    """All weights, with as many symbolic sizes as the structure allows. `numeric`: sizes to keep as numbers."""
    values = list_numbers(sizes)
    expected = list_shares(sizes, head)
    for fixed in choose_fixed(values, numeric):
        c = make_symbolic(sizes, False, concrete=fixed)
        try:
            with decide_by(values) as decisions:
                rows = list_shares(c, head)
        except STRUCTURE_ERRORS:
            continue
        free = {name: value for name, value in values.items() if name not in fixed}
        if are_equal(rows, expected, free):
            numbers = {name: value for name, value in values.items() if name in fixed}
            return PieceWalk(tuple(rows), free, numbers, c, decisions.conditions)
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


def are_equal(symbolic: list[TensorRow], expected: list[TensorRow], values: Mapping[str, int]) -> bool:
    """Whether symbolic weights have the expected sizes. They may differ if the forward pass branches on a size."""
    present = [row for row in symbolic if row.layer is None or evaluate(row.layer.count, values)]
    if len(present) != len(expected):
        return False
    return all(list_facts(a, values) == list_facts(b, values) for a, b in zip(present, expected, strict=True))


def list_facts(row: TensorRow, values: Mapping[str, int]) -> list[object]:
    """What is equal for equal weights."""
    sizes = (*row.matrix, count_each(row), count_active(row), row.layer.count if row.layer else 1)
    return [row.name, row.component, row.part, row.role, row.tied_to, *(evaluate(n, values) for n in sizes)]


def list_shares(c: Sizes, head: bool) -> list[TensorRow]:
    """The weights in the order of the forward pass; a fused one is several, one of each component."""
    return [share for out, part in list_weight_flows(c, head) for row in list_rows(out, part) for share in row.split()]


def count_one(row: TensorRow) -> Size:
    """Parameters per layer and expert."""
    others = [repeat.count for repeat in row.repeats if repeat is not row.layer and repeat is not row.expert]
    return multiply([*row.matrix, *others])


def count_each(row: TensorRow) -> Size:
    """Parameters per layer, all experts together."""
    return count_one(row) * row.expert.count if row.expert else count_one(row)


def count_active(row: TensorRow) -> Size:
    """Parameters per layer that one token uses."""
    return count_one(row) * row.expert.active if row.expert else count_one(row)


def is_bias(row: TensorRow) -> bool:
    """Whether it is the bias of a matrix; `dt_bias` is a parameter of the recurrence."""
    return row.name.rpartition(".")[2].endswith("bias") and not row.component.endswith(".state")


def name_module(row: TensorRow) -> str:
    return row.name.removesuffix(".weight").removesuffix(".bias")
