"""A config.json as the reference itself saves it, in keys that the original often has not: counted as the reference reads it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paramcount.config_json import from_config
from tests.cases import load
from tests.model_types import MODEL_TYPES
from tests.oracle.differential import differences, saved

pytestmark = pytest.mark.oracle
pytest.importorskip("torch", reason="the oracle tests need torch: pip install torch==2.13.0")
pytest.importorskip("transformers", reason="the oracle tests need transformers: pip install transformers==5.23.0")

CASES = load()
EACH = 2


def documents(name: str) -> list[dict[str, Any]]:
    """The default config, and a few with small sizes."""
    facts = MODEL_TYPES[name]
    start = {"model_type": name.partition(".")[0], "architectures": [facts.cls], **facts.vary.get("=", {})}
    return [start, *[case["config"] for case in CASES[name] if "refused" not in case][:EACH]]


@pytest.mark.parametrize("name", sorted(MODEL_TYPES))
def test_what_the_reference_saves_is_counted_as_it_reads_it(name: str, tmp_path: Path) -> None:
    for i, document in enumerate(documents(name)):
        cls_name = document.get("architectures", [MODEL_TYPES[name].cls])[0]
        config = saved(document, cls_name, tmp_path)
        assert from_config(config).reading.reference == cls_name
        assert differences(config, cls_name, run=False, by_name=i > 0) == []
