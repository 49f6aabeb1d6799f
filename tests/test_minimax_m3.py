"""MiniMax M3 as released files and inference engines name it."""

from __future__ import annotations

from typing import Any

import paramcount as pc

# ai-dynamo/aiconfigurator@095f58a51c4c: aic-core/src/aiconfigurator_core/model_configs/
# MiniMaxAI--MiniMax-M3_config.json
LAYERS = [0] * 3 + [1] * 57
ALONE: dict[str, Any] = {
    "architectures": ["MiniMaxM3ForCausalLM"], "attention_output_gate": False, "dense_intermediate_size": 12288,
    "first_k_dense_replace": 3, "head_dim": 128, "hidden_act": "swigluoai", "hidden_size": 6144,
    "intermediate_size": 3072, "max_position_embeddings": 1048576, "model_type": "minimax_m3",
    "moe_intermediate_size": 3072, "moe_layer_freq": LAYERS, "n_shared_experts": 1, "num_attention_heads": 64,
    "num_experts_per_tok": 4, "num_hidden_layers": 60, "num_key_value_heads": 4, "num_local_experts": 128,
    "num_mtp_modules": 7, "num_nextn_predict_layers": 1, "partial_rotary_factor": 0.5, "qk_norm_type": "per_head",
    "rms_norm_eps": 1e-06, "rope_theta": 5000000, "rotary_dim": 64, "routed_scaling_factor": 2.0,
    "scoring_func": "sigmoid", "shared_intermediate_size": 3072,
    "sparse_attention_config": {
        "sparse_attention_freq": LAYERS, "sparse_block_size": 128, "sparse_disable_index_value": LAYERS,
        "sparse_index_dim": 128, "sparse_init_block": 0, "sparse_local_block": 1, "sparse_num_index_heads": 4,
        "sparse_score_type": "max", "sparse_topk_blocks": 16, "use_sparse_attention": True,
    },
    "swiglu_alpha": 1.702, "swiglu_limit": 7.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "use_gemma_norm": True, "use_qk_norm": True, "use_routing_bias": True, "vocab_size": 200064,
}  # fmt: skip


def test_the_language_model_alone_has_what_the_whole_has_of_it() -> None:
    count, whole = pc.count(ALONE), pc.count("minimax-m3")
    assert (count.total, count.scope, count.reference) == (whole.language_model, "model", "MiniMaxM3ForCausalLM")
    assert count.active == whole.active - whole.parts["vision"] - whole.parts["projector"]


def test_the_name_of_its_activation_in_released_files_is_no_error() -> None:
    document = {"model_type": "minimax_m3_vl", "text_config": {"hidden_act": "swigluoai"}}
    with_default = pc.count({"model_type": "minimax_m3_vl", "text_config": {}})
    assert pc.count(document).total == with_default.total
