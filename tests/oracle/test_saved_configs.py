"""A config.json as the reference itself saves it, in other keys than the original may have: counted as the reference reads it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paramcount.config_json import from_config
from tests.cases import load
from tests.model_types import MODEL_TYPES
from tests.oracle import differential

pytestmark = pytest.mark.oracle
pytest.importorskip("torch", reason="the oracle tests need torch: pip install torch==2.13.0")
pytest.importorskip("transformers", reason="the oracle tests need transformers: pip install transformers==5.23.0")

CASES = load()
EACH = 2  # cases of a model type


def same(config: dict[str, Any], cls_name: str, *, by_name: bool) -> None:
    assert from_config(config).reading.reference == cls_name  # counted, not refused
    assert differential.differences(config, cls_name, run=False, by_name=by_name) == []


@pytest.mark.parametrize("name", sorted(MODEL_TYPES))
def test_a_default_config_saved_by_the_reference_is_counted_as_it_reads_it(name: str, tmp_path: Path) -> None:
    facts = MODEL_TYPES[name]
    document = {"model_type": name.partition(".")[0], "architectures": [facts.cls], **facts.vary.get("=", {})}
    same(differential.saved(differential.config_of(document, facts.cls), facts.cls, tmp_path), facts.cls, by_name=False)


@pytest.mark.parametrize("name", sorted(MODEL_TYPES))
def test_the_config_of_a_model_saved_by_the_reference_is_counted_as_it_reads_it(name: str, tmp_path: Path) -> None:
    for case in [case for case in CASES[name] if "refused" not in case][:EACH]:
        cls_name = case["config"].get("architectures", [MODEL_TYPES[name].cls])[0]
        model = differential.build(case["config"], cls_name)  # it may write into its config
        same(differential.saved(model.config, cls_name, tmp_path), cls_name, by_name=True)
