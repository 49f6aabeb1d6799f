"""flash-linear-attention's, RWKV's and Hyena's models: totals of loaded checkpoints, and configs that are refused."""

from __future__ import annotations

from typing import Any

import pytest

import paramcount as pc
from tests.comparison import count_shapes

RWKV7 = {
    "model_type": "rwkv7", "architectures": ["RWKV7ForCausalLM"], "vocab_size": 65536, "hidden_size": 1024,
    "num_hidden_layers": 24, "intermediate_size": 4096, "head_dim": 64, "decay_low_rank_dim": 64,
    "a_low_rank_dim": 64, "gate_low_rank_dim": 128, "v_low_rank_dim": 32,
}  # fmt: skip
RWKV6 = {
    "model_type": "rwkv6", "architectures": ["RWKV6ForCausalLM"], "vocab_size": 65536, "hidden_size": 2048,
    "num_hidden_layers": 24, "num_heads": 32, "expand_k": 1.0, "expand_v": 1.0, "hidden_ratio": 3.5,
    "proj_low_rank_dim": 32, "gate_low_rank_dim": 64,
}  # fmt: skip
HGRN2 = {
    "model_type": "hgrn2", "vocab_size": 32000, "hidden_size": 2048, "num_hidden_layers": 24, "expand_ratio": 128,
    "num_heads": 16, "hidden_ratio": 4, "intermediate_size": None,
}  # fmt: skip
GLA = {"model_type": "gla", "vocab_size": 320, "hidden_size": 64, "num_hidden_layers": 4, "num_heads": 4}
# Of flash-linear-attention's configuration_mamba2.py, as configs/mamba2_1B.json of fla-org/flame states it
MAMBA2 = {
    "model_type": "mamba2", "fuse_norm": True, "expand": 2, "head_dim": 64, "hidden_size": 2048, "state_size": 128,
    "conv_kernel": 4, "num_hidden_layers": 48, "vocab_size": 32000, "tie_word_embeddings": False, "use_bias": False,
    "use_conv_bias": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "total", "tensors"),
    [
        (RWKV7, 450_767_872, 795),  # RWKV/RWKV7-Goose-World2.9-0.4B-HF@e94655a9fad2
        (RWKV6, 1_599_873_024, 582),  # BlinkDL's RWKV-6 World 1.6B in flash-linear-attention's form
        (HGRN2, 1_364_396_032, 244),  # fla-hub/hgrn2-1.3B-100B@2f413dd9b635
    ],
    ids=["rwkv7", "rwkv6", "hgrn2"],
)
def test_a_loaded_checkpoint_has_as_many_parameters_and_tensors(
    config: dict[str, Any], total: int, tensors: int
) -> None:
    count = pc.count(config)
    assert (count.total, sum(count_shapes(count).values())) == (total, tensors)


def test_both_forms_of_rwkv_6_have_the_same_total() -> None:
    world = {
        "model_type": "rwkv6", "architectures": ["Rwkv6ForCausalLM"], "vocab_size": 65536, "hidden_size": 2048,
        "num_hidden_layers": 24, "attention_hidden_size": 2048, "head_size": 64,
    }  # fmt: skip
    assert pc.count(world).total == pc.count(RWKV6).total


def test_heads_of_mamba_2_fill_the_inner_size_in_the_form_of_flash_linear_attention() -> None:
    stated = {**MAMBA2, "num_heads": 64, "n_groups": 1}
    del stated["fuse_norm"]
    assert pc.count(MAMBA2).total == pc.count(stated).total


def test_layers_of_attn_have_softmax_attention_in_place_of_the_mixer() -> None:
    """Its four matrices, and a KV cache as long as the window."""
    hybrid = {**GLA, "attn": {"layers": [1, 3], "num_heads": 4, "num_kv_heads": 2, "window_size": 16}}
    count = pc.count(hybrid)
    assert count.components["qkv"] == 2 * (64 * 64 + 2 * 32 * 64)
    assert count.components["output_projection"] == 2 * 64 * 64
    assert count.components["mixer"] == pc.count(GLA).components["mixer"] // 2
