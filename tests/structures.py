"""The default run tries one zoo model of each architecture.

The others, whose structure is the same, are tried under -m exhaustive.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from paramcount import zoo

ZOO = [id for id in zoo.list_ids() if not zoo.load_entry(id).estimate]


def pick_structures(ids: Iterable[str] = ZOO) -> list[Any]:
    """Zoo ids as parameters of a test: the smallest model of each architecture, the others marked exhaustive."""
    seen: set[str | None] = set()
    found = []
    for id in sorted(
        ids, key=lambda id: (zoo.load_entry(id).architecture or "", zoo.count_model(zoo.load_entry(id)).total)
    ):
        architecture = zoo.load_entry(id).architecture
        found.append(pytest.param(id, id=id, marks=() if architecture not in seen else (pytest.mark.exhaustive,)))
        seen.add(architecture)
    return found
