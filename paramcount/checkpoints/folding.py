"""Names of tensors folded into patterns: model.layers.{0-31}.mlp.up_proj.weight."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product
from typing import TypeAlias

from paramcount.output.ranges import format_ranges, join_ranges

INDEX = re.compile(r"(?<![^.])(0|[1-9][0-9]{0,8})(?![^.])")  # between dots; a longer number is an ordinary word
VARYING = re.compile(r"(?<![^.])(?:\d+|\{\w+\})(?![^.])")  # an index, or its placeholder in a declared name
MOST_INDICES = 4  # in a name; a name with more is not folded
LONGEST_NAME = 1000  # characters; a longer name is not folded

Indices: TypeAlias = tuple[int, ...]
Block: TypeAlias = tuple[Indices, ...]  # indices per position; stands for all combinations


def strip_indices(name: str) -> str:
    """A name without its indices.

    >>> strip_indices("model.layers.3.mlp.experts.17.w1.weight")
    'model.layers.{}.mlp.experts.{}.w1.weight'
    >>> strip_indices("model.layers.{layer}.mlp.experts.{expert}.w1.weight")
    'model.layers.{}.mlp.experts.{}.w1.weight'
    """
    return VARYING.sub("{}", name)


def fold_names(names: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Patterns, each with exactly the names that it matches. An index is a whole word between dots.

    Patterns are in the order of their first names, and the names of a pattern in the order of their indices. Braces in
    names are doubled.

    >>> names = [f"h.{layer}.ln_1.{name}" for layer in (0, 1, 2, 4) for name in ("weight", "bias")]
    >>> [pattern for pattern, _ in fold_names(names)]
    ['h.{0-2,4}.ln_1.weight', 'h.{0-2,4}.ln_1.bias']
    >>> fold_names(["h.0.e.0.w", "h.0.e.1.w", "h.1.e.0.w"])
    [('h.0.e.{0-1}.w', ['h.0.e.0.w', 'h.0.e.1.w']), ('h.1.e.0.w', ['h.1.e.0.w'])]
    """
    # A kind with a single name has no dict, because a hostile file may have one kind per name.
    kinds: dict[tuple[str, ...], str | dict[Indices, str]] = {}
    for name in names:
        words, indices = split_name(name)
        places = kinds.setdefault(words, name)
        if isinstance(places, dict):
            places[indices] = name
        elif places != name:
            kinds[words] = {split_name(places)[1]: places, indices: name}
    patterns = []
    for words, places in kinds.items():
        if isinstance(places, dict):
            blocks = group_indices(list(places))
            patterns += [
                (format_pattern(words, block), [places[place] for place in product(*block)]) for block in blocks
            ]
        else:
            block = tuple((index,) for index in split_name(places)[1])
            patterns.append((format_pattern(words, block), [places]))
    return patterns


def split_name(name: str) -> tuple[tuple[str, ...], Indices]:
    """The text around the indices of a name, and the indices.

    >>> split_name("h.11.attn.c_attn.weight"), split_name("h.011.w")
    ((('h.', '.attn.c_attn.weight'), (11,)), (('h.011.w',), ()))
    """
    if len(name) > LONGEST_NAME:
        return (name,), ()
    pieces = INDEX.split(name)
    if not 1 < len(pieces) <= 2 * MOST_INDICES + 1:
        return (name,), ()
    return tuple(pieces[::2]), tuple(map(int, pieces[1::2]))


def format_pattern(words: Sequence[str], block: Sequence[Indices]) -> str:
    """A pattern, with braces around each position that has several indices."""
    first, *others = [word.replace("{", "{{").replace("}", "}}") for word in words]
    return first + "".join([f"{format_indices(indices)}{word}" for indices, word in zip(block, others)])


def format_indices(indices: Indices) -> str:
    """The indices of one position.

    >>> format_indices((3,)), format_indices((0, 1, 2, 4))
    ('3', '{0-2,4}')
    """
    if len(indices) == 1:
        return str(indices[0])
    return "{" + ",".join(format_ranges(join_ranges((i, 1) for i in indices), "-")) + "}"


def group_indices(places: Sequence[Indices]) -> list[Block]:
    """Index tuples as few blocks without overlap: first indices with equal continuations share a block.

    >>> group_indices([(0, 5), (0, 6), (1, 5), (1, 6), (2, 5)])
    [((0, 1), (5, 6)), ((2,), (5,))]
    """
    if len(places) == 1:
        return [tuple((index,) for index in places[0])]
    continuations: dict[int, list[Indices]] = {}
    for place in sorted(places):
        continuations.setdefault(place[0], []).append(place[1:])
    alike: dict[tuple[Indices, ...], list[int]] = {}
    for first, rest in continuations.items():
        alike.setdefault(tuple(rest), []).append(first)
    return [(tuple(firsts), *block) for rest, firsts in alike.items() for block in group_indices(rest)]
