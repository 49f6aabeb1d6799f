"""Config files whose model is not, or not as a whole, what the reference's class of their model type is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from tests.comparison import load_configs
from tests.refusing import model_error

# [{name, kind, source, config}]: files of kind "other names" are written by another tool.
FOUND: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "unsupported_configs.json").read_text("utf-8")
)
OTHER_NAMES = {row["name"]: row["config"] for row in FOUND if row["kind"] == "other names"}

# Sizes in the config.json of https://huggingface.co/Qwen/Qwen-VL-Chat.
QWEN = {
    "model_type": "qwen", "architectures": ["QWenLMHeadModel"], "hidden_size": 4096, "intermediate_size": 22016,
    "kv_channels": 128, "num_hidden_layers": 32, "num_attention_heads": 32, "no_bias": True, "seq_length": 2048,
    "vocab_size": 151936,
}  # fmt: skip
VISUAL = {
    "heads": 16, "image_size": 448, "image_start_id": 151857, "layers": 48, "mlp_ratio": 4.9231, "output_dim": 4096,
    "patch_size": 14, "width": 1664,
}  # fmt: skip
# The arguments of AudioEncoder in model.py of https://github.com/openai/whisper, with the sizes of large-v2.
AUDIO = {"n_mels": 80, "n_ctx": 1500, "n_state": 1280, "n_head": 20, "n_layer": 32}
LLAMA = {
    "model_type": "llama", "vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 128,
}  # fmt: skip


# ---- blocks that nothing reads


@pytest.mark.parametrize(
    ("block", "names"),
    [
        ({"eyes": VISUAL}, "eyes (a block with heads, image_size, layers, output_dim, patch_size and 1 more,"),
        ({"ears": AUDIO}, "ears (a block with n_mels, n_state, n_head and n_layer,"),
        ({"parts": {"eye": VISUAL}}, "parts.eye (a block with heads, image_size, layers, output_dim, patch_size and"),
    ],
)
def test_a_block_that_looks_like_the_sizes_of_a_part_is_a_warning_and_an_error_if_strict(
    block: dict[str, Any], names: str
) -> None:
    for config in (QWEN, LLAMA):
        count = pc.count({**config, **block})
        (warning,) = count.warnings
        assert warning.startswith(f"ignored {names}")
        assert warning.endswith(f"but {count.reference} does not use it)")
        assert count.total == pc.count(config).total
        with pytest.raises(pc.ParamcountError, match="strict: ignored"):
            pc.count({**config, **block}, strict=True)


@pytest.mark.parametrize(
    "block",
    [
        {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
        {"rope_scaling": None, "quantization_config": {"quant_method": "x", "group": {"num_bits": 8, "num_groups": 4}}},
        {"task_specific_params": {"summarization": {"num_beams": 4, "n_words": 7, "num_samples": 3}}},
        {"id2label": {"0": "a"}, "label2id": {"a": 0, "num_heads": 7}},
        {"auto_map": {}, "decoder_start": {"num_samples": 2}},
        {"transformers.js_config": {"kv_cache_dtype": {"fp16": "float16"}}},
    ],
)
def test_a_block_that_describes_no_part_is_no_warning(block: dict[str, Any]) -> None:
    assert pc.count({**LLAMA, **block}).warnings == ()


def test_the_published_configs_of_the_zoo_have_few_blocks_that_nothing_reads() -> None:
    """Ovis 2's backbone and MiniCPM-V's slices repeat sizes that stand elsewhere; every other block is harmless."""
    found = {
        id: text.split()[1]
        for id, config in load_configs().items()
        if any(isinstance(value, dict) for value in config.values())
        for text in pc.load(config).reading.warnings
        if "(a block with" in text
    }
    assert found == {
        "minicpm-v-2.6": "slice_config",
        "minicpm-v-4": "slice_config",
        "ovis2-1b": "vision_config.backbone_config",
        "ovis2-2b": "vision_config.backbone_config",
    }


# ---- classes


def test_an_unknown_class_with_sizes_that_the_reference_does_not_use_is_refused() -> None:
    """draft_vocab_size is the size of a draft head's own LM head."""
    assert (
        model_error({**LLAMA, "architectures": ["FooLlamaForCausalLM"], "draft_vocab_size": 50})
        == "architectures.0 = FooLlamaForCausalLM is unknown, and LlamaForCausalLM does not use draft_vocab_size "
        "(expected LlamaForCausalLM)"
    )
    (warning,) = pc.count({**LLAMA, "draft_vocab_size": 50}).warnings
    assert warning.startswith("ignored draft_vocab_size")


# ---- modeling code of a repository


@pytest.mark.parametrize(
    ("config", "code", "reference"),
    [
        ({"model_type": "bert"}, "someone/a-bert--modeling_bert.OwnBertForMaskedLM", "BertForMaskedLM"),
        (
            {"model_type": "bert", "architectures": ["BertForMaskedLM"]},
            "bert_layers.BertForMaskedLM",
            "BertForMaskedLM",
        ),
        (LLAMA, "modeling_llama.LlamaForCausalLM", "LlamaForCausalLM"),
        ({"model_type": "llava"}, "modeling_llava.Llava", "LlavaForConditionalGeneration"),
    ],
)
def test_modeling_code_of_the_repository_is_a_warning(config: dict[str, Any], code: str, reference: str) -> None:
    plain = pc.count(config)
    count = pc.count({**config, "auto_map": {"AutoConfig": "configuration.Config", "AutoModelForCausalLM": code}})
    assert count.total == plain.total
    (warning,) = set(count.warnings) - set(plain.warnings)
    assert warning == (
        f"config.json names its own modeling code (auto_map: {code}); paramcount counts {reference} of transformers, "
        "which may differ"
    )


@pytest.mark.parametrize(
    ("config", "auto_map"),
    [
        (QWEN, {"AutoModelForCausalLM": "modeling_qwen.QWenLMHeadModel"}),  # declared from this code
        ({"model_type": "deepseek_v3"}, {"AutoModel": "modeling_deepseek.DeepseekV3Model"}),  # a copy
        (LLAMA, {"AutoTokenizer": ["tokenization_x.Tokenizer", None]}),
        (LLAMA, {"AutoConfig": "configuration_x.Config"}),
        (LLAMA, None),
        (LLAMA, []),
    ],
)
def test_modeling_code_that_is_declared_or_compared_is_no_warning(config: dict[str, Any], auto_map: object) -> None:
    assert pc.count({**config, "auto_map": auto_map}).warnings == pc.count(config).warnings


def test_no_published_config_of_the_zoo_has_modeling_code_that_was_not_compared() -> None:
    configs = {id: config for id, config in load_configs().items() if config.get("auto_map")}
    assert len(configs) >= 9
    assert [
        id for id, config in configs.items() for text in pc.load(config).reading.warnings if "auto_map" in text
    ] == []


# ---- sizes under other names


@pytest.mark.parametrize(("name", "total"), [("EleutherAI_gpt-j-6b", 6_050_882_784)])
def test_sizes_under_other_names_that_repeat_the_defaults_are_no_error(name: str, total: int) -> None:
    """GPTJForCausalLM with its default config, transformers 5.23.0."""
    assert pc.count(OTHER_NAMES[name]).total == total


def test_a_bare_model_type_or_one_misspelt_key_is_no_error() -> None:
    assert pc.count({"model_type": "qwen3"}).total == pc.count({"model_type": "qwen3", "rope_theta": 5e5}).total
    one = {key: value for key, value in LLAMA.items() if key != "hidden_size"} | {"hiden_size": 64}
    assert "did you mean hidden_size?" in pc.count(one).warnings[0]
    assert "did you mean hidden_size?" in pc.count({"model_type": "llama", "hiden_size": 64}).warnings[0]
