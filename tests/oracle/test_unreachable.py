"""tests/data/unreachable.json is what the reference allocates and never reads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle.differential import differences
from tests.oracle.freeze import unreachable_facts
from tests.test_unreachable import CASES, name_of

pytestmark = pytest.mark.oracle
pytest.importorskip("torch", reason="the oracle tests need torch: pip install torch==2.13.0")
pytest.importorskip("transformers", reason="the oracle tests need transformers: pip install transformers==5.23.0")


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_no_forward_pass_reads_what_is_unreachable(case: dict[str, Any]) -> None:
    """The differential test makes it no numbers before it runs the model."""
    assert unreachable_facts(case["config"]) == case
    assert differences(case["config"], name_of(case)) == []
