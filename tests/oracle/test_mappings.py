"""The files of model types have every class of the mappings, and the reference refuses what they say it refuses."""

from __future__ import annotations

import pytest

from tests.mapping_states import REFUSED, load_mappings
from tests.oracle.differential import build_model
from tests.oracle.mappings import find_own_error, list_classes


def test_the_table_has_every_class_of_the_mappings() -> None:
    assert [(row.mapping, row.model_type, row.cls) for row in load_mappings()] == list_classes()


@pytest.mark.parametrize(
    ("model_type", "cls", "reason"),
    sorted({(row.model_type, row.cls, row.reason) for row in load_mappings() if row.state == REFUSED}),
)
def test_the_reference_refuses_its_own_default_config(model_type: str, cls: str, reason: str) -> None:
    assert find_own_error(model_type, cls) == reason


@pytest.mark.parametrize("n_layers", [1, 4])
@pytest.mark.parametrize("n_shared", [0, 1, 3, 4])
@pytest.mark.parametrize("word", ["full_attention", "sliding_attention"])
def test_the_assistant_of_gemma4_cannot_have_layers(n_layers: int, n_shared: int, word: str) -> None:
    """Its config class wants all layers to share KV caches, that of its layers wants one that they share."""
    text = {
        "model_type": "gemma4_text", "hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0,
        "num_hidden_layers": n_layers, "num_kv_shared_layers": n_shared, "layer_types": [word] * n_layers,
        "hidden_size": 32, "vocab_size": 96,
    }  # fmt: skip
    with pytest.raises(Exception, match=r"must be shared|layer types producing a cache"):
        build_model({"model_type": "gemma4_assistant", "text_config": text}, "Gemma4AssistantForCausalLM")
