"""How the active figure arises: all experts, those that one token visits, and the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paramcount.counting.tensors import locate_component
from paramcount.explaining.explanation import Visit
from paramcount.explaining.lines import Kinds, words_of
from paramcount.explaining.pieces import Piece, Walk, value_of
from paramcount.flow import Repeat
from paramcount.symbolic.factoring import TEXT, factor, format_formula, substitute
from paramcount.symbolic.polynomials import Polynomial

PRODUCTS = TEXT._replace(times=" × ", tight="×")
ONCE = Repeat("layer", 1, 1)


def visits(pieces: Sequence[Piece], walk: Walk, kinds: Kinds) -> Iterator[Visit]:
    """A visit for each group of equal experts: of one component, so many to a layer, each as large."""
    found: dict[tuple[str, str, int, int, int], dict[Repeat, tuple[Polynomial, Polynomial]]] = {}
    for piece in pieces:
        if piece.expert is None or not walk.at(piece.layers):
            continue
        experts, visited = walk.at(piece.expert.count), walk.at(piece.expert.active)
        if experts != visited:
            least = visited if piece.expert.least is None else walk.at(piece.expert.least)
            held = found.setdefault((locate_component(piece.part, piece.component)[0], piece.stack, experts, visited, least), {})
            weights, biases = held.get(piece.layer or ONCE, (Polynomial({}), Polynomial({})))
            held[piece.layer or ONCE] = (weights, biases + piece.one) if piece.bias else (weights + piece.one, biases)
    for (component, stack, experts, visited, least), held in found.items():
        equal: dict[tuple[Polynomial, Polynomial], list[Repeat]] = {}
        for layer, one in held.items():
            equal.setdefault(one, []).append(layer)
        for one, alike in equal.items():
            layers, size = sum(walk.at(layer.count) for layer in alike), sum(value_of(half, walk.values) for half in one)
            words = words_of([layer.kind for layer in alike], [layer.kind for layer in kinds.get(stack, alike)])
            trees = [factor(half.terms) for half in one if half != 0]
            formula, numbers = (" + ".join(format_formula(tree, style) for tree in trees) for style in (PRODUCTS, substitute(PRODUCTS, walk.values)))
            all, used = layers * experts * size, layers * visited * size
            yield Visit(component, layers, words, experts, visited, least, formula, numbers, size, all, used, all - used)
