"""Configs that people keep in their repositories are counted as the reference builds them, or refused for a reason."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import paramcount as pc
from tests.batches import in_batches
from tests.real_configs import load_real_configs

ROWS = load_real_configs()


@in_batches("row", ROWS, ids=lambda row: row["source"], size=60)
def test_a_config_from_a_repository_is_counted_as_the_reference_builds_it_or_refused(row: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "refused" in row:
            with pytest.raises(pc.ParamcountError):
                pc.count(row["config"])
            return
        count = pc.count(row["config"])
    if "total" in row:
        assert count.total + sum(count.unreachable.values()) == row["total"]


def test_without_its_encoders_virst_is_the_language_model_that_it_was_built_on() -> None:
    (config,) = (row["config"] for row in ROWS if row["config"].get("model_type") == "virst")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        count = pc.count(config)
    assert (count.total, count.scope) == (pc.count("qwen2.5-7b").total, "language_model")
    assert {"vision_config", "projector"} <= set(count.not_counted)
