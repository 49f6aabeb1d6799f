"""The lines of an explanation: one formula for equal weights, with the layers that have them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from paramcount.counting.components import COMPONENTS, PARTS, TOWERS
from paramcount.errors import make_printable
from paramcount.explaining.explanation import Component, Line
from paramcount.explaining.pieces import PieceWalk, count_active, count_each, evaluate, is_bias, name_module
from paramcount.flow import Repeat, Size, TensorRow
from paramcount.output.layer_kinds import FLAGS, name_words
from paramcount.symbolic.factoring import LATEX, TEXT, factor, format_formula, group_digits, substitute_values
from paramcount.symbolic.polynomials import Polynomial, to_polynomial

DEEPEST = 1  # nested brackets in a formula; deeper ones are split by detail, or at one level more by tensor
LONGEST = 110  # characters in a formula; longer ones are split too
BY_MODULE = ("router", "mixer", "other")  # components of different modules, each with its own lines
KV_KINDS = {"own", "shared"}  # layers with keys and values of their own, and layers that reuse those of another
MOST_NAMED = 3  # kinds of layers to list if they have no common name

Kinds = Mapping[str, tuple[Repeat, ...]]  # {stack: the kinds of its layers}


class ComponentShare(NamedTuple):
    """The parameters of layers with equal shapes, or outside all layers."""

    layers: str  # "58 MoE layers"
    formula: Polynomial
    active: Polynomial  # parameters that one token uses
    values: Mapping[str, int]


def find_kinds(rows: Sequence[TensorRow], walk: PieceWalk) -> Kinds:
    kinds: dict[str, dict[Repeat, None]] = {}
    for row in rows:
        if row.layer and walk.has_layers(row):
            kinds.setdefault(row.stack, {})[row.layer] = None
    return {stack: tuple(repeats) for stack, repeats in kinds.items()}


def list_components(rows: Sequence[TensorRow], walk: PieceWalk) -> tuple[Component, ...]:
    """The components of these weights, in the order of `COMPONENTS`."""
    kinds = find_kinds(rows, walk)
    by_name: dict[str, list[TensorRow]] = {}
    for row in rows:
        by_name.setdefault(row.main_component, []).append(row)
    components = []
    for name in sorted(by_name, key=COMPONENTS.index):
        group = by_name[name]
        paths = [row.detail for row in group]
        depth = 2 if name in TOWERS and any("." in path for path in paths) else 1
        lines = tuple(make_lines(name, [row for row in group if row.tied_to is None], walk, kinds, depth))
        tied_to = next((row.tied_to for row in group if row.tied_to), None)
        if lines or tied_to:
            lines = lines or (make_tied_line(name, group[0].part, tied_to, walk),)
            components.append(sum_component(name, lines))
    return tuple(components)


def sum_component(name: str, lines: tuple[Line, ...]) -> Component:
    return Component(name, sum(line.value for line in lines), sum(line.active for line in lines), lines)


def make_tied_line(name: str, part: str, tied_to: str | None, walk: PieceWalk) -> Line:
    targets = (row.component for row in walk.rows if row.name == tied_to and row.component != name)
    return Line(name, "", part, "", "weights", "", "", 0, 0, f"tied to {next(targets, str(tied_to))}", "", "")


def make_lines(name: str, rows: Sequence[TensorRow], walk: PieceWalk, kinds: Kinds, depth: int) -> Iterator[Line]:
    """One line for the weights and one for the biases of each part and kind of layer; more if a formula gets long."""
    modules = {name_module(row) for row in rows if row.component in BY_MODULE}
    by_module = name == "other" or len(modules) > 1
    groups: dict[tuple[str, str], list[TensorRow]] = {}
    for row in rows:
        is_module = by_module and name_module(row) in modules if depth == 1 else row.component == "mixer.state"
        groups.setdefault((row.part, name_module(row) if is_module else name_detail(row, depth)), []).append(row)
    for (part, detail), group in sorted(groups.items(), key=lambda item: PARTS.index(item[0][0])):
        lines = []
        for of in ("weights", "biases"):
            half = [row for row in group if is_bias(row) == (of == "biases")]
            for share in make_shares(half, walk, kinds):
                line = make_line(share, name, detail if depth > 1 or detail != name else "", part, of)
                lines += [line] if line.value else []
        names_at = {d: {name_detail(row, d) for row in group} for d in range(depth + 1, depth + 4)}
        deeper = next((d for d, names in names_at.items() if len(names) > 1), None)
        splits_tensors = deeper is not None and any(name_detail(row, deeper) == row.name for row in group)
        if deeper and any(is_long(line.formula, DEEPEST + splits_tensors) for line in lines):
            yield from make_lines(name, group, walk, kinds, deeper)
        else:
            yield from lines


def name_detail(row: TensorRow, depth: int) -> str:
    """The first `depth` names of a path such as "vision.qkv.q"; the name of the tensor if the path is shorter."""
    names = row.detail.split(".")
    return row.name if depth > len(names) else ".".join(names[:depth])


def is_long(formula: str, allowed: int) -> bool:
    """Whether a formula is hard to check by hand. `allowed`: levels of nested brackets."""
    depth = deepest = 0
    for character in formula:
        depth += (character == "(") - (character == ")")
        deepest = max(depth, deepest)
    return deepest > allowed or len(formula) > LONGEST


def make_line(share: ComponentShare, component: str, detail: str, part: str, of: str) -> Line:
    tree, values = factor(share.formula.terms), share.values
    return Line(
        component, detail, part, share.layers, of,
        format_formula(tree), format_formula(tree, substitute_values(TEXT, values)),
        evaluate(share.formula, values), evaluate(share.active, values), "",
        format_formula(tree, LATEX), format_formula(tree, substitute_values(LATEX, values)),
    )  # fmt: skip


# ---- layers


def make_shares(rows: Sequence[TensorRow], walk: PieceWalk, kinds: Kinds) -> list[ComponentShare]:
    """One share per distinct layer size. Parameters outside all layers are added to a single share, or are another."""
    outside, active = Polynomial({}), Polynomial({})
    by_layer: dict[Repeat, tuple[Size, Size]] = {}
    for row in rows:
        if row.layer is None:
            outside, active = outside + count_each(row), active + count_active(row)
        elif walk.has_layers(row):
            each, active_each = by_layer.get(row.layer, (0, 0))
            by_layer[row.layer] = each + count_each(row), active_each + count_active(row)
    by_size: dict[tuple[Polynomial, Polynomial], list[Repeat]] = {}
    for layers, (each, active_each) in by_layer.items():
        by_size.setdefault((to_polynomial(each), to_polynomial(active_each)), []).append(layers)
    all_layers = [layers for stack in dict.fromkeys(layers.stack for layers in by_layer) for layers in kinds[stack]]
    shares = []
    for (each, active_each), equal in by_size.items():
        words = name_kinds([layers.kind for layers in equal], [layers.kind for layers in all_layers])
        times, values = name_number(to_polynomial(sum(layers.count for layers in equal)), words, walk)
        label = format_layers(evaluate(times, values), words) if len(equal) < len(all_layers) else ""
        shares.append(ComponentShare(label, times * each, times * active_each, values))
    if len(shares) == 1 and outside == 0:
        return shares
    if len(shares) < 2:
        one = shares[0] if shares else ComponentShare("", Polynomial({}), Polynomial({}), walk.values)
        return [ComponentShare("", one.formula + outside, one.active + active, one.values)]
    return [*shares, ComponentShare("outside layers", outside, active, walk.values)]


def name_number(number: Polynomial, words: str, walk: PieceWalk) -> tuple[Polynomial, Mapping[str, int]]:
    """A number of layers as a factor; a plain number gets a name such as "28 Mamba layers"."""
    if number.names:
        return number, walk.values
    n = evaluate(number, {})
    if n == 1:
        return number, walk.values
    name = format_layers(n, words)
    return Polynomial({((name, 1),): 1}), {**walk.values, name: n}


def name_kinds(kinds: Sequence[Hashable], all_kinds: Sequence[Hashable]) -> str:
    """The words for `kinds` of layers before "layers".

    >>> name_kinds([("sliding_attention", "own")], [("sliding_attention", "own"), ("sliding_attention", "shared")])
    'own-KV'
    """
    words = find_common_words(kinds, all_kinds)
    if words in KV_KINDS and all(KV_KINDS & set(split_kind(kind)) for kind in all_kinds):
        return f"{words}-KV"
    return name_words(words).replace("_", "-")


def format_layers(n: int, words: str) -> str:
    if n == 1 and words == "first":
        return "first layer"
    return " ".join(filter(None, [group_digits(n), words, "layer" if n == 1 else "layers"]))


def find_common_words(kinds: Sequence[Hashable], all_kinds: Sequence[Hashable]) -> str:
    """The words that `kinds` of layers have in common and the other kinds lack; "" for all kinds.

    >>> kinds = [("mamba", "moe"), ("mamba", "dense"), ("attention", "moe")]
    >>> find_common_words(kinds[:2], kinds), find_common_words(kinds[2:], kinds), find_common_words(kinds, kinds)
    ('mamba', 'attention', '')
    """
    if len(kinds) == len(all_kinds):
        return ""
    rows = [split_kind(kind) for kind in kinds]
    others = [split_kind(kind) for kind in all_kinds if kind not in kinds]
    first = rows[0]
    shared = [i for i, word in enumerate(first) if word and all(row[i : i + 1] == (word,) for row in rows)]
    differing = [i for i in shared if any(row[i : i + 1] != (first[i],) for row in others)]
    unique = [i for i in shared if all(row[i : i + 1] != (first[i],) for row in others)]
    words = [first[i] for i in unique[:1] or differing]
    if not words and len(rows) <= MOST_NAMED:
        words = [" and ".join(dict.fromkeys(" ".join(word for word in row if word not in FLAGS) for row in rows))]
    return " ".join(NO_LETTER.sub(" ", make_printable(" ".join(words), 60)).split())


def split_kind(kind: Hashable) -> tuple[str, ...]:
    """The words of a kind at their positions; "" for other values and for "layer", which all kinds may share."""
    names = kind if isinstance(kind, tuple) else (kind,)
    return tuple(word if isinstance(word, str) and word != "layer" else "" for word in names)


NO_LETTER = re.compile(r"[^A-Za-z_/-]+")  # characters that have another meaning in a formula
