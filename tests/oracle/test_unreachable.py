"""What the files of model types call unreachable is what the reference allocates and never reads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle.differential import find_differences
from tests.oracle.freeze import find_unreachable
from tests.test_unreachable import CASES, class_name


@pytest.mark.parametrize("case", CASES, ids=class_name)
def test_no_forward_pass_reads_unreachable_parameters(case: dict[str, Any]) -> None:
    """The differential test makes it no numbers before it runs the model."""
    assert find_unreachable(case["config"]) == case
    assert find_differences(case["config"], class_name(case)) == []
