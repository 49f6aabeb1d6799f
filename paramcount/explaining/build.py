"""Builds an explanation from symbolic weights: lines, sizes and components outside the total."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from paramcount.explaining.active import list_expert_groups
from paramcount.explaining.explanation import Component, Explanation, Size
from paramcount.explaining.glossary import describe_size
from paramcount.explaining.lines import find_kinds, list_components
from paramcount.explaining.pieces import PieceWalk, count_one
from paramcount.flow import TensorRow
from paramcount.sizes import DEFAULT
from paramcount.zoo import Model
from paramcount.zoo.what_if import describe_changes


def build_explanation(
    model: Model,
    walk: PieceWalk,
    rows: Sequence[TensorRow],
    not_included: Mapping[str, Sequence[TensorRow]],
    *,
    of: str = "model",
    subject: str = "",
    notes: Iterable[str] = (),
) -> Explanation:
    """The explanation of some weights of a model. `not_included`: {name: weights outside the total}."""
    components = list_components(rows, walk)
    others = [merge_components(name, list_components(group, walk)) for name, group in not_included.items() if group]
    all_rows = [*rows, *(row for group in not_included.values() for row in group)]
    untied = [row for row in rows if row.tied_to is None]
    return Explanation(
        id=model.id,
        name=model.name,
        of=of,
        subject=subject,
        total=sum(component.value for component in components),
        active=sum(component.active for component in components),
        sizes=list_sizes(model, walk, list_numbers(all_rows)),
        fixed_sizes=tuple(make_size(model, name, value) for name, value in walk.fixed.items()),
        components=components,
        expert_groups=tuple(list_expert_groups(untied, walk, find_kinds(rows, walk))),
        not_included=tuple(other for other in others if other.value),
        changes=tuple(describe_changes(model)),
        notes=tuple(notes),
    )


def merge_components(name: str, components: Sequence[Component]) -> Component:
    """Several components merged into one."""
    lines = tuple(line for component in components for line in component.lines)
    return Component(name, sum(line.value for line in lines), sum(line.active for line in lines), lines)


def list_numbers(rows: Iterable[TensorRow]) -> Iterator[object]:
    """The numbers in the formulas of these weights."""
    for row in rows:
        yield count_one(row)
        yield from (row.expert.count, row.expert.active) if row.expert else ()
        yield from (row.layer.count,) if row.layer else ()


def list_sizes(model: Model, walk: PieceWalk, numbers: Iterable[object]) -> tuple[Size, ...]:
    """The sizes in the formulas, in the order in which the architecture declares them."""
    used = {name for number in numbers for name in getattr(number, "names", ())}
    return tuple(make_size(model, name, value) for name, value in walk.values.items() if name in used)


def make_size(model: Model, name: str, value: int) -> Size:
    meaning, key = describe_size(model.sizes, name)
    origin = model.reading.origin.get(name, DEFAULT)
    return Size(name, value, meaning, origin.keys[0] if origin.kind == "read" else key)
