"""A config.json as the reference itself saves it, in other keys than the original may have: counted as the reference
reads it again. EXAMPLES=5 looks at every frozen case.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from paramcount.huggingface.config import read_config
from tests.cases import load_cases
from tests.model_types import MODEL_TYPES, default_document
from tests.oracle import differential

CASES = load_cases()
EACH = int(os.environ.get("EXAMPLES", "1"))  # cases of a model type
# Whose saved config has a key that overrides, or runs beyond, what the others say.
MORE: dict[str, list[dict[str, Any]]] = {
    "switch_transformers": [
        {"model_type": "switch_transformers", "num_hidden_layers": 4, "num_layers": 3, "num_sparse_encoder_layers": 2}
    ],
    "mllama": [{"model_type": "mllama", "text_config": {"num_hidden_layers": 4}}],
    "modernbert-decoder": [{"model_type": "modernbert-decoder", "local_attention": 0}],
}


def assert_same_tensors(config: dict[str, Any], cls_name: str, *, by_name: bool) -> None:
    assert read_config(config).reading.reference == cls_name  # counted, not refused
    assert differential.find_differences(config, cls_name, run=False, by_name=by_name) == []


@pytest.mark.parametrize("name", sorted(MODEL_TYPES))
def test_a_default_config_saved_by_the_reference_is_counted_as_it_reads_it(name: str, tmp_path: Path) -> None:
    facts = MODEL_TYPES[name]
    document = default_document(name)
    assert_same_tensors(
        differential.save_config(differential.make_config(document, facts.cls), facts.cls, tmp_path),
        facts.cls,
        by_name=False,
    )


@pytest.mark.parametrize("name", sorted(MODEL_TYPES))
def test_the_config_of_a_model_saved_by_the_reference_is_counted_as_it_reads_it(name: str, tmp_path: Path) -> None:
    known = [case["config"] for case in CASES[name] if "refused" not in case]
    for document in (*known[:EACH], *MORE.get(name, ())):
        cls_name = document.get("architectures", [MODEL_TYPES[name].cls])[0]
        model = differential.build_model(document, cls_name)  # it may write into its config
        assert_same_tensors(differential.save_config(model.config, cls_name, tmp_path), cls_name, by_name=True)
