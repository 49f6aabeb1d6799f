"""Draft heads for speculative decoding are counted as what their class is, whatever the model type of their target."""

from __future__ import annotations

from typing import Any

import pytest

import paramcount as pc
from tests.comparison import load_configs
from tests.draft_heads import CONFIGS, DFLASH, EAGLE3, EAGLE_HEADS, SMALL
from tests.refusing import model_error


@pytest.mark.parametrize("name", CONFIGS)
def test_a_published_config_has_the_total_of_its_code(name: str) -> None:
    expected = CONFIGS[name]
    count = pc.count(expected["config"])
    assert (count.total, count.embedding, count.lm_head, count.buffers) == (
        expected["total"],
        expected["embedding"],
        expected["lm_head"],
        expected["buffers"],
    )
    assert count.reference == expected["config"]["architectures"][0]
    assert count.warnings == ()


@pytest.mark.parametrize("model_type", ["llama", "qwen2", "phi3", "llava", "no_such_type", None])
@pytest.mark.parametrize("name", SMALL)
def test_the_class_decides_whatever_the_model_type(name: str, model_type: str | None) -> None:
    assert pc.count({**SMALL[name], "model_type": model_type}).total == pc.count(SMALL[name]).total


@pytest.mark.parametrize("name", EAGLE_HEADS)
def test_an_eagle_head_adds_as_many_parameters_as_its_authors_publish(name: str) -> None:
    """Their table leaves the token embedding out, which is the target's."""
    row = EAGLE_HEADS[name]
    count = pc.count({**row["config"], "architectures": ["LlamaForCausalLMEagle"]})
    assert f"{(count.total - count.shared_with_target) / 1e9:.2f}B" == row["published"]
    assert count.shared_with_target == count.embedding


def test_a_head_that_names_its_targets_class_is_recognised_by_its_vocabulary() -> None:
    """As EAGLE-3's own releases are; source: eagle/traineagle3/config.json of SafeAILab/EAGLE."""
    released = {**EAGLE3, "architectures": ["LlamaForCausalLM"]}
    count = pc.count(released)
    assert (count.total, count.reference) == (pc.count(EAGLE3).total, "LlamaForCausalLMEagle3")
    note = "a single layer with draft_vocab_size is a draft head; counted as LlamaForCausalLMEagle3"
    assert (count.notes[0], count.warnings) == (note, ())
    more = pc.count({**released, "num_hidden_layers": 2})
    assert more.reference == "LlamaForCausalLM"
    assert more.warnings[0].startswith("ignored draft_vocab_size")


def test_a_note_says_what_a_draft_head_adds_to_its_target() -> None:
    embedding = 96 * 32
    assert pc.count(EAGLE3).notes == (
        f"a draft head: its token embedding ({embedding:,}) is the target's; it adds "
        f"{pc.count(EAGLE3).total - embedding:,} parameters",
    )
    dflash = pc.count(DFLASH)
    assert dflash.notes == (f"a draft head: it adds its {dflash.total:,} parameters to those of the target",)
    assert dflash.to_dict()["shared_with_target"] == 0


def test_the_mtp_layers_of_deepseek_v3_are_a_draft_of_their_own() -> None:
    """13,463,426,304 values of its files are those of the MTP layer, the token embedding, the LM head and a routing
    bias among them. Source: README_WEIGHTS.md of deepseek-ai/DeepSeek-V3, and its index file."""
    config = load_configs()["deepseek-v3"]
    draft = pc.count({**config, "architectures": ["DeepSeekMTPModel"]})
    assert draft.total == 13_463_426_304 - 2 * 129_280 * 7168 - 256
    assert (draft.embedding, draft.lm_head, draft.mtp) == (0, 0, 0)
    assert pc.memory({**config, "architectures": ["DeepSeekMTPModel"]}).kv_bytes_per_token == 2 * (512 + 64)


@pytest.mark.parametrize(
    ("config", "cls"),
    [
        (load_configs()["glm-4.5"], "Glm4MoeMTPModel"),
        (load_configs()["deepseek-v3"], "DeepseekV3ForCausalLMNextN"),
        ({"model_type": "mimo", "architectures": ["MiMoForCausalLM"], "num_nextn_predict_layers": 2}, "MiMoMTPModel"),
    ],
)
def test_a_draft_of_mtp_layers_is_what_its_target_carries(config: dict[str, Any], cls: str) -> None:
    draft = pc.count({**config, "architectures": [cls]})
    assert draft.total == pc.count(config).mtp
    assert model_error({**config, "architectures": [cls], "num_nextn_predict_layers": 0}) == (
        "num_nextn_predict_layers = 0 (expected a positive integer)"
    )


# The config.json of the speculator for Qwen3-32B in TestEagle3SpeculatorConfigLoading of SGLang.
SPECULATOR_OF_QWEN3_32B = {
    "architectures": ["Eagle3Speculator"], "draft_vocab_size": 32000, "norm_before_residual": True,
    "speculators_config": {
        "algorithm": "eagle3", "verifier": {"architectures": ["Qwen3ForCausalLM"], "name_or_path": "Qwen/Qwen3-32B"},
    },
    "speculators_model_type": "qwen3", "target_hidden_size": None, "torch_dtype": "bfloat16",
    "transformer_layer_config": {
        "attention_bias": False, "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 25600,
        "max_position_embeddings": 40960, "mlp_bias": False, "model_type": "llama", "num_attention_heads": 64,
        "num_hidden_layers": 1, "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-06,
        "rope_scaling": None, "rope_theta": 1000000, "vocab_size": 151936,
    },
}  # fmt: skip


def test_a_speculator_with_its_layers_in_a_block_is_the_head_of_the_same_sizes() -> None:
    """SGLang loads it as LlamaForCausalLMEagle3; SpecForge's head for Qwen3-32B has these sizes."""
    count = pc.count(SPECULATOR_OF_QWEN3_32B)
    assert count.total == CONFIGS["qwen3-32b-eagle3"]["total"]
    assert (count.reference, count.warnings) == ("Eagle3DraftModel", ())
