"""Explains the parameters of a model, a layer or an attention head by formulas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from paramcount.counting.tensors import sum_unreachable
from paramcount.errors import join_words
from paramcount.explaining.explanation import Component, ExpertGroup, Explanation, Size
from paramcount.explaining.glossary import describe_size
from paramcount.explaining.lines import Kinds, find_common_words, find_kinds, list_components, sum_component
from paramcount.explaining.pieces import PieceWalk, count_one, evaluate, is_bias, walk_model
from paramcount.flow import Repeat, TensorRow
from paramcount.output.layer_kinds import name_words
from paramcount.sizes import DEFAULT
from paramcount.symbolic.factoring import TEXT, factor, format_formula, substitute_values
from paramcount.symbolic.polynomials import Polynomial, decide_by
from paramcount.zoo import Model
from paramcount.zoo.what_if import describe_changes

NOT_INCLUDED = {"MTP": "mtp", "buffers": "buffer"}  # {name: kind of tensors}
PRODUCTS = TEXT._replace(times=" × ", tight="×")
ONCE = Repeat("layer", 1, 1)


@decide_by(None)  # two formulas are written as one only if they are the same for all sizes
def explain_model(model: Model, *, layer: int | str | None = None, head: bool = False) -> Explanation:
    """The explanation of a model, of one of its layers, or of one attention head."""
    walk = walk_model(model.sizes, model.reading.head)
    if head:
        from paramcount.explaining.heads import explain_head  # most explanations do not need it

        return explain_head(model, walk, layer)
    if layer is not None:
        from paramcount.explaining.layers import explain_layer

        return explain_layer(model, walk, layer)
    main = [row for row in walk.rows if row.kind in ("total", "tied") and row.role == "parameter"]
    others = {name: [row for row in walk.rows if row.kind == kind] for name, kind in NOT_INCLUDED.items()}
    not_included = [
        sum_component(name, tuple(chain.from_iterable(component.lines for component in list_components(rows, walk))))
        for name, rows in others.items()
    ]
    not_counted = model.reading.not_counted
    notes = [f"not included in the total: {', '.join(not_counted)}"] if not_counted else []
    if walk.conditions:
        notes.append(f"the formulas hold if {join_words(map(str, walk.conditions), 'and')}")
    for reason, n in sum_unreachable(model.sizes, model.reading.head).items():
        notes.append(f"not included in the total: unreachable {n:,} ({reason})")
    numbers = list_numbers(chain(*others.values()))
    return make_explanation(
        model, walk, list_components(main, walk), main, not_included=not_included, numbers=numbers, notes=notes
    )


def make_explanation(
    model: Model,
    walk: PieceWalk,
    components: Sequence[Component],
    rows: Sequence[TensorRow] = (),
    *,
    not_included: Iterable[Component] = (),
    numbers: Iterable[object] = (),
    notes: Iterable[str] = (),
) -> Explanation:
    """The explanation of a model by components, with the sizes in their tensors and in `numbers`, in the order in which
    the architecture declares them. `rows`: the tensors of the components, for their experts."""
    used = {name for number in chain(list_numbers(rows), numbers) for name in getattr(number, "names", ())}
    untied = [row for row in rows if row.tied_to is None]
    return Explanation(
        id=model.id,
        name=model.name,
        of="model",
        subject="",
        total=sum(component.value for component in components),
        active=sum(component.active for component in components),
        sizes=tuple(make_size(model, name, value) for name, value in walk.values.items() if name in used),
        fixed_sizes=tuple(make_size(model, name, value) for name, value in walk.fixed.items()),
        components=tuple(components),
        expert_groups=tuple(list_expert_groups(untied, walk, find_kinds(rows, walk))),
        not_included=tuple(component for component in not_included if component.value),
        changes=tuple(describe_changes(model)),
        notes=tuple(notes),
    )


def list_numbers(rows: Iterable[TensorRow]) -> Iterator[object]:
    for row in rows:
        yield count_one(row)
        yield from (row.expert.count, row.expert.active) if row.expert else ()
        yield from (row.layer.count,) if row.layer else ()


def make_size(model: Model, name: str, value: int) -> Size:
    meaning, key = describe_size(model.sizes, name)
    origin = model.reading.origin.get(name, DEFAULT)
    return Size(name, value, meaning, origin.keys[0] if origin.kind == "read" else key)


# ---- experts


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
