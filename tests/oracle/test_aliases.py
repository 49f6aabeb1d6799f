"""The files of model types name every alias of the reference, and the totals are those that the reference builds."""

from __future__ import annotations

import pytest

from tests.oracle.aliases import Alias, count_reference, find_default, list_aliases
from tests.test_aliases import VALUED, Row, load_rows


def test_every_alias_of_every_supported_model_type_has_a_row() -> None:
    assert [row[:3] for row in load_rows()] == list(list_aliases())


@pytest.mark.parametrize("row", VALUED, ids=lambda row: f"{row.model_type}-{row.alias}")
def test_the_reference_builds_that_total_with_the_alias(row: Row) -> None:
    alias = Alias(*row[:3])
    assert row.value != find_default(alias)
    assert count_reference(alias, row.value) == row.total
