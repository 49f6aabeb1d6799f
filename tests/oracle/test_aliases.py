"""tests/data/aliases.csv names every alias of the reference, and its totals are those that the reference builds."""

from __future__ import annotations

import json

import pytest

from tests.oracle.aliases import Alias, count_reference, find_default, list_aliases
from tests.test_aliases import VALUED, load_rows

pytestmark = pytest.mark.oracle
pytest.importorskip("torch", reason="the oracle tests need torch: pip install torch==2.13.0")
pytest.importorskip("transformers", reason="the oracle tests need transformers: pip install transformers==5.23.0")


def test_every_alias_of_every_supported_model_type_has_a_row() -> None:
    assert [(row["model_type"], row["alias"], row["key"]) for row in load_rows()] == list(list_aliases())


@pytest.mark.parametrize("row", VALUED, ids=lambda row: f"{row['model_type']}-{row['alias']}")
def test_the_reference_builds_that_total_with_the_alias(row: dict[str, str]) -> None:
    alias, value = Alias(row["model_type"], row["alias"], row["key"]), json.loads(row["value"])
    assert value != find_default(alias)
    assert str(count_reference(alias, value)) == row["total"]
