"""tests/data/mappings.csv has every class of the six mappings, and the reference refuses what the table says it
refuses.
"""

from __future__ import annotations

import pytest

from tests.mapping_states import REFUSED, load_mappings
from tests.oracle.mappings import find_own_error, list_classes

pytestmark = pytest.mark.oracle
pytest.importorskip("torch", reason="the oracle tests need torch: pip install torch==2.13.0")
pytest.importorskip("transformers", reason="the oracle tests need transformers: pip install transformers==5.23.0")


def test_the_table_has_every_class_of_the_six_mappings() -> None:
    assert [(row.mapping, row.model_type, row.cls) for row in load_mappings()] == list_classes()


@pytest.mark.parametrize(
    ("model_type", "cls", "reason"),
    sorted({(row.model_type, row.cls, row.reason) for row in load_mappings() if row.state == REFUSED}),
)
def test_the_reference_refuses_its_own_default_config(model_type: str, cls: str, reason: str) -> None:
    assert find_own_error(model_type, cls) == reason
