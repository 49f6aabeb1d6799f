"""The cases of tests/data/limits.json, built and run by the reference: the same totals, and an error of the same
kind.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle.differential import build_model, run_tokens
from tests.test_limits import BUILT, REFUSED, name_case

TOKENS = 64


@pytest.mark.parametrize("case", BUILT, ids=name_case)
def test_the_reference_builds_and_runs_it_with_that_total(case: dict[str, Any]) -> None:
    model = build_model(case["config"], case["class"])
    assert sum(parameter.numel() for parameter in model.parameters()) == case["total"]
    assert run_tokens(case["config"], case["class"], tokens=TOKENS) is None


@pytest.mark.parametrize("case", REFUSED, ids=name_case)
def test_the_reference_refuses_to_build_or_to_run_it(case: dict[str, Any]) -> None:
    assert type(run_tokens(case["config"], case["class"], tokens=TOKENS)).__name__ == case["error"]
