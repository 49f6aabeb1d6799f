"""ModelOpt: which layers its configs quantise, with what, and how many bytes they have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.errors import ParamcountError
from paramcount.formats.module_names import ModuleNames, is_matched

HIDDEN, INNER, VOCABULARY, LAYERS = 128, 192, 160, 12
LLAMA = {
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "vocab_size": VOCABULARY,
    "dtype": "bfloat16",
}
ATTENTION, MLP = 4 * HIDDEN**2, 3 * HIDDEN * INNER  # weights of a layer: four and three matrices
PLAIN = 2 * (2 * VOCABULARY * HIDDEN + (2 * LAYERS + 1) * HIDDEN)  # bytes of the embedding, the LM head and norms
NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]}


def find_bytes(block: dict[str, Any], config: dict[str, Any] = LLAMA) -> int:
    count = pc.count(config | {"quantization_config": block})
    assert count.stored_bytes is not None, count.notes
    return count.stored_bytes


def count_fp4(weights: int, matrices: int, scales: int = 2) -> int:
    """Bytes of NVFP4 weights: half a byte each, a byte per 16, and floats per matrix.

    Source: modelopt/torch/quantization/qtensor/nvfp4_tensor.py, and weight_scale_2 and input_scale of its exports.
    """
    return weights // 2 + weights // 16 + 4 * scales * matrices


def count_fp8(weights: int, matrices: int) -> int:
    """Bytes of FP8 weights, with a float for the matrix and one for its inputs."""
    return weights + 8 * matrices


@pytest.mark.parametrize(
    ("block", "bytes"),
    [
        (NVFP4, count_fp4(LAYERS * (ATTENTION + MLP), 7 * LAYERS)),
        (NVFP4 | {"quant_algo": "W4A16_NVFP4"}, count_fp4(LAYERS * (ATTENTION + MLP), 7 * LAYERS, scales=1)),
        (NVFP4 | {"quant_algo": "FP8"}, count_fp8(LAYERS * (ATTENTION + MLP), 7 * LAYERS)),
        # As the config of Qwen3-32B-FP8-Static-PerTensor states it, which names no method
        (
            {"quant_algo": "FP8", "producer": {"name": "modelopt"}, "ignore": ["lm_head"]},
            count_fp8(LAYERS * (ATTENTION + MLP), 7 * LAYERS),
        ),
        # "layers.1.*" is one layer and "layers.1*" are layers 1, 10 and 11
        (
            NVFP4 | {"exclude_modules": ["lm_head", "model.layers.1.*"]},
            count_fp4((LAYERS - 1) * (ATTENTION + MLP), 7 * (LAYERS - 1)) + 2 * (ATTENTION + MLP),
        ),
        (
            NVFP4 | {"exclude_modules": ["lm_head", "model.layers.1*"]},
            count_fp4((LAYERS - 3) * (ATTENTION + MLP), 7 * (LAYERS - 3)) + 3 * 2 * (ATTENTION + MLP),
        ),
        # A name stands for what is inside, with or without the model that wraps it; the last as engines fuse it
        (
            NVFP4 | {"exclude_modules": ["lm_head", "language_model.model.layers.0.self_attn"]},
            count_fp4(LAYERS * (ATTENTION + MLP) - ATTENTION, 7 * LAYERS - 4) + 2 * ATTENTION,
        ),
        (
            NVFP4 | {"exclude_modules": ["lm_head", "model.layers.5.mlp.gate_up_proj", "*.o_proj"]},
            count_fp4(LAYERS * (ATTENTION * 3 // 4 + MLP) - MLP * 2 // 3, 6 * LAYERS - 2)
            + 2 * (LAYERS * ATTENTION // 4 + MLP * 2 // 3),
        ),
    ],
)
def test_the_layers_that_are_not_excluded_are_quantised(block: dict[str, Any], bytes: int) -> None:
    assert find_bytes(block) == PLAIN + bytes


def test_each_listed_layer_has_its_own_format() -> None:
    layers: dict[str, Any] = {}
    for i in range(LAYERS):
        layers |= {f"model.layers.{i}.self_attn.{name}": {"quant_algo": "FP8"} for name in ("q_proj", "o_proj")}
        layers[f"model.layers.{i}.mlp"] = {"quant_algo": "NVFP4", "group_size": 16}
    layers["lm_head"] = {"quant_algo": "FP8"}
    block = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    head = VOCABULARY * HIDDEN
    expected = PLAIN - 2 * head + count_fp8(head, 1) + count_fp8(LAYERS * ATTENTION // 2, 2 * LAYERS)
    assert find_bytes(block) == expected + 2 * LAYERS * ATTENTION // 2 + count_fp4(LAYERS * MLP, 3 * LAYERS)
    storage = pc.count(LLAMA | {"quantization_config": block}).storage
    assert storage is not None
    assert storage.scheme == "FP8 and NVFP4 by ModelOpt"


def test_listed_modules_of_an_fp8_release_have_a_format_of_their_own() -> None:
    """As DeepSeek-V4-Flash-NVFP4 states it: quant_method fp8, and the experts in quantized_layers."""
    fp8 = {"quant_method": "fp8", "weight_block_size": [64, 64]}
    layers = {f"model.layers.{i}.mlp": {"quant_algo": "NVFP4", "group_size": 16} for i in range(LAYERS)}
    block = fp8 | {"quant_algo": "MIXED_PRECISION", "quantized_layers": layers, "ignore": ["*.self_attn.*"]}
    attention = LAYERS * (ATTENTION + 4 * ATTENTION // 64**2)
    assert find_bytes(block) == PLAIN + attention + count_fp4(LAYERS * MLP, 3 * LAYERS)


def test_mxfp8_has_a_byte_per_32_inputs() -> None:
    assert (
        find_bytes(NVFP4 | {"quant_algo": "MXFP8", "group_size": None}) == PLAIN + LAYERS * (ATTENTION + MLP) * 33 // 32
    )


def test_experts_in_one_tensor_are_exported_one_by_one() -> None:
    config = {
        "model_type": "qwen3_vl_moe",
        "text_config": {
            "model_type": "qwen3_vl_moe_text", "hidden_size": 64, "moe_intermediate_size": 32, "num_experts": 4,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
            "vocab_size": 96, "intermediate_size": 64, "num_experts_per_tok": 2,
        },
        "vision_config": {"model_type": "qwen3_vl_moe", "depth": 1, "hidden_size": 16, "num_heads": 2,
                          "intermediate_size": 32, "out_hidden_size": 64, "deepstack_visual_indexes": [0]},
        "dtype": "bfloat16",
    }  # fmt: skip
    plain = 2 * pc.count(config).total
    block = NVFP4 | {"exclude_modules": ["lm_head", "model.visual*", "*.self_attn.*"]}
    experts, matrices = 2 * 4 * 3 * 64 * 32, 2 * 4 * 3
    assert find_bytes(block, config) == plain - 2 * experts + count_fp4(experts, matrices)


def test_the_config_may_lie_beside_the_model_s(tmp_path: Path) -> None:
    """hf_quant_config.json has the block that newer versions write into the config.json."""
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    assert pc.count(tmp_path).stored_bytes is None
    block = {key: value for key, value in NVFP4.items() if key != "quant_method"}
    beside = {"producer": {"name": "modelopt", "version": "0.41.0"}, "quantization": block}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(beside), encoding="utf-8")
    assert pc.count(tmp_path).stored_bytes == find_bytes(NVFP4)
    assert pc.memory(tmp_path).dtype == "NVFP4 by ModelOpt (as stored)"
    (tmp_path / "hf_quant_config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ParamcountError, match=r"hf_quant_config\.json"):
        pc.count(tmp_path)


@pytest.mark.parametrize(
    ("block", "note"),
    [
        ({"quant_algo": "W4A8_AWQ"}, "has the quant_algo 'W4A8_AWQ', whose layout is unknown"),
        ({"quant_algo": None}, "has the quant_algo 'None'"),
        ({"group_size": 32}, "group_size = 32 (expected 16 for NVFP4)"),
        ({"quantized_layers": ["lm_head"]}, "quantized_layers = "),
        ({"quantized_layers": {"lm_head": {"quant_algo": "INT3"}}}, "has the quant_algo 'INT3'"),
        ({"exclude_modules": "lm_head"}, "exclude_modules = 'lm_head'"),
    ],
)
def test_what_is_unknown_leaves_the_bytes_unknown(block: dict[str, Any], note: str) -> None:
    count = pc.count(LLAMA | {"quantization_config": NVFP4 | block})
    assert count.stored_bytes is None
    assert note in "".join(count.notes)


def test_the_size_is_exact_only_if_the_config_lists_what_is_left_out() -> None:
    for block, is_exact in (
        (NVFP4, True),
        (NVFP4 | {"kv_cache_quant_algo": "FP8"}, False),  # files may have scales of the KV cache
        (NVFP4 | {"exclude_modules": []}, False),
    ):
        storage = pc.count(LLAMA | {"quantization_config": block}).storage
        assert storage is not None
        assert storage.exact is is_exact


def test_mtp_layers_are_stored_if_the_config_names_them() -> None:
    """As DeepSeek-V3.1-NVFP4 does: "model.layers.61*" are left out, so its files have them in BF16."""
    config = {
        "model_type": "deepseek_v3", "hidden_size": 128, "intermediate_size": 256, "moe_intermediate_size": 64,
        "num_hidden_layers": 3, "first_k_dense_replace": 1, "n_routed_experts": 4, "num_attention_heads": 4,
        "num_nextn_predict_layers": 1, "q_lora_rank": 64, "kv_lora_rank": 64, "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16, "v_head_dim": 32, "vocab_size": 160, "dtype": "bfloat16", "n_group": 1,
        "topk_group": 1, "num_experts_per_tok": 2,
    }  # fmt: skip
    count = pc.count(config)
    assert count.mtp is not None
    without = find_bytes(NVFP4, config)
    named = find_bytes(NVFP4 | {"exclude_modules": ["lm_head", "model.layers.3*"]}, config)
    assert named - without == 2 * count.mtp + 4 * (count.mtp_buffers or 0)


def test_names_are_compared_without_wrappers_and_as_engines_fuse_them() -> None:
    names = ModuleNames(["model.language_model.layers.3.mlp.experts", "visual.blocks.*.attn*", "mtp*"])
    for module, is_listed in (
        ("language_model.model.layers.3.mlp.experts.0.up_proj", True),
        ("model.layers.3.mlp.experts_gate", False),
        ("model.visual.blocks.12.attn.qkv", True),
        ("mtp.layers.0.mlp.up_proj", True),
        ("model.layers.30.mlp.experts.0.up_proj", False),
    ):
        assert (module in names) is is_listed
    assert is_matched("model.layers.0.self_attn.q_proj", ("model.layers.0.self_attn.qkv_proj",))
    assert is_matched("model.language_model.layers.0.mlp.up_proj", (r"re:model\.layers\.\d+\.mlp.*",))
    assert not is_matched("model.layers.0.mlp.up_proj", (r"re:.*self_attn.*", "lm_head"))
