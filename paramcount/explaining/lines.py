"""The lines of an explanation: which weights share a formula, and of which layers."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from paramcount.counting.count import COMPONENTS, PARTS
from paramcount.counting.tensors import TOWERS, locate_component
from paramcount.errors import make_printable
from paramcount.explaining.explanation import Component, Line
from paramcount.explaining.pieces import Piece, Walk, polynomial, value_of
from paramcount.flow import Repeat, Size
from paramcount.symbolic.factoring import LATEX, TEXT, factor, format_formula, group_digits, substitute
from paramcount.symbolic.polynomials import Polynomial

DEEPEST = 1  # brackets within each other: a component with more is opened; by one more where it opens into tensors alone
LONGEST = 110  # characters of a formula, likewise
MOST_NAMED = 3  # kinds of layers, where one name does not fit them all

Kinds = Mapping[str, tuple[Repeat, ...]]  # {stack: the kinds of its layers}
Layers = tuple[str, Repeat]  # (the stack, those of one kind)


class Share(NamedTuple):
    """What equal layers hold, or what stands outside of all."""

    layers: str  # "28 mamba layers"
    formula: Polynomial
    used: Polynomial  # of it, by one token
    values: Mapping[str, int]


def kinds_of(pieces: Sequence[Piece], walk: Walk) -> Kinds:
    """The kinds of layers of every stack."""
    found: dict[str, dict[Repeat, None]] = {}
    for piece in pieces:
        if piece.layer and walk.at(piece.layers):
            found.setdefault(piece.stack, {})[piece.layer] = None
    return {stack: tuple(repeats) for stack, repeats in found.items()}


def components(pieces: Sequence[Piece], walk: Walk) -> tuple[Component, ...]:
    """The components that these weights belong to, in the order of the overview; what is tied says to what."""
    kinds = kinds_of(pieces, walk)
    by_name: dict[str, list[Piece]] = {}
    for piece in pieces:
        by_name.setdefault(locate_component(piece.part, piece.component)[0], []).append(piece)
    found = []
    for name in sorted(by_name, key=COMPONENTS.index):
        held = by_name[name]
        of_tower = name in TOWERS and any("." in locate_component(piece.part, piece.component)[1] for piece in held)
        own = tuple(lines(name, [piece for piece in held if piece.tied_to is None], walk, kinds, 2 if of_tower else 1))
        tied = next((piece.tied_to for piece in held if piece.tied_to), None)
        if own or tied:
            found.append(component(name, own or (tied_line(name, held[0].part, tied, walk),)))
    return tuple(found)


def component(name: str, own: tuple[Line, ...]) -> Component:
    return Component(name, sum(line.value for line in own), sum(line.active for line in own), own)


def tied_line(name: str, part: str, tied_to: str | None, walk: Walk) -> Line:
    to = next((piece.component for piece in walk.pieces if piece.name == tied_to and piece.component != name), str(tied_to))
    return Line(name, "", part, "", "weights", "", "", 0, 0, f"tied to {to}", "", "")


def lines(name: str, pieces: Sequence[Piece], walk: Walk, kinds: Kinds, depth: int) -> Iterator[Line]:
    """A line for the weights and one for the biases of each part and each kind of layer; opened where a formula gets long."""
    groups: dict[tuple[str, str], list[Piece]] = {}
    for piece in pieces:
        groups.setdefault((piece.part, opened(piece, depth)), []).append(piece)
    for (part, detail), group in sorted(groups.items(), key=lambda item: PARTS.index(item[0][0])):
        halves = [(of, [piece for piece in group if piece.bias == (of == "biases")]) for of in ("weights", "biases")]
        made = [line(share, name, detail if depth > 1 else "", part, of) for of, half in halves for share in shares(half, walk, kinds)]
        made = [each for each in made if each.value]
        deeper = next((d for d in range(depth + 1, depth + 4) if len({opened(piece, d) for piece in group}) > 1), None)
        into_tensors = deeper is not None and any(opened(piece, deeper) == piece.name for piece in group)
        if deeper and any(long(each.formula, DEEPEST + into_tensors) for each in made):
            yield from lines(name, group, walk, kinds, deeper)
        else:
            yield from made


def opened(piece: Piece, depth: int) -> str:
    """The first names of "vision.qkv.q"; below them all the tensor's own."""
    names = locate_component(piece.part, piece.component)[1].split(".")
    return piece.name if depth > len(names) else ".".join(names[:depth])


def long(formula: str, allowed: int) -> bool:
    """Whether a formula is hard to check by hand."""
    depth = deepest = 0
    for character in formula:
        depth += (character == "(") - (character == ")")
        deepest = max(depth, deepest)
    return deepest > allowed or len(formula) > LONGEST


def line(share: Share, component: str, detail: str, part: str, of: str) -> Line:
    tree, values = factor(share.formula.terms), share.values
    return Line(
        component, detail, part, share.layers, of,
        format_formula(tree), format_formula(tree, substitute(TEXT, values)),
        value_of(share.formula, values), value_of(share.used, values), "",
        format_formula(tree, LATEX), format_formula(tree, substitute(LATEX, values)),
    )  # fmt: skip


# ---- layers


def shares(pieces: Sequence[Piece], walk: Walk, kinds: Kinds) -> list[Share]:
    """One share for each kind of layer that holds another sum; what stands outside joins it where there is one alone."""
    outside, used = Polynomial({}), Polynomial({})
    held: dict[tuple[str, Repeat], tuple[Size, Size]] = {}
    for piece in pieces:
        if piece.layer is None:
            outside, used = outside + piece.each, used + piece.used
        elif walk.at(piece.layers):
            each, used_each = held.get((piece.stack, piece.layer), (0, 0))
            held[piece.stack, piece.layer] = each + piece.each, used_each + piece.used
    equal: dict[tuple[Polynomial, Polynomial], list[Layers]] = {}
    for layers, (each, used_each) in held.items():
        equal.setdefault((polynomial(each), polynomial(used_each)), []).append(layers)
    every = [(stack, repeat) for stack in dict.fromkeys(stack for stack, _ in held) for repeat in kinds[stack]]
    found = []
    for (each, used_each), alike in equal.items():
        words = words_of([repeat.kind for _, repeat in alike], [repeat.kind for _, repeat in every])
        number = polynomial(sum(repeat.count for _, repeat in alike))
        times, values = named_number(number, words, walk)
        found.append(Share(layers_words(value_of(times, values), words) if len(alike) < len(every) else "", times * each, times * used_each, values))
    if len(found) == 1 and outside == 0:
        return found
    if len(found) < 2:
        together = found[0] if found else Share("", Polynomial({}), Polynomial({}), walk.values)
        return [Share("", together.formula + outside, together.used + used, together.values)]
    return [*found, Share("outside layers", outside, used, walk.values)]


def named_number(number: Polynomial, words: str, walk: Walk) -> tuple[Polynomial, Mapping[str, int]]:
    """How many layers, as a factor; where that is a number of the structure, with the kind's name beside it: "28 mamba layers"."""
    if number.names:
        return number, walk.values
    n = value_of(number, {})
    if n == 1:
        return number, walk.values
    name = layers_words(n, words)
    return Polynomial({((name, 1),): 1}), {**walk.values, name: n}


def layers_words(n: int, words: str) -> str:
    return " ".join(filter(None, [group_digits(n), words, "layer" if n == 1 else "layers"]))


def words_of(some: Sequence[Hashable], every: Sequence[Hashable]) -> str:
    """What some kinds of layers have in common and not all have; "" of all.

    >>> every = [("mamba", "moe"), ("mamba", "dense"), ("attention", "moe")]
    >>> words_of(every[:2], every), words_of(every[2:], every), words_of(every, every)
    ('mamba', 'attention', '')
    """
    if len(some) == len(every):
        return ""
    rows, others = [in_words(kind) for kind in some], [in_words(kind) for kind in every if kind not in some]
    shared = [i for i, word in enumerate(rows[0]) if word and all(row[i : i + 1] == (word,) for row in rows)]
    telling = [i for i in shared if all(row[i : i + 1] != (rows[0][i],) for row in others)][:1]  # one word that no other layer has
    telling = telling or [i for i in shared if any(row[i : i + 1] != (rows[0][i],) for row in others)]
    words = [rows[0][i] for i in telling]
    if not words and len(rows) <= MOST_NAMED:
        words = [" or ".join(dict.fromkeys(" ".join(filter(None, row)) for row in rows))]
    return " ".join(NO_LETTER.sub(" ", make_printable(" ".join(words), 60)).split())


def in_words(kind: Hashable) -> tuple[str, ...]:
    """The words of a kind, each in its place; what is no word, and the word that says nothing, as an empty one."""
    return tuple(word if isinstance(word, str) and word != "layer" else "" for word in (kind if isinstance(kind, tuple) else (kind,)))


NO_LETTER = re.compile(r"[^A-Za-z_/-]+")  # what a formula would take for something else
