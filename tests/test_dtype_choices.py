"""NAME=DTYPE: components, layers and modules with a dtype of their own."""

from __future__ import annotations

from functools import cache

import pytest

import paramcount as pc
from tests.running import Runner

# llama-3.1-8b: 32 layers of 4,096 with KV heads of 1,024 and MLPs of 14,336
ATTENTION, MLP, NORMS = 2 * 4096**2 + 2 * 4096 * 1024, 3 * 4096 * 14336, 2 * 4096


def find_bytes(dtype: str, choices: dict[str, str], model: str = "llama-3.1-8b") -> int:
    return (
        find_plain_bytes(dtype, model)
        if not choices
        else pc.memory(model, dtype=dtype, component_dtypes=choices).weights_bytes
    )


@cache
def find_plain_bytes(dtype: str, model: str) -> int:
    return pc.memory(model, dtype=dtype).weights_bytes


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("lm_head", 128_256 * 4096),
        ("qkv", 32 * (4096**2 + 2 * 4096 * 1024)),
        ("qkv.k", 32 * 4096 * 1024),  # a detail of a component
        ("layers.5", ATTENTION + MLP + NORMS),
        ("layers.0-3", 4 * (ATTENTION + MLP + NORMS)),
        ("layers.0-99", 32 * (ATTENTION + MLP + NORMS)),
        ("layers.30-31.self_attn", 2 * ATTENTION),
        ("layers.0-3.mlp.down_proj", 4 * 4096 * 14336),
        ("layers.0-3.*down_proj", 4 * 4096 * 14336),
        ("down_proj", 32 * 4096 * 14336),
        ("self_attn", 32 * ATTENTION),
        ("*.self_attn.*", 32 * ATTENTION),
        ("*.qkv_proj", 32 * (4096**2 + 2 * 4096 * 1024)),  # as engines fuse it
        ("model.layers.7.mlp.up_proj", 4096 * 14336),
        ("*norm", 65 * 4096),
    ],
)
def test_a_name_changes_the_weights_that_it_means(name: str, values: int) -> None:
    assert find_bytes("bf16", {name: "fp32"}) - find_bytes("bf16", {}) == 2 * values


def test_the_last_name_that_means_a_tensor_counts() -> None:
    base, down = find_bytes("bf16", {}), 4096 * 14336
    assert find_bytes("bf16", {"down_proj": "fp32", "layers.0-3": "bf16"}) - base == 2 * 28 * down
    assert find_bytes("bf16", {"layers.0-3": "bf16", "down_proj": "fp32"}) - base == 2 * 32 * down


def test_layers_are_those_of_the_decoder_whatever_they_are_called() -> None:
    gpt2 = find_bytes("bf16", {"layers.0-1": "fp32"}, "gpt2-small") - find_bytes("bf16", {}, "gpt2-small")
    # a layer of 768: four attention matrices, two of the MLP, their biases, two norms with biases
    assert gpt2 == 2 * 2 * (12 * 768**2 + 13 * 768)
    vision = find_bytes("bf16", {"layers.0": "fp32"}, "qwen3-vl-2b") - find_bytes("bf16", {}, "qwen3-vl-2b")
    layer = pc.count("qwen3-vl-2b").components
    n = sum(layer[name] for name in ("qkv", "output_projection", "mlp")) // 28 + 2 * 2048 + 2 * 128
    assert vision == 2 * n


def test_a_release_that_leaves_attention_and_the_outer_layers_in_bf16() -> None:
    """With all linear layers in FP8 the answer would be 15% less."""
    choices = {"self_attn": "bf16", "layers.0": "bf16", "layers.125": "bf16", "lm_head": "bf16"}
    mlp, fp8 = 3 * 16384 * 53248, 124 * 3 * 16384 * 53248  # parameters in FP8, with a scale of two bytes per output
    scales = 124 * (2 * 53248 + 16384) * 2
    total = pc.count("llama-3.1-405b").total
    assert mlp * 124 == fp8
    assert find_bytes("fp8-row", choices, "llama-3.1-405b") == 2 * (total - fp8) + fp8 + scales


def test_a_gguf_mix_takes_components_only(run: Runner) -> None:
    assert find_bytes("q4_k_m", {"lm_head": "bf16"}) > find_bytes("q4_k_m", {})
    result = run("memory", "llama-3.1-8b", "--dtype", "q4_k_m", "--dtype", "layers.0-3=bf16")
    assert result.code == 2
    assert "layers.0-3 beside the GGUF mix Q4_K_M (expected embedding, norm, qkv" in result.err
