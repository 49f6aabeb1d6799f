"""Every alias of the reference's `attribute_map` is read as the key that it stands for.

A row: model type, alias, key, a value that is not the default, and how many parameters the reference allocates then,
unreachable ones included. `refused` if the reference refuses every value tried; without a value the key holds no number
and no total depends on it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import paramcount as pc
from tests.batches import in_batches
from tests.model_types import default_document
from tests.refusing import error_of
from tests.type_files import load_all

BESIDE = {"hunyuan_v1_moe": {"num_experts": 4}}  # two experts per token need more than the one of the default


class Row(NamedTuple):
    model_type: str
    alias: str
    key: str
    value: Any
    total: int | str


def load_rows() -> list[Row]:
    return [Row(name, *row) for name, rows in load_all("aliases").items() for row in rows]


def make_document(model_type: str, alias: str = "", value: object = None) -> dict[str, Any]:
    """The default config, with this value under the alias."""
    return default_document(model_type) | BESIDE.get(model_type, {}) | ({alias: value} if alias else {})


def count_row(row: Row) -> pc.Count:
    return pc.count(make_document(row.model_type, row.alias, row.value))


VALUED = [row for row in load_rows() if row.value is not None]


@in_batches(
    "row", [row for row in VALUED if row.total != "refused"], ids=lambda row: f"{row.model_type}-{row.alias}", size=60
)
def test_an_alias_has_the_count_that_the_reference_builds(row: Row) -> None:
    count = count_row(row)
    assert count.total + sum(count.unreachable.values()) == row.total


@pytest.mark.parametrize(
    "row", [row for row in VALUED if row.total == "refused"], ids=lambda row: f"{row.model_type}-{row.alias}"
)
def test_an_alias_with_a_value_that_the_reference_rejects_is_an_error(row: Row) -> None:
    error_of(count_row, row)
