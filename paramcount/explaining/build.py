"""An explanation put together: its lines, what stands beside them, the legend of the sizes they name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paramcount.explaining.active import visits
from paramcount.explaining.explanation import Component, Explanation, Size
from paramcount.explaining.glossary import meaning
from paramcount.explaining.lines import components, kinds_of
from paramcount.explaining.pieces import Piece, Walk
from paramcount.sizes import DEFAULT
from paramcount.zoo import Model
from paramcount.zoo.what_if import describe_changes


def explanation(
    model: Model,
    found: Walk,
    pieces: Sequence[Piece],
    beside: dict[str, list[Piece]],
    *,
    of: str = "model",
    subject: str = "",
    remarks: Iterable[str] = (),
) -> Explanation:
    """The explanation of some of a model's weights, with what stands beside them."""
    parts = components(pieces, found)
    others = tuple(together(name, components(held, found)) for name, held in beside.items() if held)
    return Explanation(
        id=model.id,
        name=model.name,
        of=of,
        subject=subject,
        total=sum(part.value for part in parts),
        active=sum(part.active for part in parts),
        sizes=legend(model, found, [*pieces, *(piece for held in beside.values() for piece in held)]),
        kept=tuple(size(model, name, value) for name, value in found.kept.items()),
        components=parts,
        visits=tuple(visits([piece for piece in pieces if piece.tied_to is None], found, kinds_of(pieces, found))),
        beside=tuple(other for other in others if other.value),
        changes=tuple(describe_changes(model)),
        remarks=tuple(remarks),
    )


def together(name: str, parts: Sequence[Component]) -> Component:
    lines = tuple(line for part in parts for line in part.lines)
    return Component(name, sum(line.value for line in lines), sum(line.active for line in lines), lines)


def legend(model: Model, found: Walk, pieces: Sequence[Piece]) -> tuple[Size, ...]:
    """The sizes that the formulas name, in the order of the declaration."""
    used: set[str] = set()
    for piece in pieces:
        for number in (piece.one, piece.layers, *((piece.expert.count, piece.expert.active) if piece.expert else ())):
            used.update(getattr(number, "names", ()))
    return tuple(size(model, name, value) for name, value in found.values.items() if name in used)


def size(model: Model, name: str, value: int) -> Size:
    words, key = meaning(model.sizes, name)
    origin = model.reading.origin.get(name, DEFAULT)
    return Size(name, value, words, origin.keys[0] if origin.kind == "read" else key)
