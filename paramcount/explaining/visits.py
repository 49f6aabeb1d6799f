"""How the active figure arises: all experts, those that one token visits, and the rest."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from paramcount.counting import place
from paramcount.explaining.explanation import Visit
from paramcount.explaining.lines import Kinds, words_of
from paramcount.explaining.pieces import Piece, Walk, value_of
from paramcount.factoring import TEXT, factored, in_numbers, written
from paramcount.polynomials import Polynomial

PRODUCTS = TEXT._replace(times=" × ", tight="×")


def visits(pieces: Sequence[Piece], walk: Walk, kinds: Kinds) -> Iterator[Visit]:
    """A visit for each group of equal experts: of one component, so many to a layer, each as large."""
    found: dict[tuple[str, str, int, int], dict[Hashable, tuple[int, Polynomial]]] = {}
    for piece in pieces:
        if piece.expert is None or not walk.at(piece.layers):
            continue
        experts, visited = walk.at(piece.expert.count), walk.at(piece.expert.active)
        if experts == visited:
            continue
        key = (place(piece.part, piece.component)[0], piece.stack, experts, visited)
        held = found.setdefault(key, {})
        held[piece.kind] = walk.at(piece.layers), held.get(piece.kind, (0, Polynomial({})))[1] + piece.one
    for (component, stack, experts, visited), held in found.items():
        equal: dict[Polynomial, list[Hashable]] = {}
        for kind, (_, one) in held.items():
            equal.setdefault(one, []).append(kind)
        for one, alike in equal.items():
            layers, size = sum(held[kind][0] for kind in alike), value_of(one, walk.values)
            words = words_of([(stack, kind) for kind in alike], [(stack, kind) for kind in kinds.get(stack, alike)])
            tree = factored(one.terms)
            all, used = layers * experts * size, layers * visited * size
            yield Visit(
                component, layers, words, experts, visited, written(tree, PRODUCTS), written(tree, in_numbers(PRODUCTS, walk.values)),
                size, all, used, all - used,
            )  # fmt: skip
