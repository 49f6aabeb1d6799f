"""The default run tries a few models that together have all operations, each with all of its parameters.

The others are tried under -m exhaustive. `python -m tests.structures` writes tests/data/covering.txt, the architectures
of these few, those first that bring most.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import paramcount.zoo as zoo
from paramcount.counting.sum_weights import list_flows
from paramcount.flow import list_steps
from paramcount.flow.operation import Operation

COVERING = Path(__file__).parent / "data" / "covering.txt"
RANKS = {name: i for i, name in enumerate(COVERING.read_text(encoding="utf-8").split())}
with (zoo.CONFIGS / "zoo.csv").open(encoding="utf-8", newline="") as file:
    ROWS = {row["id"]: row for row in csv.DictReader(file)}
ZOO = [id for id, row in ROWS.items() if row["estimate"] == "false"]
BY_SIZE = sorted(ZOO, key=lambda id: (ROWS[id]["architecture"], int(ROWS[id]["total"]), id))


@cache
def read_entry_text(id: str) -> str:
    return (zoo.CONFIGS / ROWS[id]["family"] / f"{id}.yaml").read_text(encoding="utf-8")


def states_size(id: str, name: str) -> bool:
    """Whether a zoo entry states a size of the whole model, other than 0, null and an empty list. It is not loaded."""
    return re.search(rf"\n  {name}: (?!0\n|null|\[\])", read_entry_text(id)) is not None


def pick_smallest(ids: Iterable[str] = ZOO) -> dict[str, str]:
    """{architecture: its smallest zoo model}, whatever the order of the ids."""
    found: dict[str, str] = {}
    known = {*ids}
    for id in filter(known.__contains__, BY_SIZE):
        found.setdefault(ROWS[id]["architecture"], id)
    return found


def pick_structures(ids: Iterable[str] = ZOO, *, every: int = 1) -> list[Any]:
    """Zoo ids as parameters of a test: the smallest model of each architecture, the others marked exhaustive.

    `every`: of an n-th of the architectures only, for slow tests.
    """
    known = {*ids}
    smallest = pick_smallest(known)
    kept = {smallest[name] for name in pick_few(smallest, every)}
    marks = {id: () if id in kept else (pytest.mark.exhaustive,) for id in BY_SIZE if id in known}
    return [pytest.param(id, id=id, marks=found) for id, found in marks.items()]


def pick_few(names: Iterable[str], every: int) -> list[str]:
    """An n-th of some names: of architectures those that bring most operations."""
    names = sorted(names)
    known = sorted(RANKS.keys() & {*names}, key=lambda name: RANKS[name])
    n = -(-len(names) // every)
    return [*known, *(name for name in names if name not in RANKS)][:n] if known else names[::every]


def list_operations(id: str) -> list[Operation]:
    return [data.operation for flow in list_flows(zoo.load_entry(id).sizes) for data, *_ in list_steps(*flow)]


def list_features(operations: Iterable[Operation]) -> Iterator[tuple[str, ...]]:
    """Operations, and their parameters that are neither empty nor false."""
    for operation in operations:
        name = type(operation).__name__
        yield (name,)
        for cls in type(operation).__mro__:
            fields = (*getattr(cls, "__slots__", ()), *getattr(operation, "__dict__", ()))
            yield from ((name, field) for field in fields if getattr(operation, field, None))


def find_covering() -> list[str]:
    """The architectures of a few models that together have all features, those first that bring most in few steps."""
    operations = {name: list_operations(id) for name, id in pick_smallest().items()}
    features = {name: {*list_features(steps)} for name, steps in operations.items()}
    missing = set[tuple[str, ...]]().union(*features.values())
    found = []
    while missing:
        best = max(features, key=lambda name: len(features[name] & missing) / (20 + len(operations[name])))
        found.append(best)
        missing -= features[best]
    return found


def keep_every(n: int, names: Iterable[str]) -> list[Any]:
    """Names as parameters of a slow test: an n-th, the others marked exhaustive."""
    names = sorted(names)
    kept = {*pick_few(names, n)}
    return [name if name in kept else pytest.param(name, marks=pytest.mark.exhaustive) for name in names]


if __name__ == "__main__":
    COVERING.write_text("\n".join(find_covering()) + "\n", encoding="utf-8")
