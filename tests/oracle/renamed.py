"""Architectures that only their authors publish, and the same computation under names of the reference.

Their authors' code is not run. Each computes what a decoder of the reference does, with other names of tensors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

SIZES = {
    "vocab_size": 96,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
GATED = {**SIZES, "intermediate_size": 44}
GROUPED = {**GATED, "num_key_value_heads": 2}
SETTINGS = {"rms_norm_eps": 0.01, "rope_theta": 300.0}
BASE = {"rope_theta": 300.0}


LATENT = {
    **GATED, **SETTINGS, "num_key_value_heads": 4, "q_lora_rank": 20, "kv_lora_rank": 16, "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 6, "v_head_dim": 8, "first_k_dense_replace": 1, "n_routed_experts": 8, "num_experts_per_tok": 3,
    "n_shared_experts": 2, "moe_intermediate_size": 14, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 1.7,
    "rope_scaling": {
        "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 1.0, "mscale_all_dim": 0.8,
        "beta_fast": 4, "beta_slow": 1,
    },
}  # fmt: skip


class StandIn(NamedTuple):
    """A config of the architecture, and a config of the reference that computes the same."""

    document: dict[str, Any]
    reference: dict[str, Any]
    cls: str
    names: tuple[tuple[str, str], ...] = ()  # (pattern of a name in the reference, its replacement)
    fused: str = ""  # name of the matrix that holds q, k and v
    groups: int = 1  # how often the sequence of q, k and v recurs in it


EXAONE_NAMES = (
    (r"model\.embed_tokens", "transformer.wte"), (r"model\.norm", "transformer.ln_f"),
    (r"model\.layers", "transformer.h"),
    (r"input_layernorm", "ln_1"), (r"post_attention_layernorm", "ln_2"), (r"self_attn\.o_proj", "self_attn.out_proj"),
    (r"self_attn", "attn.attention"), (r"mlp\.gate_proj", "mlp.c_fc_0"), (r"mlp\.up_proj", "mlp.c_fc_1"),
    (r"mlp\.down_proj", "mlp.c_proj"),
)  # fmt: skip
QWEN_NAMES = (
    *EXAONE_NAMES[:5], (r"self_attn\.o_proj", "attn.c_proj"), (r"self_attn\.c_attn", "attn.c_attn"),
    (r"mlp\.gate_proj", "mlp.w2"), (r"mlp\.up_proj", "mlp.w1"), (r"mlp\.down_proj", "mlp.c_proj"),
)  # fmt: skip
INTERNLM2_NAMES = (
    (r"model\.embed_tokens", "model.tok_embeddings"), (r"^lm_head", "output"), (r"input_layernorm", "attention_norm"),
    (r"post_attention_layernorm", "ffn_norm"), (r"self_attn\.o_proj", "attention.wo"), (r"self_attn", "attention"),
    (r"mlp\.gate_proj", "feed_forward.w1"), (r"mlp\.up_proj", "feed_forward.w3"),
    (r"mlp\.down_proj", "feed_forward.w2"),
)  # fmt: skip
LING_NAMES = (
    (r"self_attn\.o_proj", "attention.dense"), (r"self_attn\.q_norm", "attention.query_layernorm"),
    (r"self_attn\.k_norm", "attention.key_layernorm"), (r"self_attn", "attention"),
    (r"model\.embed_tokens", "model.word_embeddings"), (r"e_score_correction_bias", "expert_bias"),
    (r"block_sparse_moe", "mlp"), (r"\.w1\.", ".gate_proj."), (r"\.w3\.", ".up_proj."), (r"\.w2\.", ".down_proj."),
)  # fmt: skip
CHATGLM_NAMES = (
    (r"model\.embed_tokens", "transformer.embedding.word_embeddings"), (r"model\.layers", "transformer.encoder.layers"),
    (r"model\.norm", "transformer.encoder.final_layernorm"), (r"lm_head", "transformer.output_layer"),
    (r"self_attn\.o_proj", "self_attention.dense"), (r"self_attn", "self_attention"),
    (r"gate_up_proj", "dense_h_to_4h"), (r"down_proj", "dense_4h_to_h"),
)  # fmt: skip
FALCON = {**SIZES, "bias": True, "layer_norm_epsilon": 0.01}
MIXTURE = {**GROUPED, **SETTINGS, "num_experts_per_tok": 3, "moe_intermediate_size": 14}
MIXTRAL = {**MIXTURE, "model_type": "mixtral", "num_local_experts": 8, "intermediate_size": 14}
LIGHTNING = {
    **MIXTRAL, "num_hidden_layers": 3, "num_attention_heads": 4, "hidden_act": "gelu", "rms_norm_eps": 0.01,
}  # fmt: skip
LAYER_NORMS = {"layer_norm_eps": 0.01, "rope_theta": 300.0}
STAND_INS = {
    "mimo": StandIn(
        {**GROUPED, **SETTINGS, "model_type": "mimo"},
        {**GROUPED, **SETTINGS, "model_type": "qwen2"},
        "Qwen2ForCausalLM",
    ),
    "chatglm": StandIn(
        {
            **SIZES,
            "model_type": "chatglm",
            "padded_vocab_size": 96,
            "num_layers": 2,
            "kv_channels": 8,
            "ffn_hidden_size": 44,
            "multi_query_attention": True,
            "multi_query_group_num": 2,
            "add_qkv_bias": True,
            "layernorm_epsilon": 0.01,
        },
        {**GROUPED, "model_type": "glm", "head_dim": 8, "rms_norm_eps": 0.01, "pad_token_id": 0},
        "GlmForCausalLM",
        CHATGLM_NAMES,
        "query_key_value",
    ),
    "RefinedWeb": StandIn(
        {**FALCON, "model_type": "RefinedWeb", "hidden_size": 256, "n_head_kv": 2, "parallel_attn": True},
        {**FALCON, "model_type": "falcon", "hidden_size": 256, "num_kv_heads": 2, "new_decoder_architecture": True},
        "FalconForCausalLM",
    ),
    "RefinedWebModel": StandIn(
        {**FALCON, "model_type": "RefinedWebModel", "multi_query": True, "parallel_attn": True},
        {**FALCON, "model_type": "falcon", "multi_query": True},
        "FalconForCausalLM",
    ),
    "hunyuan": StandIn(
        {**GROUPED, **SETTINGS, "model_type": "hunyuan", "use_qk_norm": True, "pad_token_id": 0},
        {**GROUPED, **SETTINGS, "model_type": "hunyuan_v1_dense", "head_dim": 8, "pad_token_id": 0},
        "HunYuanDenseV1ForCausalLM",
    ),
    "nemotron-nas": StandIn(
        {
            **SIZES,
            **SETTINGS,
            "model_type": "nemotron-nas",
            "block_configs": [{"attention": {"n_heads_in_group": 2}, "ffn": {"ffn_mult": 2.0}}] * 2,
        },
        {**GROUPED, **SETTINGS, "model_type": "llama", "intermediate_size": 256},
        "LlamaForCausalLM",
    ),
    "kimi_k2": StandIn(
        {**LATENT, "model_type": "kimi_k2", "architectures": ["DeepseekV3ForCausalLM"], "topk_method": "noaux_tc"},
        {**LATENT, "model_type": "deepseek_v3"},
        "DeepseekV3ForCausalLM",
    ),
    "minimax_text_01": StandIn(
        {
            **LIGHTNING,
            "model_type": "minimax_text_01",
            "architectures": ["MiniMaxText01ForCausalLM"],
            "attn_type_list": [0, 1, 0],
            "postnorm": True,
            "layernorm_full_attention_alpha": 1.5,
            "layernorm_full_attention_beta": 0.5,
            "layernorm_linear_attention_alpha": 1.2,
            "layernorm_linear_attention_beta": 0.8,
            "layernorm_mlp_alpha": 3.5,
            "layernorm_mlp_beta": 0.7,
        },
        {
            **LIGHTNING,
            "model_type": "minimax",
            "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            "full_attn_alpha_factor": 1.5,
            "full_attn_beta_factor": 0.5,
            "linear_attn_alpha_factor": 1.2,
            "linear_attn_beta_factor": 0.8,
            "mlp_alpha_factor": 3.5,
            "mlp_beta_factor": 0.7,
        },
        "MiniMaxForCausalLM",
    ),
    "bailing_moe": StandIn(
        {
            **MIXTURE,
            "model_type": "bailing_moe",
            "pad_token_id": None,
            "num_experts": 8,
            "num_shared_experts": 0,
            "use_bias": False,
        },
        MIXTRAL,
        "MixtralForCausalLM",
        LING_NAMES,
        "query_key_value",
    ),
    "bailing_moe_v2": StandIn(
        {
            **MIXTURE,
            "model_type": "bailing_moe_v2",
            "pad_token_id": None,
            "num_experts": 8,
            "num_shared_experts": 2,
            "head_dim": 12,
            "partial_rotary_factor": 0.5,
            "first_k_dense_replace": 1,
            "n_group": 4,
            "topk_group": 2,
            "routed_scaling_factor": 1.7,
        },
        {
            **MIXTURE,
            "model_type": "glm4_moe",
            "n_routed_experts": 8,
            "n_shared_experts": 2,
            "head_dim": 12,
            "partial_rotary_factor": 0.5,
            "first_k_dense_replace": 1,
            "n_group": 4,
            "topk_group": 2,
            "routed_scaling_factor": 1.7,
            "use_qk_norm": True,
        },
        "Glm4MoeForCausalLM",
        LING_NAMES,
        "query_key_value",
    ),
    "deepseek": StandIn(
        {
            **MIXTURE,
            "model_type": "deepseek",
            "n_routed_experts": 8,
            "n_shared_experts": 0,
            "norm_topk_prob": True,
        },
        MIXTRAL,
        "MixtralForCausalLM",
        LING_NAMES[-4:],
    ),
    "qwen": StandIn(
        {
            **SIZES,
            "model_type": "qwen",
            "kv_channels": 8,
            "intermediate_size": 88,
            "layer_norm_epsilon": 0.01,
            "rotary_emb_base": 300,
        },
        {**GATED, **SETTINGS, "model_type": "qwen2", "num_key_value_heads": 4},
        "Qwen2ForCausalLM",
        QWEN_NAMES,
        "c_attn",
    ),
    "internlm": StandIn(
        {**GATED, "model_type": "internlm", "rms_norm_eps": 0.01, "rotary": {"base": 300.0, "type": "dynamic"}},
        {**GATED, **SETTINGS, "model_type": "llama", "attention_bias": True},
        "LlamaForCausalLM",
    ),
    "internlm2": StandIn(
        {
            **GROUPED,
            **SETTINGS,
            "model_type": "internlm2",
            "bias": True,
            "rope_scaling": {"type": "linear", "factor": 3.0},
        },
        {
            **GROUPED,
            **SETTINGS,
            "model_type": "llama",
            "attention_bias": True,
            "rope_scaling": {"type": "linear", "factor": 3.0},
        },
        "LlamaForCausalLM",
        INTERNLM2_NAMES,
        "wqkv",
        2,
    ),
    "Yi": StandIn(
        {**GROUPED, **BASE, "model_type": "Yi"},
        {**GROUPED, **BASE, "rms_norm_eps": 1e-5, "model_type": "llama"},
        "LlamaForCausalLM",
        ((r"input_layernorm", "ln1"), (r"post_attention_layernorm", "ln2")),
    ),
    "exaone": StandIn(
        {
            **GROUPED,
            **BASE,
            "model_type": "exaone",
            "layer_norm_epsilon": 0.01,
            "activation_function": "gelu",
            "tie_word_embeddings": False,
        },
        {**GROUPED, **SETTINGS, "model_type": "llama", "hidden_act": "gelu"},
        "LlamaForCausalLM",
        EXAONE_NAMES,
    ),
    "skywork": StandIn(
        {**GROUPED, **SETTINGS, "model_type": "skywork"},
        {**GROUPED, **SETTINGS, "model_type": "llama"},
        "LlamaForCausalLM",
    ),
    "xverse": StandIn(
        {**GATED, **SETTINGS, "model_type": "xverse"}, {**GATED, **SETTINGS, "model_type": "llama"}, "LlamaForCausalLM"
    ),
    "aquila": StandIn(
        {**GROUPED, **SETTINGS, "model_type": "aquila"},
        {**GROUPED, **SETTINGS, "model_type": "llama"},
        "LlamaForCausalLM",
    ),
    "orion": StandIn(
        {**GROUPED, **SETTINGS, "model_type": "orion"},
        {**GROUPED, **LAYER_NORMS, "model_type": "stablelm", "partial_rotary_factor": 1.0},
        "StableLmForCausalLM",
    ),
    "stablelm_epoch": StandIn(
        {**GROUPED, **BASE, "model_type": "stablelm_epoch", "norm_eps": 0.01, "rope_pct": 0.5, "use_qkv_bias": True},
        {**GROUPED, **LAYER_NORMS, "model_type": "stablelm", "partial_rotary_factor": 0.5, "use_qkv_bias": True},
        "StableLmForCausalLM",
    ),
    "minicpm": StandIn(
        {
            **GROUPED,
            **SETTINGS,
            "model_type": "minicpm",
            "scale_emb": 3,
            "scale_depth": 1.4,
            "dim_model_base": 8,
            "tie_word_embeddings": False,
        },
        {
            **GROUPED,
            **SETTINGS,
            "model_type": "granite",
            "embedding_multiplier": 3.0,
            "residual_multiplier": 1.4 / 2**0.5,
            "attention_multiplier": 8**-0.5,
            "logits_scaling": 4.0,
        },
        "GraniteForCausalLM",
    ),
    "minicpm, mixture": StandIn(
        {
            **GROUPED,
            **SETTINGS,
            "model_type": "minicpm",
            "num_experts": 8,
            "num_experts_per_tok": 3,
            "dim_model_base": 32,
            "scale_depth": 2**0.5,
            "tie_word_embeddings": False,
        },
        {
            **GROUPED,
            **SETTINGS,
            "model_type": "mixtral",
            "num_local_experts": 8,
            "num_experts_per_tok": 3,
            "sliding_window": None,
        },
        "MixtralForCausalLM",
        ((r"block_sparse_moe", "mlp"),),
    ),
}
STAND_INS["minimax_m1"] = STAND_INS["minimax_text_01"]._replace(
    document={**STAND_INS["minimax_text_01"].document, "model_type": "minimax_m1"}
)


def rename_weights(weights: Mapping[str, Any], stand_in: StandIn) -> dict[str, Any]:
    """The reference's weights under the names, and in the layout, of the architecture."""
    found = fuse_weights(weights, stand_in) if stand_in.fused else dict(weights)
    for pattern, name in stand_in.names:
        found = {re.sub(pattern, name, old): array for old, array in found.items()}
    return found


def fuse_weights(weights: Mapping[str, Any], stand_in: StandIn) -> dict[str, Any]:
    import numpy as np

    found: dict[str, Any] = {}
    for name, array in weights.items():
        if "q_proj" in name:
            parts = [weights[name.replace("q_proj", f"{part}_proj")] for part in "qkv"]
            grouped = [part.reshape(stand_in.groups, -1, *part.shape[1:]) for part in parts]
            found[name.replace("q_proj", stand_in.fused)] = np.concatenate(grouped, 1).reshape(-1, *array.shape[1:])
        elif "k_proj" not in name and "v_proj" not in name:
            found[name] = array
    return found
