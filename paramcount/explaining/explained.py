"""Where a model's parameters come from, formula by formula."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paramcount.changing import said
from paramcount.explaining.explanation import Component, Explanation, Size
from paramcount.explaining.lines import components, kinds_of
from paramcount.explaining.meanings import meaning
from paramcount.explaining.pieces import Piece, Walk, walk
from paramcount.explaining.visits import visits
from paramcount.names import load
from paramcount.zoo import Model


def explain(spec: object, *, layer: int | str | None = None, head: bool = False, download: bool = False) -> Explanation:
    """Where a model's parameters come from: for each component the formula in named sizes, the same with its numbers, and the value.

    `spec`: as for `paramcount.load`. `layer`: one layer alone: an index of the decoder's stack, or a stack of the checkpoint with one,
    such as "model.encoder.layers.3". `head`: one attention head, of that layer or the first that has any.

    >>> line = explain("llama-3.1-8b").components[1].lines[0]
    >>> line.formula, line.numbers, line.value
    ('n_layers · d_model · d_head · (n_heads + 2·n_kv_heads)', '32 · 4,096 · 128 · (32 + 2·8)', 805306368)

    Units: parameters. Raises: ParamcountError as `paramcount.load` does; for a layer that is not there, or without heads where one is asked for.
    """
    model = load(spec, download=download)
    found = walk(model.sizes, model.reading.head)
    if head:
        from paramcount.explaining.heads import one_head

        return one_head(model, found, layer)
    if layer is not None:
        from paramcount.explaining.layers import one_layer

        return one_layer(model, found, layer)
    pieces = [piece for piece in found.pieces if piece.role == "parameter" and piece.part != "mtp"]
    beside = {
        "MTP": [piece for piece in found.pieces if piece.part == "mtp" and piece.role == "parameter" and piece.tied_to is None],
        "buffers": [piece for piece in found.pieces if piece.part != "mtp" and piece.role == "buffer"],
    }
    left_out = model.reading.not_counted
    return explanation(model, found, pieces, beside, remarks=[f"not counted: {', '.join(left_out)}"] if left_out else [])


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
        changes=tuple(said(model)),
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
    origin = model.reading.origin.get(name, "default")
    read = origin not in ("default", "derived", "set") and not origin.startswith("derived from ")
    return Size(name, value, words, origin if read else key)
