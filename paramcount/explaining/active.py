"""The arithmetic of active parameters: all experts, the active ones and the inactive ones of each expert group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paramcount.explaining.explanation import ExpertGroup
from paramcount.explaining.lines import Kinds, find_common_words
from paramcount.explaining.pieces import PieceWalk, count_one, evaluate, is_bias
from paramcount.flow import Repeat, TensorRow
from paramcount.output.layer_kinds import name_words
from paramcount.symbolic.factoring import TEXT, factor, format_formula, substitute_values
from paramcount.symbolic.polynomials import Polynomial

PRODUCTS = TEXT._replace(times=" × ", tight="×")
ONCE = Repeat("layer", 1, 1)


def list_expert_groups(rows: Sequence[TensorRow], walk: PieceWalk, kinds: Kinds) -> Iterator[ExpertGroup]:
    """Groups of equal experts: same component, same number per layer, same size."""
    groups: dict[tuple[str, str, int, int, int], dict[Repeat, tuple[Polynomial, Polynomial]]] = {}
    for row in rows:
        if row.expert is None or (row.layer and not walk.has_layers(row)):
            continue
        experts, active = walk.evaluate(row.expert.count), walk.evaluate(row.expert.active)
        if experts == active:
            continue
        least = active if row.expert.least is None else walk.evaluate(row.expert.least)
        component = row.main_component
        by_layer = groups.setdefault((component, row.stack, experts, active, least), {})
        layer = row.layer or ONCE
        weights, biases = by_layer.get(layer, (Polynomial({}), Polynomial({})))
        by_layer[layer] = (weights, biases + count_one(row)) if is_bias(row) else (weights + count_one(row), biases)
    for (component, stack, experts, active, least), by_layer in groups.items():
        by_size: dict[tuple[Polynomial, Polynomial], list[Repeat]] = {}
        for layer, sizes in by_layer.items():
            by_size.setdefault(sizes, []).append(layer)
        for sizes, repeats in by_size.items():
            layers = sum(walk.evaluate(layer.count) for layer in repeats)
            one = sum(evaluate(size, walk.values) for size in sizes)
            kinds_of_stack = [layer.kind for layer in kinds.get(stack, repeats)]
            kind = name_words(find_common_words([layer.kind for layer in repeats], kinds_of_stack))
            trees = [factor(size.terms) for size in sizes if size.terms]
            formula = " + ".join(format_formula(tree, PRODUCTS) for tree in trees)
            numbers = " + ".join(format_formula(tree, substitute_values(PRODUCTS, walk.values)) for tree in trees)
            n_all, n_active = layers * experts * one, layers * active * one
            counts = (layers, kind, experts, active, least)
            yield ExpertGroup(component, *counts, formula, numbers, one, n_all, n_active, n_all - n_active)
