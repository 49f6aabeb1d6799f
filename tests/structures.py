"""The default run tries one zoo model of each architecture.

The others, whose structure is the same, are tried under -m exhaustive.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

from paramcount import zoo

ZOO = [id for id in zoo.list_ids() if not zoo.load_entry(id).estimate]


@cache
def sort_key(id: str) -> tuple[str, int]:
    """The architecture of a zoo model and its total."""
    model = zoo.load_entry(id)
    return model.architecture or "", zoo.count_model(model).total


def pick_structures(ids: Iterable[str] = ZOO) -> list[Any]:
    """Zoo ids as parameters of a test: the smallest model of each architecture, the others marked exhaustive."""
    picked: set[str] = set()
    parameters = []
    for id in sorted(ids, key=sort_key):
        architecture, _ = sort_key(id)
        marks = (pytest.mark.exhaustive,) if architecture in picked else ()
        parameters.append(pytest.param(id, id=id, marks=marks))
        picked.add(architecture)
    return parameters
