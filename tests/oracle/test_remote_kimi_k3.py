"""Kimi K3 has the parameters and buffers of an independent transcription."""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.oracle.differential import count_document
from tests.oracle.remote_kimi_k3 import make_kimi_k3
from tests.oracle.test_remote_multimodal import RELEASED, list_parameters

TEXT = {
    "model_type": "kimi_linear", "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 4, "intermediate_size": 44,
    "num_attention_heads": 4, "num_key_value_heads": 4, "kv_lora_rank": 16, "q_lora_rank": 12, "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4, "v_head_dim": 6, "num_experts": 8, "num_experts_per_token": 2, "num_shared_experts": 2,
    "moe_intermediate_size": 10, "first_k_dense_replace": 1, "routed_expert_hidden_size": 14, "moe_layer_freq": 1,
    "latent_moe_use_norm": True, "attn_res_block_size": 2, "mla_use_output_gate": True, "mla_use_nope": True,
    "hidden_act": "situ", "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "pad_token_id": 95,
    "num_expert_group": 1, "topk_group": 1,
    "linear_attn_config": {
        "full_attn_layers": [3, 4], "kda_layers": [1, 2], "head_dim": 8, "num_heads": 5, "short_conv_kernel_size": 4,
        "use_full_rank_gate": True, "gate_lower_bound": -5.0,
    },
}  # fmt: skip
VISION = {
    "vt_hidden_size": 24, "vt_num_hidden_layers": 2, "vt_num_attention_heads": 3, "vt_intermediate_size": 40,
    "qkv_hidden_size": 36, "mm_hidden_size": 24, "text_hidden_size": 32, "patch_size": 7, "init_pos_emb_height": 8,
    "init_pos_emb_width": 6, "merge_kernel_size": [2, 2], "norm_type": "rmsnorm", "attn_bias": False,
    "linear_bias": False, "patch_embed_proj_bias": False, "projector_ln_eps": 1e-5, "pos_emb_type": "divided_fixed",
    "mm_projector_type": "patchmergerv2", "activation_func": "gelu_pytorch_tanh",
}  # fmt: skip
SMALL: dict[str, Any] = {
    "model_type": "kimi_k3", "architectures": ["KimiK3ForConditionalGeneration"], "media_placeholder_token_id": 90,
    "text_config": TEXT, "vision_config": VISION,
}  # fmt: skip


def change(text: dict[str, Any], vision: dict[str, Any], linear: dict[str, Any]) -> dict[str, Any]:
    found = deepcopy(SMALL)
    found["text_config"] |= text
    found["vision_config"] |= vision
    found["text_config"]["linear_attn_config"] |= linear
    return found


DOCUMENTS = {
    "small": SMALL,
    "without latent experts and earlier blocks": change(
        {"routed_expert_hidden_size": None, "attn_res_block_size": None, "mla_use_output_gate": False}, {}, {}
    ),
    "narrow gate, biases": change(
        {"latent_moe_use_norm": False},
        {"attn_bias": True, "linear_bias": True, "patch_embed_proj_bias": True},
        {"use_full_rank_gate": False},
    ),
    "4 of 93 layers": {
        **RELEASED["Kimi-K3"]["config"],
        "text_config": {
            **RELEASED["Kimi-K3"]["config"]["text_config"],
            "num_hidden_layers": 4,
            "linear_attn_config": {
                **RELEASED["Kimi-K3"]["config"]["text_config"]["linear_attn_config"],
                "kda_layers": [1, 2, 3],
                "full_attn_layers": [4],
            },
        },
    },
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_parameter_and_buffer_is_one_of_the_transcription(name: str) -> None:
    with torch.device("meta"):
        model = make_kimi_k3(SimpleNamespace(**DOCUMENTS[name]))
    _, found, buffers = count_document(DOCUMENTS[name])
    assert found == list_parameters(model)
    assert buffers == {key: tuple(buffer.shape) for key, buffer in model.named_buffers()}
