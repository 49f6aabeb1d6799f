"""Configs at the limits of what the reference builds and runs: tests/data/limits.json.

Each case has either the total of the reference, or the error with which the reference fails to build the model or to
run 64 tokens through it, and `where`: the key that paramcount names. tests/oracle/test_limits.py checks the cases
against the reference itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from tests.refusing import error_of

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "limits.json").read_text(encoding="utf-8"))
BUILT = [case for case in CASES if "total" in case]
REFUSED = [case for case in CASES if "error" in case]


def name_case(case: dict[str, Any]) -> str:
    return f"{case['config']['model_type']}: {case['about']}"


@pytest.mark.parametrize("case", BUILT, ids=name_case)
def test_a_config_that_the_reference_just_runs_has_its_total(case: dict[str, Any]) -> None:
    assert pc.count(case["config"]).total == case["total"]


@pytest.mark.parametrize("case", REFUSED, ids=name_case)
def test_a_config_that_the_reference_cannot_build_or_run_is_an_error_at_its_key(case: dict[str, Any]) -> None:
    message = error_of(pc.count, case["config"])
    assert message.removeprefix("config.json: ").startswith(case["where"])
