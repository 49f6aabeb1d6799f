"""The default run tries one zoo model of each architecture.

The others, whose structure is the same, are tried under -m exhaustive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations
from typing import Any

import pytest

import paramcount.zoo as zoo
from paramcount.sizes import Sizes

ZOO = [id for id in zoo.list_ids() if not zoo.load_entry(id).estimate]


@cache
def sort_key(id: str) -> tuple[str, int, str]:
    """The architecture of a zoo model, its total, and its id, so that the order of the ids does not matter."""
    model = zoo.load_entry(id)
    return model.architecture or "", zoo.count_model(model).total, id


def pick_structures(ids: Iterable[str] = ZOO, *, every: int = 1) -> list[Any]:
    """Zoo ids as parameters of a test: the smallest model of each architecture, the others marked exhaustive.

    `every`: of each n-th architecture only, for slow tests.
    """
    seen: set[str] = set()
    parameters = []
    for id in sorted(ids, key=sort_key):
        architecture, *_ = sort_key(id)
        is_kept = architecture not in seen and len(seen) % every == 0
        parameters.append(pytest.param(id, id=id, marks=() if is_kept else (pytest.mark.exhaustive,)))
        seen.add(architecture)
    return parameters


def pick_distinct(ids: Iterable[str]) -> list[str]:
    """The first zoo model of each structure.

    Two models have the same structure if they have the same architecture, flags and optional sizes, and if the same
    sizes are equal, so that a condition that compares sizes holds for both or for neither.
    """
    first: dict[tuple[object, ...], str] = {}
    for id in ids:
        model = zoo.load_entry(id)
        first.setdefault((model.architecture, structure_key(model.sizes)), id)
    return list(first.values())


def structure_key(config: Sizes) -> tuple[object, ...]:
    """What two configs of one architecture have in common if they have the same structure."""
    values = dict(list_fields(config))
    sizes = {name: value for name, value in values.items() if type(value) is int}
    flags = [
        (name, bool(value) if isinstance(value, tuple) else str(value))
        for name, value in values.items()
        if name not in sizes
    ]
    equal = [(a, b) for a, b in combinations(sizes, 2) if sizes[a] == sizes[b]]
    zero = [name for name, value in sizes.items() if value == 0]
    square = sizes.get("n_heads", 0) * sizes.get("d_head", 0) == sizes.get("d_model")
    return tuple(flags), tuple(equal), tuple(zero), square


def list_fields(sizes: Sizes, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of every field, those of parts included."""
    for name in type(sizes).fields:
        value = getattr(sizes, name)
        if isinstance(value, Sizes):
            yield from list_fields(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def keep_every(n: int, names: Iterable[str]) -> list[Any]:
    """Names as parameters of a slow test: each n-th, the others marked exhaustive."""
    return [
        name if i % n == 0 else pytest.param(name, marks=pytest.mark.exhaustive) for i, name in enumerate(sorted(names))
    ]
