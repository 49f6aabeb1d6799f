"""A config.json with an unknown model type is counted as the class in `architectures`."""

from __future__ import annotations

from typing import Any

import pytest

import paramcount as pc
from paramcount.architectures import ARCHITECTURES, architecture
from paramcount.architectures.classes import model_types

# MiniCPM3-4B as released: auto_map and architectures, but no model_type.
# Source: github OpenBMB/MiniCPM, openbmb/MiniCPM3-4B config.json.
MINICPM3 = {
    "architectures": ["MiniCPM3ForCausalLM"], "auto_map": {"AutoConfig": "configuration_minicpm.MiniCPM3Config"},
    "hidden_size": 2560, "intermediate_size": 6400, "num_attention_heads": 40, "num_hidden_layers": 62,
    "num_key_value_heads": 40, "kv_lora_rank": 256, "q_lora_rank": 768, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32,
    "vocab_size": 73448,
}  # fmt: skip


@pytest.mark.parametrize(
    ("document", "model_type"),
    [
        ({"model_type": "my_llama", "architectures": ["LlamaForCausalLM"]}, "llama"),
        # kimi_k2 has a class of that name too
        ({"model_type": None, "architectures": ["DeepseekV3ForCausalLM"]}, "deepseek_v3"),
        (MINICPM3, "minicpm3"),
        ({"architectures": ["InternLM2ForCausalLM"]}, "internlm2"),
        ({"architectures": ["BartForCausalLM"]}, "bart"),
        ({"architectures": ["Qwen2Model"]}, "qwen2"),
        ({"architectures": ["GPT2ForSequenceClassification"]}, "gpt2"),
    ],
)
def test_a_supported_class_implies_its_model_type(document: dict[str, Any], model_type: str) -> None:
    count, known = pc.count(document), pc.count({**document, "model_type": model_type})
    assert (count.components, count.not_counted, count.reference) == (
        known.components,
        known.not_counted,
        document["architectures"][0],
    )
    state = "= my_llama is unknown" if document.get("model_type") else "is missing"
    assert count.notes == (f"model_type {state}; counted as {count.reference} (from architectures)", *known.notes)


def test_every_declared_class_has_one_model_type() -> None:
    named = {
        cls
        for name in ARCHITECTURES
        for cls in (architecture(name).reference.partition(" of ")[0], *architecture(name).equivalent_classes)
    }
    assert named - {"XLMRobertaModel"} <= set(model_types())  # the class alone is that of transformers
