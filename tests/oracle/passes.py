"""The same tokens through a trace and through the reference: tiny configs of both."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from paramcount.api import load
from paramcount.architectures import split_name
from paramcount.tracing.run import has_encoder_input, trace_model
from paramcount.tracing.shapes import TraceOptions
from paramcount.tracing.trace import Trace
from tests import cases
from tests.model_types import MODEL_TYPES
from tests.oracle import differential, images
from tests.oracle.modules import Cached, Call, list_cached, watch_experts, watch_modules

TOKENS, SOURCE, TEXTS, PAST = 6, 7, 2, 9
# No two of these sizes are equal, so that no shape fits by chance; the window is shorter than the past.
USUAL = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 10,
    "intermediate_size": 44, "max_position_embeddings": 64,
}  # fmt: skip
SLIDING = {**USUAL, "sliding_window": 5}
NO_WIDTH = {key: size for key, size in USUAL.items() if key != "head_dim"}
MOE = {**USUAL, "moe_intermediate_size": 14, "num_experts": 8, "num_experts_per_tok": 3}
LATENT = {
    **USUAL, "num_key_value_heads": 4, "q_lora_rank": 20, "kv_lora_rank": 16, "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 6, "v_head_dim": 8, "head_dim": 6,
    "first_k_dense_replace": 1, "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 2,
    "moe_intermediate_size": 14, "n_group": 2,
    "topk_group": 2, "topk_method": "greedy", "routed_scaling_factor": 1.0,
}  # fmt: skip
# Every setting that a latent decoder reads has another value than its default.
YARN = {
    "rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 1.0,
    "mscale_all_dim": 0.8, "beta_fast": 4, "beta_slow": 1,
}  # fmt: skip
VARIED = {
    **LATENT, "rms_norm_eps": 1e-2, "hidden_act": "gelu", "attention_bias": True, "n_group": 4, "topk_group": 2,
    "norm_topk_prob": False, "routed_scaling_factor": 1.7, "rope_parameters": YARN,
}  # fmt: skip
LATENT_DENSE = {
    **USUAL, "num_key_value_heads": 4, "q_lora_rank": 20, "kv_lora_rank": 16, "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 6, "v_head_dim": 8, "head_dim": 6,
}  # fmt: skip
VARIED_DENSE = {
    **LATENT_DENSE, "rms_norm_eps": 1e-2, "hidden_act": "gelu", "attention_bias": True, "rope_parameters": YARN,
}  # fmt: skip
INDEX = {"index_n_heads": 16, "index_head_dim": 18, "index_topk": 4}
GEMMA3N = {
    **SLIDING, "num_hidden_layers": 6, "num_kv_shared_layers": 2, "vocab_size_per_layer_input": 96,
    "hidden_size_per_layer_input": 6, "altup_num_inputs": 3,
    "laurel_rank": 7, "layer_types": ["sliding_attention", "full_attention"] * 3,
}  # fmt: skip
KIMI = {
    **LATENT_DENSE, "num_hidden_layers": 3, "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    "linear_num_heads": 3, "linear_head_dim": 8, "linear_conv_kernel_dim": 4, "num_experts": 8, "q_lora_rank": None,
    "num_experts_per_token": 3, "num_shared_experts": 2, "moe_intermediate_size": 14, "first_k_dense_replace": 1,
    "pad_token_id": 0,
}  # fmt: skip
DOTS3 = {
    **LATENT, **INDEX, "num_hidden_layers": 3,
    "layer_types": ["indexed_attention", "sliding_attention", "indexed_attention"], "sliding_window": 5,
    "swa_num_attention_heads": 2, "swa_num_key_value_heads": 2, "swa_q_lora_rank": 22, "swa_kv_lora_rank": 26,
    "swa_qk_nope_head_dim": 8, "swa_qk_rope_head_dim": 4, "swa_head_dim": 12, "swa_v_head_dim": 9,
    "shared_experts_intermediate_size": 15, "n_group": 1, "topk_group": 1, "head_dim": 18, "pad_token_id": 0,
}  # fmt: skip
HY4 = {
    **LATENT, **INDEX, "num_hidden_layers": 4, "indexer_types": ["full", "shared", "full", "shared"], "hc_mult": 3,
    "n_group": 1, "topk_group": 1, "pad_token_id": 0,
}  # fmt: skip
MAMBA = {"vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 6, "conv_kernel": 4, "expand": 2}
BERT = {
    "vocab_size": 96,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 44,
    "max_position_embeddings": 64,
}
XLM = {"vocab_size": 96, "emb_dim": 32, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64}
CODEGEN = {"vocab_size": 96, "n_embd": 64, "n_layer": 2, "n_head": 8, "n_positions": 64, "n_inner": 44}
OPT = {
    "vocab_size": 96,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "ffn_dim": 44,
    "max_position_embeddings": 64,
}
XGLM = {
    "vocab_size": 96,
    "d_model": 32,
    "num_layers": 2,
    "attention_heads": 4,
    "ffn_dim": 44,
    "max_position_embeddings": 64,
}
T5 = {
    "vocab_size": 96,
    "d_model": 32,
    "d_kv": 10,
    "d_ff": 44,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
}
T5GEMMA = {**USUAL, "sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}
BART = {
    "vocab_size": 96,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 44,
    "decoder_ffn_dim": 40,
    "max_position_embeddings": 64,
}
ENCODEC = {
    "num_filters": 4, "upsampling_ratios": [3, 2], "hidden_size": 12, "codebook_size": 16, "sampling_rate": 600,
    "target_bandwidths": [0.8, 1.2],
}  # fmt: skip
T5_ENCODER = {
    "model_type": "t5", "vocab_size": 96, "d_model": 20, "d_kv": 6, "d_ff": 28, "num_layers": 2, "num_heads": 3,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 12,
}  # fmt: skip
MUSICGEN = {
    "vocab_size": 95, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 44,
    "num_codebooks": 3,
}  # fmt: skip
SEAMLESS = {**{key: size for key, size in BART.items() if key != "d_model"}, "hidden_size": 32}
HEARS = {
    **SEAMLESS, "speech_encoder_layers": 2, "speech_encoder_attention_heads": 4, "speech_encoder_intermediate_size": 24,
    "feature_projection_input_dim": 12, "conv_depthwise_kernel_size": 5, "adaptor_kernel_size": 4, "adaptor_stride": 4,
}  # fmt: skip
TROCR = {
    "vocab_size": 96,
    "d_model": 32,
    "decoder_layers": 2,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 44,
    "max_position_embeddings": 64,
}
WHISPER = {
    **{key: size for key, size in BART.items() if key != "max_position_embeddings"},
    "num_mel_bins": 6,
    "max_source_positions": 9,
    "max_target_positions": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 3,
}
XLSTM = {
    "vocab_size": 96, "hidden_size": 128, "num_hidden_layers": 2, "num_heads": 4, "qk_dim_factor": 0.5,
    "ffn_round_up_to_multiple_of": 8,
}  # fmt: skip
REFORMER = {
    "vocab_size": 96, "hidden_size": 32, "attention_head_size": 6, "num_attention_heads": 3, "feed_forward_size": 40,
    "attn_layers": ["local", "lsh", "lsh"], "axial_pos_shape": [4, 6], "axial_pos_embds_dim": [20, 12],
    "max_position_embeddings": 24, "layer_norm_eps": 1e-3,
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "gpt2": images.GPT2,
    "gpt2, cross-attention": {
        **images.GPT2, "add_cross_attention": True, "scale_attn_weights": False, "activation_function": "relu",
    },
    "llama": USUAL,
    "qwen2": USUAL,
    "qwen2_moe": {**MOE, "shared_expert_intermediate_size": 18, "decoder_sparse_step": 1, "mlp_only_layers": [0]},
    "qwen3": USUAL,
    "qwen3_moe": {**MOE, "mlp_only_layers": [1]},
    "qwen2_moe, sliding": {
        **MOE, "shared_expert_intermediate_size": 18, "num_hidden_layers": 4, "mlp_only_layers": [0],
        "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 3,
    },
    "qwen3_moe, sliding": {
        **MOE, "num_hidden_layers": 3, "mlp_only_layers": [1], "use_sliding_window": True, "sliding_window": 5,
    },
    "qwen2, sliding": {
        **USUAL, "num_hidden_layers": 3, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1,
        "hidden_act": "gelu", "rms_norm_eps": 0.01, "rope_theta": 300.0,
    },
    "qwen3, sliding": {
        **USUAL, "use_sliding_window": True, "sliding_window": 5,
        "layer_types": ["sliding_attention", "full_attention"], "attention_bias": True,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
    },
    "gemma": {**USUAL, "hidden_act": "gelu", "rms_norm_eps": 0.01, "rope_theta": 300.0},
    "gemma2": {
        **SLIDING, "num_hidden_layers": 3, "query_pre_attn_scalar": 20, "attn_logit_softcapping": 2.0,
        "final_logit_softcapping": 3.0, "rms_norm_eps": 0.01,
    },
    "gemma2, no caps": {
        **SLIDING, "attn_logit_softcapping": None, "final_logit_softcapping": None, "hidden_activation": "silu",
    },
    "gemma3_text, legacy": {
        **SLIDING,
        "rms_norm_eps": 0.01,
        "sliding_window_pattern": 2,
        "query_pre_attn_scalar": 20,
        "rope_theta": 400.0,
        "rope_local_base_freq": 50.0,
        "rope_scaling": {"rope_type": "linear", "factor": 3.0},
        "final_logit_softcapping": 3.0,
        "attn_logit_softcapping": 2.0,
    },
    "gemma3_text, both directions": {
        **SLIDING, "num_hidden_layers": 3, "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
        "sliding_window": 5, "use_bidirectional_attention": True,
    },
    "vaultgemma": {
        **SLIDING, "query_pre_attn_scalar": 20, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0,
    },
    "phi": {
        **NO_WIDTH, "partial_rotary_factor": 0.5, "qk_layernorm": True, "layer_norm_eps": 0.01, "hidden_act": "relu",
    },
    "phi3": {**NO_WIDTH, "partial_rotary_factor": 0.75, "sliding_window": 5, "pad_token_id": 0, "rms_norm_eps": 0.01},
    "phi3, longrope": {
        **NO_WIDTH, "pad_token_id": 0, "max_position_embeddings": 32, "original_max_position_embeddings": 4,
        "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.3], "long_factor": [1.0, 2.0, 3.0, 4.0]},
    },
    "olmo": {**NO_WIDTH, "clip_qkv": 0.5, "rope_theta": 300.0, "hidden_act": "gelu"},
    "olmo2": {
        **NO_WIDTH, "rms_norm_eps": 0.01, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0},
        "max_position_embeddings": 8,
    },
    "olmo3": {
        **NO_WIDTH, "sliding_window": 5, "num_hidden_layers": 4, "rope_theta": 300.0,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
    },
    "cohere": {**NO_WIDTH, "use_qk_norm": True, "logit_scale": 0.3, "layer_norm_eps": 0.01, "rope_theta": 300.0},
    "cohere2": {**NO_WIDTH, "sliding_window": 5, "logit_scale": 0.3, "num_hidden_layers": 4},
    "granite": {
        **NO_WIDTH,
        "rms_norm_eps": 0.01,
        "embedding_multiplier": 3.0,
        "attention_multiplier": 0.2,
        "residual_multiplier": 0.4,
        "logits_scaling": 5.0,
    },
    "granite_swa": {
        **NO_WIDTH,
        "sliding_window": 5,
        "num_hidden_layers": 5,
        "embedding_multiplier": 3.0,
        "attention_multiplier": 0.2,
        "residual_multiplier": 0.4, "logits_scaling": 5.0, "layer_rope_theta": [0.0, 300.0, 20.0, 300.0, 300.0],
    },
    "granite_swa, one base": {**NO_WIDTH, "sliding_window": 5, "num_hidden_layers": 5, "rope_theta": 70.0},
    "glm": {**USUAL, "partial_rotary_factor": 0.6, "pad_token_id": 0, "rms_norm_eps": 0.01},
    "glm4": {**USUAL, "rms_norm_eps": 0.01, "partial_rotary_factor": 0.6, "pad_token_id": 0, "rope_theta": 300.0},
    "stablelm": {
        **NO_WIDTH, "partial_rotary_factor": 0.5, "qk_layernorm": True, "use_parallel_residual": True,
        "layer_norm_eps": 0.01,
    },
    "stablelm, sequential": {
        **NO_WIDTH, "partial_rotary_factor": 0.5, "use_qkv_bias": True, "rope_theta": 300.0, "hidden_act": "gelu",
    },
    "ministral3": {
        **SLIDING, "pad_token_id": 0, "rms_norm_eps": 0.01, "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 300.0,
            "factor": 4.0,
            "original_max_position_embeddings": 4,
            "llama_4_scaling_beta": 0.5,
            "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
        },
    },
    "ministral3, defaults": {**USUAL, "pad_token_id": 0},
    "ministral": {
        **SLIDING, "layer_types": ["sliding_attention", "full_attention"], "rms_norm_eps": 1e-2, "hidden_act": "gelu",
        "rope_theta": 300.0,
    },
    "mistral4": {**{key: size for key, size in LATENT.items() if key != "head_dim"}, "pad_token_id": 0},
    "mistral4, other settings": {
        **{key: size for key, size in VARIED.items() if key != "head_dim"}, "pad_token_id": 0,
        "rope_parameters": {**YARN, "llama_4_scaling_beta": 0.5, "original_max_position_embeddings": 4},
    },
    "starcoder2": {**NO_WIDTH, "sliding_window": 5, "norm_epsilon": 0.01},
    "smollm3": {
        **NO_WIDTH, "num_hidden_layers": 4, "use_sliding_window": True, "sliding_window": 5,
        "no_rope_layer_interval": 3, "pad_token_id": 0, "rope_theta": 300.0,
    },
    "nemotron": {**USUAL, "partial_rotary_factor": 0.6, "norm_eps": 0.01, "hidden_act": "gelu"},
    "seed_oss": {**USUAL, "attention_out_bias": True, "attention_bias": False, "rope_theta": 300.0},
    "exaone4": {
        **NO_WIDTH, "sliding_window": 5, "num_hidden_layers": 3, "sliding_window_pattern": 2, "rms_norm_eps": 0.01,
    },
    "exaone4, no window": {**NO_WIDTH, "sliding_window": None, "layer_types": ["full_attention"] * 2},
    "falcon, sequential": {
        **NO_WIDTH, "num_key_value_heads": 4, "multi_query": False, "parallel_attn": False, "bias": True,
        "layer_norm_epsilon": 0.01, "activation": "silu",
    },
    "falcon, ALiBi": {**NO_WIDTH, "multi_query": True, "alibi": True},
    "persimmon": {**NO_WIDTH, "partial_rotary_factor": 0.5, "layer_norm_eps": 0.01, "hidden_act": "gelu"},
    "helium": {**NO_WIDTH, "head_dim": 8, "pad_token_id": 0, "rope_theta": 300.0, "rms_norm_eps": 0.01},
    "ernie4_5": {**USUAL, "use_bias": True, "rope_theta": 300.0, "rms_norm_eps": 0.01},
    "arcee": {
        **USUAL, "hidden_act": "gelu",
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 16,
            "attention_factor": 1.3,
        },
    },
    "jais2": {**USUAL, "layer_norm_eps": 0.01, "rope_theta": 300.0},
    "apertus": {**USUAL, "pad_token_id": 0, "rms_norm_eps": 0.01},
    "apertus, scaled": {
        **USUAL, "pad_token_id": 0, "rope_theta": 300.0, "hidden_act": "silu",
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 4.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 3.0,
            "original_max_position_embeddings": 16,
        },
    },
    "hunyuan_v1_dense": {
        **USUAL, "rope_scaling": {"type": "dynamic", "alpha": 50.0, "factor": 1.0}, "rms_norm_eps": 0.01,
    },
    "nanochat": {**NO_WIDTH, "final_logit_softcapping": 2.0, "rms_norm_eps": 0.01, "rope_theta": 300.0},
    "cwm": {**USUAL, "num_hidden_layers": 5, "sliding_window": 5, "rms_norm_eps": 0.01},
    "cwm, scaled": {
        **USUAL, "sliding_window": 5,
        "rope_scaling": {
            "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0, "rope_theta": 300.0,
            "original_max_position_embeddings": 16,
        },
    },
    "bitnet": {**NO_WIDTH, "hidden_act": "silu", "rms_norm_eps": 0.01, "rope_theta": 300.0},
    "hyperclovax": {
        **USUAL, "embedding_multiplier": 3.0, "attention_multiplier": 0.2, "residual_multiplier": 0.4,
        "logits_scaling": 0.3,
    },
    "hyperclovax, defaults": {**USUAL, "use_post_norm": False},
    "internlm3": {
        **USUAL, "qkv_bias": True, "bias": True, "pad_token_id": 0,
        "rope_scaling": {"rope_type": "dynamic", "factor": 6.0}, "max_position_embeddings": 8,
    },
    "iquestcoder": {**USUAL, "rms_norm_eps": 0.01, "rope_theta": 300.0},
    "mellum": {
        **MOE, "num_hidden_layers": 3, "sliding_window": 5,
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
        "mlp_layer_types": ["dense", "sparse", "sparse"],
    },
    "mellum, not normalised": {
        **MOE, "norm_topk_prob": False, "sliding_window": 5, "layer_types": ["full_attention", "sliding_attention"],
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 300.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 20.0},
        },
    },
    "deepseek_v2": LATENT,
    "deepseek_v3": {**LATENT, "num_nextn_predict_layers": 1},
    "deepseek_v2, varied": {**VARIED, "q_lora_rank": None, "mlp_bias": True, "topk_method": "group_limited_greedy"},
    "deepseek_v3, varied": {**VARIED, "rope_interleave": False},
    "deepseek_v3, yarn": {
        **LATENT, "rope_parameters": {**YARN, "mscale": 0.707, "mscale_all_dim": 0.707, "truncate": False},
    },
    "deepseek_v3, yarn without mscale": {
        **LATENT, "rope_parameters": {key: value for key, value in YARN.items() if "mscale" not in key},
    },
    "deepseek_v3, yarn attention factor": {**LATENT, "rope_parameters": {**YARN, "attention_factor": 1.3}},
    "deepseek_v32, varied": {**VARIED, **INDEX},
    "glm4_moe_lite": {**LATENT, "n_group": 1, "topk_group": 1},
    "glm4_moe_lite, varied": {**VARIED, "rope_interleave": False, "mlp_layer_types": ["sparse", "dense"]},
    "axk1": LATENT,
    "axk1, varied": {**VARIED, "rope_interleave": False},
    "youtu": LATENT_DENSE,
    "youtu, varied": {**VARIED_DENSE, "rope_interleave": False, "q_lora_rank": None},
    "minicpm3": LATENT_DENSE,
    "minicpm3, varied": {**VARIED_DENSE, "mlp_bias": True, "scale_emb": 3, "scale_depth": 0.7, "dim_model_base": 16},
    "minicpm3, unscaled": {**LATENT_DENSE, "scale_emb": 1, "scale_depth": None, "dim_model_base": None},
    "glm_moe_dsa": {**LATENT, **INDEX, "n_group": 1, "topk_group": 1},
    "glm_moe_dsa, varied": {
        **VARIED, **INDEX, "num_hidden_layers": 4, "indexer_types": ["full", "shared", "full", "shared"],
    },
    "mistral_large4_text": {**LATENT, **INDEX},
    "mistral_large4_text, varied": {
        **VARIED, **INDEX, "num_hidden_layers": 5, "no_rope_layers": [1, 0, 1, 0, 0],
        "kv_source_layers": [0, 1, 0, 1, 4], "indexer_types": ["full", "shared", "full", "full", "shared"],
    },
    "axk2": {**LATENT, **INDEX, "n_group": None, "topk_group": None, "gated_norm_rank": 7},
    "axk2, varied": {**VARIED, **INDEX, "num_hidden_layers": 4, "gated_norm_rank": 7},
    "dots3_note_text": DOTS3,
    "dots3_note_text, varied": {
        **DOTS3, "rms_norm_eps": 1e-2, "hidden_act": "gelu", "attention_bias": True, "n_group": 4, "topk_group": 2,
        "norm_topk_prob": False, "routed_scaling_factor": 1.7,
        "rope_parameters": {
            "sliding_attention": YARN, "indexed_attention": {"rope_type": "default", "rope_theta": 300.0},
        },
    },
    "deepseek_v4, windows only": {
        **USUAL, "head_dim": 12, "qk_rope_head_dim": 6, "q_lora_rank": 20, "o_groups": 2, "o_lora_rank": 9,
        "hc_mult": 3,
        "hc_sinkhorn_iters": 3,
        "hc_eps": 0.01,
        "sliding_window": 5,
        "num_hidden_layers": 3,
        "swiglu_limit": 0.2,
        "layer_types": ["sliding_attention"] * 3, "mlp_layer_types": ["hash_moe", "moe", "moe"],
        "moe_intermediate_size": 14, "n_routed_experts": 8, "num_experts_per_tok": 3, "routed_scaling_factor": 1.7,
        "rms_norm_eps": 1e-2, "hidden_act": "gelu", "rope_theta": 300.0, "partial_rotary_factor": 0.5,
    },
    "deepseek_v4, compressed": {
        **USUAL, "head_dim": 12, "qk_rope_head_dim": 6, "q_lora_rank": 20, "o_groups": 2, "o_lora_rank": 9,
        "hc_mult": 3,
        "hc_sinkhorn_iters": 3,
        "hc_eps": 0.01,
        "sliding_window": 5,
        "num_hidden_layers": 4,
        "swiglu_limit": 0.2,
        "layer_types": [
            "heavily_compressed_attention", "compressed_sparse_attention", "sliding_attention",
            "compressed_sparse_attention",
        ],
        "mlp_layer_types": ["hash_moe", "moe", "moe", "moe"], "index_n_heads": 16, "index_head_dim": 8, "index_topk": 2,
        "compress_rates": {"compressed_sparse_attention": 2, "heavily_compressed_attention": 4},
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
        "compress_rope_theta": 200.0,
        "moe_intermediate_size": 14, "n_routed_experts": 8, "num_experts_per_tok": 3, "routed_scaling_factor": 1.7,
        "rms_norm_eps": 1e-2, "hidden_act": "gelu", "rope_theta": 300.0, "partial_rotary_factor": 0.5,
    },
    "hy_v4": HY4,
    "hy_v4, varied": {
        **HY4, "rms_norm_eps": 1e-2, "hidden_act": "gelu", "attention_bias": True, "n_group": 4, "topk_group": 2,
        "norm_topk_prob": False, "routed_scaling_factor": 1.7, "rope_parameters": YARN, "hc_eps": 0.1,
        "hc_magnitude": 1.3, "swiglu_limit": 0.2,
    },
    "glm5_next_text": images.GLM5_TEXT,
    "glm5_next_text, varied": {
        **images.GLM5_TEXT, "rms_norm_eps": 1e-2, "hidden_act": "gelu", "attention_bias": True, "n_group": 4,
        "topk_group": 2, "norm_topk_prob": False, "routed_scaling_factor": 1.7, "hc_eps": 0.1, "hc_sinkhorn_iters": 3,
        "swiglu_limit": 0.2, "linear_lower_bound": None, "index_kpool": 3, "index_topk": 3,
    },
    "kimi_linear": KIMI,
    "kimi_linear, varied": {
        **KIMI, "rms_norm_eps": 1e-2, "hidden_act": "gelu", "attention_bias": True, "q_lora_rank": 20,
        "num_expert_group": 4, "topk_group": 2, "moe_renormalize": False, "routed_scaling_factor": 1.7,
    },
    "longcat_flash": {
        **LATENT_DENSE, "num_layers": 2, "ffn_hidden_size": 44, "expert_ffn_hidden_size": 14, "n_routed_experts": 6,
        "zero_expert_num": 4, "moe_topk": 3,
    },
    "longcat_flash, varied": {
        **VARIED_DENSE, "num_layers": 2, "ffn_hidden_size": 44, "expert_ffn_hidden_size": 14, "n_routed_experts": 4,
        "zero_expert_num": 4, "moe_topk": 6, "routed_scaling_factor": 1.7,
    },
    "mistral": SLIDING,
    "mixtral": {**SLIDING, "num_local_experts": 8, "num_experts_per_tok": 3},
    "gpt_oss, narrow": {
        **SLIDING, "num_local_experts": 8, "num_experts_per_tok": 2, "attention_bias": False, "swiglu_alpha": 0.7,
        "swiglu_limit": 0.4, "rms_norm_eps": 1e-3, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
    },
    "qwen2_moe, normalised": {
        **MOE, "shared_expert_intermediate_size": 18, "decoder_sparse_step": 2, "norm_topk_prob": True,
        "qkv_bias": False, "rms_norm_eps": 1e-3, "rope_theta": 700.0, "hidden_act": "gelu",
    },
    "olmoe": {**NO_WIDTH, "num_experts": 8, "num_experts_per_tok": 3},
    "olmoe, clipped": {
        **NO_WIDTH, "num_experts": 8, "num_experts_per_tok": 3, "clip_qkv": 0.5, "norm_topk_prob": True,
        "attention_bias": True, "rope_theta": 300.0,
    },
    "glm4_moe": {
        **USUAL, "moe_intermediate_size": 14, "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 2,
        "first_k_dense_replace": 1, "partial_rotary_factor": 0.4, "use_qk_norm": True, "attention_bias": True,
        "num_nextn_predict_layers": 1,
    },
    "glm4_moe, grouped": {
        **USUAL, "moe_intermediate_size": 14, "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 1,
        "first_k_dense_replace": 0, "head_dim": 12, "n_group": 4, "topk_group": 2, "norm_topk_prob": False,
        "routed_scaling_factor": 1.7, "num_nextn_predict_layers": 0,
    },
    "phimoe": {**NO_WIDTH, "num_local_experts": 8, "router_jitter_noise": 0.3, "lm_head_bias": True},
    "phimoe, windowed": {
        **NO_WIDTH, "num_local_experts": 6, "attention_bias": True, "sliding_window": 4, "rms_norm_eps": 1e-2,
        "router_jitter_noise": 0.05,
    },
    "dbrx": {
        "vocab_size": 96, "d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64,
        "attn_config": {"kv_n_heads": 2, "clip_qkv": 0.4, "rope_theta": 700.0},
        "ffn_config": {
            "hidden_size": 32, "ffn_hidden_size": 14, "moe_num_experts": 8, "moe_top_k": 3,
            "ffn_act_fn": {"name": "gelu"}, "moe_normalize_expert_weights": None,
        },
    },
    "granitemoe": {
        **NO_WIDTH, "num_local_experts": 8, "num_experts_per_tok": 3, "embedding_multiplier": 3.0,
        "residual_multiplier": 0.3, "attention_multiplier": 0.2, "logits_scaling": 5.0,
    },
    "granitemoeshared": {
        **NO_WIDTH, "num_local_experts": 8, "num_experts_per_tok": 3, "shared_intermediate_size": 18,
        "residual_multiplier": 0.6, "hidden_act": "gelu", "rms_norm_eps": 1e-3,
    },
    "dots1": {
        **SLIDING, "moe_intermediate_size": 14, "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 2,
        "first_k_dense_replace": 1, "max_window_layers": 1, "norm_topk_prob": True, "rope_theta": 700.0,
    },
    "dots1, grouped": {
        **SLIDING, "moe_intermediate_size": 14, "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 1,
        "n_group": 4, "topk_group": 2, "routed_scaling_factor": 1.7, "attention_bias": True, "rms_norm_eps": 1e-3,
    },
    "ernie4_5_moe": {
        **USUAL, "moe_intermediate_size": 14, "moe_num_experts": 8, "moe_k": 3, "moe_num_shared_experts": 2,
        "use_bias": True, "tie_word_embeddings": False,
    },
    "ernie4_5_moe, unshared": {
        **USUAL, "moe_intermediate_size": 14, "moe_num_experts": 8, "moe_k": 2, "moe_num_shared_experts": 0,
        "moe_layer_start_index": 0, "rope_theta": 300.0, "rms_norm_eps": 1e-3, "hidden_act": "gelu",
    },
    "hunyuan_v1_moe": {**USUAL, "num_experts": 8, "moe_topk": 3, "attention_bias": True},
    "hunyuan_v1_moe, stretched": {
        **USUAL, "num_experts": 8, "moe_topk": [1, 3],
        "rope_parameters": {"rope_type": "dynamic", "rope_theta": 700.0, "alpha": 50.0, "factor": 1.0},
    },
    "minimax_m2": {**USUAL, "num_local_experts": 8, "num_experts_per_tok": 3, "rotary_dim": 4},
    "minimax_m2, all rotated": {
        **USUAL, "num_local_experts": 8, "num_experts_per_tok": 2, "rope_theta": 300.0, "rms_norm_eps": 1e-3,
    },
    "exaone_moe": {
        **SLIDING, "num_hidden_layers": 4, "moe_intermediate_size": 14, "num_experts": 8, "num_experts_per_tok": 3,
        "num_shared_experts": 2,
    },
    "exaone_moe, grouped": {
        **SLIDING, "moe_intermediate_size": 14, "num_experts": 8, "num_experts_per_tok": 3, "num_shared_experts": 1,
        "n_group": 4, "topk_group": 2, "norm_topk_prob": False, "routed_scaling_factor": 0.7, "rope_theta": 300.0,
        "sliding_window_pattern": 2, "first_k_dense_replace": 0,
    },
    "flex_olmo": {**NO_WIDTH, "num_experts": 8, "num_experts_per_tok": 3, "pad_token_id": 0},
    "flex_olmo, normalised": {
        **NO_WIDTH, "num_experts": 8, "num_experts_per_tok": 3, "pad_token_id": 0, "norm_topk_prob": True,
        "attention_bias": True, "rope_theta": 300.0, "rms_norm_eps": 1e-3,
    },
    "hy_v3": {
        **USUAL, "moe_intermediate_size": 14, "num_experts": 8, "num_experts_per_tok": 3, "num_shared_experts": 2,
    },
    "hy_v3, biased": {
        **USUAL, "moe_intermediate_size": 14, "num_experts": 8, "num_experts_per_tok": 2, "num_shared_experts": 1,
        "attention_bias": True, "mlp_bias": True, "router_scaling_factor": 0.6, "rope_theta": 300.0,
    },
    "solar_open": {
        **USUAL, "moe_intermediate_size": 14, "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 2,
    },
    "solar_open, grouped": {
        **USUAL, "moe_intermediate_size": 14, "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 1,
        "n_group": 4, "topk_group": 2, "norm_topk_prob": False, "routed_scaling_factor": 0.7, "rope_theta": 300.0,
        "attention_bias": True,
    },
    "kolibri1": {
        **SLIDING, "num_hidden_layers": 5, "moe_intermediate_size": 14, "num_experts": 8, "num_experts_per_tok": 3,
        "shared_expert_intermediate_size": 18,
    },
    "kolibri1, normalised": {
        **SLIDING, "moe_intermediate_size": 14, "num_experts": 8, "num_experts_per_tok": 3, "norm_topk_prob": True,
        "shared_expert_intermediate_size": 18, "layer_types": ["full_attention", "sliding_attention"],
        "rope_theta": 300.0, "rms_norm_eps": 1e-3,
    },
    "afmoe": {
        **SLIDING, "num_hidden_layers": 4, "moe_intermediate_size": 14, "num_experts": 8, "num_experts_per_tok": 3,
        "num_shared_experts": 2,
    },
    "afmoe, enlarged": {
        **SLIDING, "moe_intermediate_size": 14, "num_experts": 8, "num_experts_per_tok": 3, "num_shared_experts": 1,
        "mup_enabled": True, "route_scale": 1.7, "attention_bias": True, "global_attn_every_n_layers": 2,
        "num_dense_layers": 0, "rope_theta": 300.0, "rms_norm_eps": 1e-3,
    },
    "aria_text": {**NO_WIDTH, "moe_num_experts": 8, "moe_topk": 3, "moe_num_shared_experts": 2},
    "aria_text, biased": {
        **NO_WIDTH, "moe_num_experts": 8, "moe_topk": 2, "moe_num_shared_experts": 1, "attention_bias": True,
        "mlp_bias": True, "hidden_act": "gelu", "rope_theta": 300.0,
    },
    "flint": {
        **SLIDING, "num_hidden_layers": 4, "moe_intermediate_size": 14, "num_experts": 8, "num_experts_per_tok": 3,
        "shared_expert_intermediate_size": 18,
    },
    "flint, biased": {
        **SLIDING, "moe_intermediate_size": 14, "num_experts": 8, "num_experts_per_tok": 3, "norm_topk_prob": False,
        "shared_expert_intermediate_size": 18, "layer_types": ["sliding_attention", "full_attention"],
        "attention_bias": True, "mlp_only_layers": [], "rope_theta": 300.0, "rms_norm_eps": 1e-3,
    },
    "mimo_v2_flash": {
        **SLIDING, "num_attention_heads": 8, "head_dim": 12, "v_head_dim": 6, "num_hidden_layers": 3,
        "moe_intermediate_size": 14, "n_routed_experts": 8, "num_experts_per_tok": 3,
        "layer_types": ["full_attention", "sliding_attention", "full_attention"],
    },
    "mimo_v2_flash, grouped": {
        **SLIDING, "num_attention_heads": 8, "head_dim": 12, "v_head_dim": 6, "moe_intermediate_size": 14,
        "n_routed_experts": 8, "num_experts_per_tok": 3, "n_group": 4, "topk_group": 2, "norm_topk_prob": False,
        "routed_scaling_factor": 0.7, "attention_value_scale": 1.3, "attention_bias": True,
        "layer_types": ["sliding_attention", "full_attention"], "mlp_layer_types": ["sparse", "dense"],
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": 0.5},
            "sliding_attention": {"rope_type": "default", "rope_theta": 900.0, "partial_rotary_factor": 1.0},
        },
    },
    "cohere2_moe": {
        **SLIDING, "num_hidden_layers": 4, "num_experts": 8, "num_experts_per_tok": 3, "num_shared_experts": 2,
    },
    "cohere2_moe, sigmoid": {
        **SLIDING, "num_hidden_layers": 3, "num_experts": 8, "num_experts_per_tok": 3, "num_shared_experts": 1,
        "expert_selection_fn": "sigmoid", "shared_expert_combination_strategy": "sum", "logit_scale": 0.3,
        "first_k_dense_replace": 1, "sliding_window_pattern": 2, "attention_bias": True, "rms_norm_eps": 1e-3,
        "prefix_dense_intermediate_size": 22, "rope_theta": 300.0,
    },
    "cohere2_moe, unshared": {
        **SLIDING, "num_experts": 8, "num_experts_per_tok": 2, "expert_selection_fn": "sigmoid",
        "norm_topk_prob": False, "layer_norm_eps": 1e-3,
    },
    "laguna": {
        **SLIDING, "num_hidden_layers": 3, "moe_intermediate_size": 14, "num_experts": 8, "num_experts_per_tok": 3,
        "shared_expert_intermediate_size": 18, "head_dim": 12,
        "layer_types": ["full_attention", "sliding_attention", "full_attention"],
    },
    "laguna, capped": {
        **SLIDING, "moe_intermediate_size": 14, "num_experts": 8, "num_experts_per_tok": 3, "attention_bias": True,
        "shared_expert_intermediate_size": 18, "head_dim": 12, "num_attention_heads_per_layer": [4, 2],
        "layer_types": ["sliding_attention", "full_attention"], "mlp_layer_types": ["sparse", "sparse"],
        "moe_routed_scaling_factor": 1.7, "moe_router_logit_softcapping": 0.3, "gating": "per-element",
        "rms_norm_eps": 1e-3,
        "rope_parameters": {
            "full_attention": {
                "rope_type": "yarn", "rope_theta": 300.0, "partial_rotary_factor": 1.0, "factor": 4.0,
                "original_max_position_embeddings": 16,
            },
            "sliding_attention": {"rope_type": "default", "rope_theta": 900.0, "partial_rotary_factor": 0.5},
        },
    },
    "llama4_text": {
        **USUAL, "num_hidden_layers": 4, "intermediate_size_mlp": 40, "num_local_experts": 8, "num_experts_per_tok": 1,
        "attention_chunk_size": 4, "interleave_moe_layer_step": 2, "floor_scale": 3, "attn_scale": 0.7,
    },
    "llama4_text, several": {
        **USUAL, "intermediate_size_mlp": 40, "num_local_experts": 8, "num_experts_per_tok": 3, "use_qk_norm": False,
        "attention_chunk_size": 5, "attn_temperature_tuning": False, "no_rope_layers": [0, 1], "attention_bias": True,
        "rope_theta": 300.0, "rms_norm_eps": 1e-3, "hidden_act": "gelu",
    },
    "granitemoe_swa": {
        **NO_WIDTH, "num_hidden_layers": 4, "num_local_experts": 8, "num_experts_per_tok": 3,
        "shared_intermediate_size": 18, "sliding_window": 5, "layer_rope_theta": [0, 500.0, 10000.0, 10000.0],
        "attention_multiplier": 0.3,
    },
    "gpt_oss": {
        **SLIDING,
        "num_local_experts": 8,
        "num_experts_per_tok": 3,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "t5": T5,
    "t5, gated": {
        **T5,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
        "layer_norm_epsilon": 1e-3,
        "relative_attention_max_distance": 9,
    },
    "t5, gelu": {**T5, "feed_forward_proj": "gelu", "num_layers": 1},
    "mt5, relu": {**T5, "feed_forward_proj": "relu", "relative_attention_max_distance": 7},
    "longt5, nearby": {
        **T5,
        "local_radius": 3,
        "feed_forward_proj": "gated-gelu",
        "relative_attention_max_distance": 9,
    },
    "longt5, blocks": {
        **T5,
        "encoder_attention_type": "transient-global",
        "local_radius": 3,
        "global_block_size": 4,
        "relative_attention_max_distance": 9,
    },
    "longt5, tied": {**T5, "local_radius": 2, "tie_word_embeddings": False},
    "umt5, silu": {
        **T5,
        "feed_forward_proj": "gated-silu",
        "layer_norm_epsilon": 1e-2,
        "relative_attention_max_distance": 9,
    },
    "switch_transformers, untied": {
        **T5,
        "num_layers": 4,
        "num_decoder_layers": 4,
        "num_sparse_encoder_layers": 2,
        "num_sparse_decoder_layers": 2,
        "num_experts": 4,
        "router_bias": True,
        "tie_word_embeddings": False,
        "dense_act_fn": "gelu_new",
        "relative_attention_max_distance": 9,
    },
    "gemma3_text": {
        **SLIDING,
        "num_hidden_layers": 3,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    },
    "mamba": MAMBA,
    "mamba2": {**MAMBA, "num_heads": 8, "head_dim": 8, "n_groups": 2},
    "jamba, gelu": {
        **USUAL, "num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2,
        "expert_layer_offset": 1, "num_experts": 8, "num_experts_per_tok": 3, "mamba_d_state": 6, "hidden_act": "gelu",
        "rms_norm_eps": 0.02, "mamba_conv_bias": False, "mamba_proj_bias": True,
    },
    "bamba": {
        **NO_WIDTH, "attn_layer_indices": [1], "num_hidden_layers": 3, "mamba_n_heads": 8, "mamba_d_state": 6,
        "mamba_n_groups": 2,
    },
    "bamba, limited": {
        **NO_WIDTH, "attn_layer_indices": [1], "num_hidden_layers": 3, "mamba_n_heads": 8, "mamba_d_state": 6,
        "mamba_n_groups": 2, "time_step_limit": [0.3, 0.9], "hidden_act": "gelu", "rms_norm_eps": 0.02,
        "attention_bias": True, "mlp_bias": True, "mamba_proj_bias": True,
        "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0, "partial_rotary_factor": 0.5},
    },
    "falcon_h1, multiplied": {
        **USUAL, "mamba_d_ssm": 48, "mamba_n_heads": 6, "mamba_n_groups": 2, "mamba_d_state": 6, "hidden_act": "gelu",
        "rms_norm_eps": 0.02, "mamba_rms_norm": True, "time_step_limit": [0.3, 0.9], "embedding_multiplier": 1.7,
        "lm_head_multiplier": 0.6, "attention_in_multiplier": 1.3, "attention_out_multiplier": 0.7,
        "key_multiplier": 1.9, "ssm_in_multiplier": 1.2, "ssm_out_multiplier": 0.8,
        "ssm_multipliers": [1.1, 0.9, 1.4, 0.6, 1.5], "mlp_multipliers": [0.7, 1.6],
        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
    },
    "falcon_h1, norm after gate": {
        **USUAL, "mamba_d_ssm": 48, "mamba_n_heads": 6, "mamba_n_groups": 2, "mamba_d_state": 6, "mamba_rms_norm": True,
        "mamba_norm_before_gate": False,
    },
    "nemotron_h": {
        **USUAL, "layer_types": ["linear_attention", "full_attention", "mlp", "moe"], "num_hidden_layers": 4,
        "mamba_num_heads": 8, "mamba_head_dim": 6, "n_groups": 2, "ssm_state_size": 6, "n_routed_experts": 8,
        "num_experts_per_tok": 3, "moe_intermediate_size": 14, "moe_shared_expert_intermediate_size": 18,
    },
    "nemotron_h, grouped": {
        **USUAL, "layer_types": ["linear_attention", "moe", "full_attention", "mlp", "moe"], "num_hidden_layers": 5,
        "mamba_num_heads": 8, "mamba_head_dim": 6, "n_groups": 2, "ssm_state_size": 6, "time_step_min": 0.6,
        "mlp_hidden_act": "gelu", "mamba_hidden_act": "gelu", "layer_norm_epsilon": 0.02, "n_routed_experts": 8,
        "num_experts_per_tok": 3, "moe_intermediate_size": 14, "moe_shared_expert_intermediate_size": 18, "n_group": 4,
        "topk_group": 2, "norm_topk_prob": False, "routed_scaling_factor": 1.7, "moe_latent_size": 12, "mlp_bias": True,
    },
    "minimax, weighted": {
        **USUAL, "num_hidden_layers": 4, "num_local_experts": 8, "num_experts_per_tok": 3, "block_size": 4,
        "rms_norm_eps": 0.02, "hidden_act": "gelu", "full_attn_alpha_factor": 1.2, "full_attn_beta_factor": 0.7,
        "linear_attn_alpha_factor": 0.8, "linear_attn_beta_factor": 1.4, "mlp_alpha_factor": 1.1,
        "mlp_beta_factor": 0.6, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
    },
    "olmo_hybrid": {
        **NO_WIDTH, "num_hidden_layers": 4, "pad_token_id": 1, "linear_num_key_heads": 4, "linear_key_head_dim": 6,
        "linear_num_value_heads": 4, "linear_value_head_dim": 6,  # the reference saves unequal ones wrongly
    },
    "olmo_hybrid, positive": {
        **NO_WIDTH, "num_hidden_layers": 4, "pad_token_id": 1, "linear_allow_neg_eigval": False, "rms_norm_eps": 0.02,
        "linear_num_key_heads": 4, "linear_key_head_dim": 6, "linear_num_value_heads": 4, "linear_value_head_dim": 6,
        "hidden_act": "gelu", "rope_parameters": {"rope_type": "linear", "factor": 3.0, "rope_theta": 500.0},
    },
    "lfm2, scaled": {
        **NO_WIDTH, "num_hidden_layers": 3, "full_attn_idxs": [1], "norm_eps": 0.02, "conv_bias": True,
        "block_multiple_of": 16, "rope_parameters": {"rope_type": "linear", "factor": 3.0, "rope_theta": 500.0},
    },
    "lfm2_moe, unnormalised": {
        **NO_WIDTH, "num_hidden_layers": 4, "layer_types": ["conv", "full_attention", "conv", "full_attention"],
        "norm_eps": 0.02, "num_dense_layers": 1, "moe_intermediate_size": 14, "num_experts": 8,
        "num_experts_per_tok": 3, "norm_topk_prob": False, "routed_scaling_factor": 1.7,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
    },
    "lfm3, plain": {
        **SLIDING, "num_hidden_layers": 4, "pad_token_id": 1, "norm_eps": 0.02, "use_sandwich_norm": False,
        "layer_types": ["conv", "sliding_attention", "full_attention", "conv"], "use_attention_gate": False,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 200.0},
            "full_attention": {"rope_type": "proportional", "rope_theta": 500.0, "partial_rotary_factor": 0.4},
        },
    },
    "recurrent_gemma, capped": {
        **USUAL, "num_hidden_layers": 4, "hidden_size": 40, "head_dim": 10, "attention_window_size": 5,
        "lru_width": 40, "hidden_activation": "silu", "rms_norm_eps": 0.02, "logits_soft_cap": 3.0,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.4},
    },
    "granitemoehybrid, multiplied": {
        **NO_WIDTH, "num_hidden_layers": 3, "layer_types": ["mamba", "attention", "mamba"], "num_local_experts": 8,
        "num_experts_per_tok": 3, "shared_intermediate_size": 18, "mamba_n_heads": 8, "mamba_d_state": 6,
        "mamba_n_groups": 2, "time_step_limit": [0.3, 0.9], "rms_norm_eps": 0.02, "hidden_act": "gelu",
        "embedding_multiplier": 1.7, "residual_multiplier": 0.6, "attention_multiplier": 0.4, "logits_scaling": 1.5,
        "position_embedding_type": "rope", "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
    },
    "zamba, gelu": {
        **USUAL, "num_hidden_layers": 5, "layers_block_type": ["mamba", "hybrid", "mamba", "mamba", "hybrid"],
        "attention_head_dim": 16, "head_dim": 16, "num_key_value_heads": 4, "mamba_d_state": 6, "n_mamba_heads": 4,
        "hidden_mamba_act": "gelu", "hidden_act": "silu", "rms_norm_eps": 0.02, "mamba_dt_rank": 3,
        "mamba_proj_bias": True,
    },
    "zamba2, rotated": {
        **USUAL, "num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"],
        "hybrid_layer_ids": [1, 3], "num_mem_blocks": 1, "attention_head_dim": 16, "head_dim": 16,
        "num_key_value_heads": 4, "adapter_rank": 12, "mamba_d_state": 6, "n_mamba_heads": 8, "mamba_headdim": 8,
        "mamba_ngroups": 2, "use_shared_attention_adapter": True, "use_mem_rope": True, "hidden_act": "silu",
        "rms_norm_eps": 0.02, "time_step_min": 0.6, "add_bias_linear": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
    },
    "bailing_hybrid, soft": {
        **LATENT, "num_hidden_layers": 4, "pad_token_id": 1, "layer_types": ["linear_attention", "full_attention"] * 2,
        "n_routed_experts": None, "num_local_experts": 8, "first_k_dense_replace": 1, "n_shared_experts": 2,
        "n_group": 4, "topk_group": 2, "norm_topk_prob": False, "routed_scaling_factor": 1.7, "kda_safe_gate": False,
        "rms_norm_eps": 0.02, "hidden_act": "gelu", "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
    },
    "bailing_hybrid, bounded": {
        **LATENT, "num_hidden_layers": 2, "pad_token_id": 1, "layer_types": ["linear_attention", "full_attention"],
        "n_routed_experts": None, "num_local_experts": 8, "n_group": 4, "topk_group": 2, "kda_lower_bound": -2.5,
    },
    "qwen3_next, dense": {
        **MOE, "num_hidden_layers": 5, "shared_expert_intermediate_size": 18, "linear_num_key_heads": 2,
        "linear_key_head_dim": 12, "linear_num_value_heads": 4, "linear_value_head_dim": 8, "norm_topk_prob": False,
        "mlp_only_layers": [0], "attention_bias": True, "hidden_act": "gelu", "rms_norm_eps": 0.02,
        "layer_types": ["full_attention", "linear_attention", "full_attention", "linear_attention", "linear_attention"],
        "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0, "partial_rotary_factor": 0.8},
    },
    "qwen3_5_text": {
        **USUAL, "head_dim": 16, "num_hidden_layers": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 12,
        "linear_num_value_heads": 4, "linear_value_head_dim": 8, "rms_norm_eps": 0.02, "hidden_act": "gelu",
        "rope_parameters": {
            "rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1],
        },
    },
    "qwen3_5_moe_text": {
        **MOE, "head_dim": 16, "num_hidden_layers": 4, "shared_expert_intermediate_size": 18, "linear_num_key_heads": 2,
        "linear_key_head_dim": 12, "linear_num_value_heads": 4, "linear_value_head_dim": 8,
        "rope_parameters": {
            "rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1],
        },
    },
    "mamba2, limited": {
        **MAMBA, "num_heads": 8, "head_dim": 8, "n_groups": 2, "time_step_limit": [0.3, 0.9],
        "layer_norm_epsilon": 0.02, "use_bias": True, "hidden_act": "gelu", "tie_word_embeddings": True,
    },
    "mamba, gelu": {
        **MAMBA, "hidden_act": "gelu", "use_bias": True, "use_conv_bias": False, "layer_norm_epsilon": 0.02,
        "time_step_rank": 5, "tie_word_embeddings": False,
    },
    "falcon_mamba, eps": {**MAMBA, "hidden_act": "gelu", "mixer_rms_eps": 0.03, "layer_norm_epsilon": 0.02},
    "jamba": {
        **USUAL, "num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2,
        "expert_layer_offset": 1, "num_experts": 8,
        "num_experts_per_tok": 3, "mamba_d_state": 6, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 5,
        "use_mamba_kernels": False,
    },
    "qwen3_next": {
        **MOE, "num_hidden_layers": 4, "shared_expert_intermediate_size": 18, "linear_num_key_heads": 2,
        "linear_key_head_dim": 12,
        "linear_num_value_heads": 4, "linear_value_head_dim": 8, "linear_conv_kernel_dim": 4,
    },
    "t5gemma, small": {"encoder": T5GEMMA, "decoder": {**T5GEMMA, "sliding_window": 5}},
    "t5gemma, other settings": {
        "encoder": {**T5GEMMA, "hidden_size": 40, "rms_norm_eps": 1e-2, "attn_logit_softcapping": 2.0},
        "decoder": {
            **T5GEMMA,
            "cross_attention_hidden_size": 40,
            "rms_norm_eps": 1e-3,
            "query_pre_attn_scalar": 7,
            "attn_logit_softcapping": 0.5,
            "final_logit_softcapping": 2.0,
            "hidden_activation": "silu",
            "attention_bias": True,
            "rope_theta": 500,
        },
        "tie_word_embeddings": False,
    },
    "t5gemma2": {"encoder": {"text_config": T5GEMMA, "vision_config": images.VISION}, "decoder": T5GEMMA},
    "t5gemma2, other settings": {
        "encoder": {
            "text_config": {
                **T5GEMMA, "num_hidden_layers": 3, "sliding_window": 5, "attention_bias": True,
                "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
                "num_attention_heads": 2, "num_key_value_heads": 1,
                "query_pre_attn_scalar": 30, "rms_norm_eps": 1e-2, "rope_theta": 300.0, "rope_local_base_freq": 50.0,
            },
            "vision_config": images.VISION, "eoi_token_index": 7,
        },
        "decoder": {
            **T5GEMMA, "final_logit_softcapping": 2.0, "hidden_activation": "silu", "attention_bias": True,
            "rope_theta": 500.0, "query_pre_attn_scalar": 20,
        },
        "tie_word_embeddings": False,
    },
    "musicgen.MusicgenForCausalLM": {"decoder": MUSICGEN},
    "musicgen.MusicgenForCausalLM, other settings": {
        "decoder": {**MUSICGEN, "num_codebooks": 2, "scale_embedding": True, "activation_function": "relu"},
    },
    "musicgen_decoder": MUSICGEN,
    "musicgen_melody.MusicgenMelodyForCausalLM": {"decoder": MUSICGEN},
    "musicgen_melody_decoder": MUSICGEN,
    "bart": BART,
    "bart, scaled": {**BART, "scale_embedding": True, "activation_function": "relu"},
    "bart.BartForCausalLM, scaled": {
        **BART,
        "encoder_layers": 3,
        "scale_embedding": True,
        "activation_function": "gelu_new",
    },
    "plbart, unscaled": {**BART, "scale_embedding": False, "activation_function": "silu"},
    "mbart, scaled": {**BART, "scale_embedding": True, "activation_function": "gelu_new"},
    "mbart, untied": {**BART, "tie_word_embeddings": False},
    "encoder-decoder": {
        "encoder": {"model_type": "bert", **BERT},
        "decoder": {"model_type": "bert", **BERT, "is_decoder": True, "add_cross_attention": True},
    },
    "encoder-decoder, other settings": {
        "encoder": {"model_type": "roberta", **BERT, "hidden_size": 24, "pad_token_id": 0, "layer_norm_eps": 1e-2},
        "decoder": {
            "model_type": "bert-generation", **BERT, "is_decoder": True, "add_cross_attention": True,
            "hidden_act": "relu", "num_hidden_layers": 3,
        },
    },
    "encoder-decoder, gpt2": {
        "encoder": {"model_type": "bert", **BERT},
        "decoder": {**images.GPT2, "model_type": "gpt2", "add_cross_attention": True, "tie_word_embeddings": False},
    },
    "m2m_100": BART,
    "m2m_100, other settings": {
        **BART, "scale_embedding": False, "activation_function": "gelu", "pad_token_id": 0,
        "tie_word_embeddings": False,
    },
    "nllb-moe": {**BART, "encoder_sparse_step": 2, "decoder_sparse_step": 2, "num_experts": 6},
    "nllb-moe, other settings": {
        **BART, "encoder_sparse_step": 1, "decoder_sparse_step": 3, "num_experts": 5, "router_bias": True,
        "scale_embedding": False, "activation_function": "gelu", "moe_token_dropout": 0.0, "pad_token_id": 0,
    },
    "fsmt": {**BART, "src_vocab_size": 96, "tgt_vocab_size": 98},
    "fsmt, tied": {
        **BART, "src_vocab_size": 96, "tgt_vocab_size": 96, "tie_word_embeddings": True, "scale_embedding": False,
        "activation_function": "gelu", "pad_token_id": 0,
    },
    "seamless_m4t": SEAMLESS,
    "seamless_m4t_v2": {
        **SEAMLESS, "scale_embedding": False, "activation_function": "gelu", "pad_token_id": 2,
        "tie_word_embeddings": False,
    },
    "seamless_m4t.SeamlessM4TForSpeechToText": HEARS,
    "seamless_m4t.SeamlessM4TForSpeechToText, rotary": {
        **HEARS, "position_embeddings_type": "rotary", "rotary_embedding_base": 50, "speech_encoder_hidden_act": "gelu",
        "num_adapter_layers": 2, "adaptor_stride": 2, "adaptor_kernel_size": 3, "layer_norm_eps": 0.01,
    },
    "seamless_m4t.SeamlessM4TForSpeechToText, without positions": {
        **HEARS, "position_embeddings_type": "", "add_adapter": False, "tie_word_embeddings": False,
    },
    "seamless_m4t_v2.SeamlessM4Tv2ForSpeechToText": {
        **HEARS, "left_max_position_embeddings": 5, "right_max_position_embeddings": 2,
    },
    "seamless_m4t_v2.SeamlessM4Tv2ForSpeechToText, chunks": {
        **HEARS, "speech_encoder_chunk_size": 4, "speech_encoder_left_chunk_num": 1, "adaptor_stride": 3,
        "position_embeddings_type": "", "tie_word_embeddings": False,
    },
    "seamless_m4t_v2.SeamlessM4Tv2ForSpeechToText, chunks to the left": {
        **HEARS, "speech_encoder_chunk_size": 4, "speech_encoder_left_chunk_num": -1,
        "left_max_position_embeddings": 3, "right_max_position_embeddings": 9,
    },
    "pegasus, scaled": {**BART, "scale_embedding": True, "activation_function": "relu"},
    "pegasus_x": {**BART, "num_global_tokens": 3, "block_size": 4},
    "pegasus_x, other settings": {
        **BART, "num_global_tokens": 5, "block_size": 6, "stagger_local_blocks": False, "scale_embedding": False,
        "activation_function": "relu", "tie_word_embeddings": False, "encoder_layers": 3,
    },
    "marian, scaled": {**BART, "scale_embedding": True, "activation_function": "swish", "pad_token_id": 95},
    "marian, two languages": {
        **BART,
        "share_encoder_decoder_embeddings": False,
        "decoder_vocab_size": 98,
        "pad_token_id": 95,
    },
    "blenderbot, scaled": {**BART, "scale_embedding": True, "activation_function": "relu"},
    "blenderbot-small, scaled": {**BART, "scale_embedding": True, "activation_function": "relu"},
    "blenderbot-small.BlenderbotSmallForCausalLM, scaled": {**BART, "encoder_layers": 3, "scale_embedding": True},
    "xlnet, both directions": {
        "n_layer": 2, "d_model": 32, "n_head": 2, "d_inner": 24, "n_token": 96, "clamp_len": 4,
        "ff_activation": "relu", "layer_norm_eps": 1e-3,
    },
    "prophetnet, one head": {
        "vocab_size": 96, "hidden_size": 32, "num_encoder_layers": 3, "num_decoder_layers": 3, "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 20, "num_encoder_attention_heads": 2, "num_decoder_attention_heads": 1, "ngram": 1,
        "max_position_embeddings": 32, "num_buckets": 8, "relative_max_distance": 12, "activation_function": "relu",
        "pad_token_id": 1,
    },
    "prophetnet.ProphetNetForCausalLM, one head": {
        "vocab_size": 96, "hidden_size": 32, "num_encoder_layers": 3, "num_decoder_layers": 3, "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 20, "num_encoder_attention_heads": 2, "num_decoder_attention_heads": 1, "ngram": 1,
        "max_position_embeddings": 32, "num_buckets": 8, "relative_max_distance": 12, "activation_function": "relu",
        "pad_token_id": 1,
    },
    "mvp, prompted": {**BART, "use_prompt": True, "prompt_length": 5, "prompt_mid_dim": 12},
    "cohere_compass_text": {
        **SLIDING, "layer_types": ["sliding_attention", "full_attention"], "attention_bias": True, "hidden_act": "gelu",
        "logit_scale": 0.5, "layer_norm_eps": 1e-2, "pad_token_id": 0,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 300.0, "mrope_section": [2, 1, 1]},
            "full_attention": None,
        },
    },
    "cpmant, other settings": {
        "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "dim_head": 12,
        "dim_ff": 24, "position_bias_num_buckets": 8, "position_bias_max_distance": 12, "prompt_types": 4,
        "prompt_length": 3, "segment_types": 4, "eps": 1e-3,
    },
    "mvp, scaled": {**BART, "scale_embedding": True, "activation_function": "relu"},
    "bigbird_pegasus, small": {**BART, "activation_function": "silu"},
    "bigbird_pegasus, full": {
        **BART,
        "attention_type": "original_full",
        "use_bias": True,
        "scale_embedding": False,
        "activation_function": "relu",
    },
    "trocr, fixed positions": {
        **TROCR,
        "use_learned_position_embeddings": False,
        "layernorm_embedding": False,
        "scale_embedding": True,
        "activation_function": "relu",
        "pad_token_id": 2,
    },
    "trocr, learned positions": {**TROCR, "cross_attention_hidden_size": 28},
    "mllama_text_model, other settings": {
        **NO_WIDTH, "cross_attention_layers": [0, 2], "num_hidden_layers": 4, "pad_token_id": 1, "hidden_act": "gelu",
        "rms_norm_eps": 0.01,
        "rope_parameters": {
            "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0, "rope_theta": 300.0,
            "original_max_position_embeddings": 16,
        },
    },
    "qwen2_vl_text, other settings": {
        **NO_WIDTH, "num_hidden_layers": 3, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1,
        "hidden_act": "gelu", "rms_norm_eps": 0.01,
        "rope_parameters": {"rope_type": "default", "rope_theta": 300.0, "mrope_section": [2, 1, 1]},
    },
    "qwen3_vl_text, other settings": {
        **USUAL, "hidden_act": "gelu", "rms_norm_eps": 0.01, "attention_bias": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 300.0, "mrope_section": [3, 1, 1]},
    },
    "qwen3_vl_moe_text, other settings": {
        **MOE, "hidden_act": "gelu", "rms_norm_eps": 0.01, "attention_bias": True, "mlp_only_layers": [1],
        "rope_parameters": {"rope_type": "default", "rope_theta": 300.0, "mrope_section": [3, 1, 1]},
    },
    "qwen3_omni_moe_text, other settings": {
        **MOE, "hidden_act": "gelu", "rms_norm_eps": 0.01, "attention_bias": True, "mlp_only_layers": [1],
        "norm_topk_prob": False, "rope_parameters": {"rope_type": "default", "rope_theta": 300.0},
    },
    "glm4v_text, other settings": {
        **NO_WIDTH, "hidden_act": "gelu", "rms_norm_eps": 0.01, "attention_bias": True,
        "rope_parameters": {
            "rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": 0.5, "mrope_section": [1, 1, 0],
        },
    },
    "emu3_text_model, other settings": {
        **USUAL, "hidden_act": "gelu", "rms_norm_eps": 0.01, "attention_bias": True, "mlp_bias": True,
        "rope_theta": 300.0, "pad_token_id": 0,
    },
    "emu3.Emu3ForCausalLM": {"text_config": {**USUAL, "pad_token_id": 0}},
    "modernbert-decoder, other settings": {
        **NO_WIDTH, "local_attention": 10, "global_attn_every_n_layers": 2, "num_hidden_layers": 4, "pad_token_id": 0,
        "hidden_activation": "relu", "classifier_activation": "silu", "norm_eps": 0.01, "norm_bias": True,
        "attention_bias": True, "mlp_bias": True, "classifier_bias": True, "tie_word_embeddings": False,
        "global_rope_theta": 300.0, "local_rope_theta": 70.0,
    },
    "gemma3n_text, other settings": {
        **SLIDING, "num_hidden_layers": 4, "num_kv_shared_layers": 2, "vocab_size_per_layer_input": 50,
        "hidden_size_per_layer_input": 6, "altup_num_inputs": 3, "altup_active_idx": 1, "altup_correct_scale": False,
        "laurel_rank": 7, "layer_types": ["sliding_attention", "full_attention"] * 2, "intermediate_size": [44, 40] * 2,
        "activation_sparsity_pattern": [0.6, 0.0, 0.6, 0.0], "final_logit_softcapping": 2.0, "attention_bias": True,
        "hidden_activation": "silu", "rms_norm_eps": 0.01, "rope_theta": 300.0, "rope_local_base_freq": 70.0,
    },
    "gemma4_text, shared keys and values": {
        **SLIDING, "num_hidden_layers": 6, "num_kv_shared_layers": 3, "vocab_size_per_layer_input": 98,
        "hidden_size_per_layer_input": 6, "global_head_dim": 12, "use_double_wide_mlp": True, "attention_bias": True,
        "layer_types": ["sliding_attention", "full_attention"] * 3, "final_logit_softcapping": 2.0,
        "hidden_activation": "silu", "rms_norm_eps": 0.01,
    },
    "gemma4_text, experts": {
        **SLIDING, "hidden_size_per_layer_input": 0, "global_head_dim": 12, "attention_k_eq_v": True,
        "num_global_key_value_heads": 1, "layer_types": ["sliding_attention", "full_attention"],
        "enable_moe_block": True, "num_experts": 8, "top_k_experts": 3, "moe_intermediate_size": 14,
        "rope_parameters": {
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 300.0},
            "sliding_attention": {"rope_type": "linear", "factor": 3.0, "rope_theta": 70.0},
        },
    },
    "gemma4_unified_text, other settings": {
        **SLIDING, "num_hidden_layers": 6, "num_kv_shared_layers": 2, "global_head_dim": 12, "attention_k_eq_v": True,
        "num_global_key_value_heads": 1, "layer_types": ["sliding_attention", "full_attention"] * 3,
        "final_logit_softcapping": 2.0, "hidden_activation": "silu", "rms_norm_eps": 0.01,
    },
    "rwkv, other settings": {
        "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 5,
        "intermediate_size": 44, "rescale_every": 2, "layer_norm_epsilon": 0.01,
    },
    "xlstm": XLSTM,
    "xlstm, other settings": {
        **XLSTM, "use_bias": True, "norm_eps": 0.01, "eps": 0.1, "gate_soft_cap": 2.0, "output_logit_soft_cap": 3.0,
    },
    "moshi, a short window": {**USUAL, "ffn_dim": 44, "sliding_window": 6},
    "xlnet, a short memory": {
        "n_layer": 2, "d_model": 32, "n_head": 2, "d_inner": 24, "n_token": 96, "attn_type": "uni", "mem_len": 4,
    },
    "moshi, other settings": {
        **USUAL, "ffn_dim": 44, "hidden_act": "gelu", "rms_norm_eps": 0.01, "rope_theta": 300.0, "num_codebooks": 1,
    },
    "whisper, small": {**WHISPER, "activation_function": "relu"},
    "whisper, scaled": {**WHISPER, "scale_embedding": True, "tie_word_embeddings": False},
    "whisper.WhisperForCausalLM, small": WHISPER,
    "falcon": {**NO_WIDTH, "multi_query": True},
    "falcon, grouped": {**NO_WIDTH, "num_kv_heads": 2, "new_decoder_architecture": True},
    "gpt_bigcode": {
        "vocab_size": 96,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 64,
        "n_inner": 44,
        "multi_query": True,
    },
    "bloom": {"vocab_size": 96, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "gpt_bigcode, multi-head": {
        "vocab_size": 96,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 64,
        "n_inner": 44,
        "multi_query": False,
        "activation_function": "gelu",
        "layer_norm_epsilon": 1e-3,
        "scale_attn_weights": False,
    },
    "gpt_neo, other settings": {
        "vocab_size": 96,
        "hidden_size": 32,
        "num_layers": 4,
        "attention_types": [[["local", "global"], 2]],
        "num_heads": 4,
        "intermediate_size": 44,
        "window_size": 3, "max_position_embeddings": 64, "activation_function": "silu", "layer_norm_epsilon": 1e-2,
    },
    "gpt_neox, sequential": {
        **NO_WIDTH,
        "use_parallel_residual": False,
        "hidden_act": "silu",
        "layer_norm_eps": 1e-2,
        "attention_bias": False,
        "rope_parameters": {"rope_type": "linear", "rope_theta": 100.0, "factor": 3.0, "partial_rotary_factor": 0.5},
    },
    "gpt_neox, all rotated": {
        **NO_WIDTH,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0, "partial_rotary_factor": 1.0},
    },
    "gpt_neox_japanese, partial": {
        "vocab_size": 96,
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_multiple_size": 2,
        "hidden_act": "relu",
        "layer_norm_eps": 1e-2, "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0},
    },
    "gptj, other settings": {
        "vocab_size": 96,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 64,
        "n_inner": 44,
        "rotary_dim": 6,
        "activation_function": "relu",
        "layer_norm_epsilon": 1e-2,
    },
    "codegen, other settings": {**CODEGEN, "rotary_dim": 4, "activation_function": "silu", "layer_norm_epsilon": 1e-2},
    "bloom, residual after norm": {
        "vocab_size": 96,
        "hidden_size": 36,
        "n_layer": 2,
        "n_head": 6,
        "apply_residual_connection_post_layernorm": True,
        "layer_norm_epsilon": 1e-2,
    },
    "mpt, other settings": {
        "vocab_size": 96, "d_model": 36, "n_layers": 2, "n_heads": 6, "max_seq_len": 64, "layer_norm_epsilon": 1e-2,
        "attn_config": {"clip_qkv": 0.4, "softmax_scale": 0.7},
    },
    "opt, post-norm": {
        **OPT,
        "do_layer_norm_before": False,
        "word_embed_proj_dim": 20,
        "activation_function": "gelu",
        "enable_bias": False,
    },
    "opt, plain norms": {**OPT, "layer_norm_elementwise_affine": False, "_remove_final_layer_norm": True},
    "xglm, unscaled": {**XGLM, "scale_embedding": False, "activation_function": "relu"},
    "xglm": XGLM,
    "biogpt, unscaled": {**USUAL, "scale_embedding": False, "hidden_act": "relu"},
    "ctrl, other settings": {
        "vocab_size": 96,
        "n_embd": 36,
        "n_layer": 2,
        "n_head": 4,
        "dff": 44,
        "n_positions": 64,
        "layer_norm_epsilon": 1e-2,
    },
    "zamba2": {
        **USUAL, "num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"],
        "hybrid_layer_ids": [1, 3], "num_mem_blocks": 2,
        "attention_head_dim": 16, "head_dim": 16, "num_key_value_heads": 4, "adapter_rank": 12, "mamba_d_state": 6,
        "mamba_d_conv": 4, "mamba_expand": 2,
        "n_mamba_heads": 8, "mamba_headdim": 8, "mamba_ngroups": 2, "use_shared_attention_adapter": False,
    },
    "recurrent_gemma": {
        **USUAL,
        "num_hidden_layers": 3,
        "head_dim": 8,
        "attention_window_size": 5,
        "lru_width": 40,
        "conv1d_width": 4,
    },
    "mllama.MllamaForCausalLM": {
        "text_config": {
            **USUAL,
            "hidden_size": 40,
            "head_dim": 10,
            "cross_attention_layers": [1],
            "num_hidden_layers": 3,
            "pad_token_id": 1,
        },
    },
    "gemma3n.Gemma3nForCausalLM": {"text_config": GEMMA3N},
    "gemma3n_text": GEMMA3N,
    "deepseek_v32": {**LATENT, "index_n_heads": 2, "index_head_dim": 18, "index_topk": 16},
    "bert": BERT,
    "luke": {**BERT, "entity_vocab_size": 30, "entity_emb_size": 14},
    "luke, other settings": {
        **BERT, "entity_vocab_size": 30, "entity_emb_size": 26, "use_entity_aware_attention": False,
        "hidden_act": "relu", "layer_norm_eps": 1e-2, "tie_word_embeddings": False, "pad_token_id": 4,
    },
    "tapas": {**BERT, "type_vocab_sizes": [3, 2, 3, 4]},
    "tapas, other settings": {
        **BERT, "type_vocab_sizes": [3, 4], "reset_position_index_per_cell": False, "hidden_act": "relu",
        "layer_norm_eps": 1e-2, "tie_word_embeddings": False,
    },
    "bert, other settings": {**BERT, "hidden_act": "relu", "layer_norm_eps": 1e-2, "tie_word_embeddings": False},
    "bert, decoder": {**BERT, "is_decoder": True, "architectures": ["BertLMHeadModel"]},
    "roberta": {**BERT, "pad_token_id": 1, "architectures": ["RobertaForMaskedLM"]},
    "roberta, other settings": {**BERT, "pad_token_id": 2, "hidden_act": "relu", "layer_norm_eps": 1e-2},
    "roberta, decoder": {**BERT, "is_decoder": True, "architectures": ["RobertaForCausalLM"]},
    "camembert": {**BERT, "layer_norm_eps": 1e-2},
    "xlm-roberta": {**BERT, "layer_norm_eps": 1e-2},
    "data2vec-text": {**BERT, "layer_norm_eps": 1e-2},
    "roberta-prelayernorm": {**BERT, "layer_norm_eps": 1e-2},
    "xlm-roberta-xl": {**BERT, "layer_norm_eps": 1e-2},
    "megatron-bert": {**BERT, "layer_norm_eps": 1e-2, "hidden_act": "silu"},
    "ernie": BERT,
    "ernie, tasks": {**BERT, "use_task_id": True, "layer_norm_eps": 1e-2, "hidden_act": "relu"},
    "electra": {**BERT, "embedding_size": 20, "layer_norm_eps": 1e-2, "hidden_act": "relu"},
    "reformer": {**REFORMER, "is_decoder": True, "architectures": ["ReformerModelWithLMHead"]},
    "reformer, masked": {**REFORMER, "axial_pos_embds": False, "hidden_act": "gelu"},
    "rembert": {
        **BERT,
        "input_embedding_size": 20,
        "output_embedding_size": 26,
        "layer_norm_eps": 1e-2,
        "hidden_act": "relu",
    },
    "bert-generation": {**BERT, "is_decoder": True, "layer_norm_eps": 1e-2, "hidden_act": "relu"},
    "big_bird": {**BERT, "rescale_embeddings": True, "attention_type": "original_full"},
    "big_bird, other settings": {
        **BERT,
        "attention_type": "original_full",
        "use_bias": False,
        "layer_norm_eps": 1e-2,
        "hidden_act": "relu",
    },
    "ultrabert": {**USUAL, "head_dim": 8, "num_hidden_layers": 3, "sliding_window": 3, "prediction_head_size": 14},
    "ultrabert, older keys": {
        **USUAL, "attention_windows": [0, 2], "rope_theta": [500.0, 30.0], "rms_norm_eps": 1e-2, "hidden_act": "gelu",
        "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "prediction_head_size": 14,
    },
    "fnet": {**{key: size for key, size in BERT.items() if key != "num_attention_heads"}, "layer_norm_eps": 1e-2},
    "nystromformer": {**BERT, "conv_kernel_size": 5},
    "yoso": {**BERT, "conv_window": 5, "hash_code_len": 4, "layer_norm_eps": 1e-2},
    "yoso, no convolution": {**BERT, "hidden_act": "relu"},
    "mra": {**BERT, "layer_norm_eps": 1e-2},
    "flaubert": {**XLM, "layer_norm_eps": 1e-2},
    "flaubert, languages": {**XLM, "n_langs": 3, "gelu_activation": False},
    "roformer": {**BERT, "embedding_size": 20, "rotary_value": True},
    "roformer, other settings": {**BERT, "layer_norm_eps": 1e-2, "hidden_act": "relu"},
    "distilbert": {
        "vocab_size": 96,
        "dim": 32,
        "n_layers": 2,
        "n_heads": 4,
        "hidden_dim": 44,
        "max_position_embeddings": 64,
        "activation": "relu",
    },
    "albert": {**BERT, "embedding_size": 20, "num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2},
    "albert, other settings": {**BERT, "embedding_size": 20, "hidden_act": "relu", "layer_norm_eps": 1e-2},
    "roc_bert": {
        **BERT,
        "pronunciation_vocab_size": 20,
        "pronunciation_embed_dim": 12,
        "shape_vocab_size": 22,
        "shape_embed_dim": 14,
    },
    "xlm": XLM,
    "xmod": {**BERT, "languages": ["en_XX"], "default_language": "en_XX"},
    "xmod, pre-norm": {
        **BERT,
        "languages": ["en_XX"],
        "default_language": "en_XX",
        "pre_norm": True,
        "layer_norm_eps": 1e-2,
        "hidden_act": "relu",
    },
    "xmod, adapter norm": {
        **BERT,
        "languages": ["en_XX"],
        "default_language": "en_XX",
        "adapter_layer_norm": True,
        "ln_before_adapter": False,
    },
    "modernbert": {**BERT, "num_hidden_layers": 4, "local_attention": 6, "pad_token_id": 0},
    "modernbert, other settings": {
        **BERT, "num_hidden_layers": 4, "local_attention": 3, "global_attn_every_n_layers": 2, "pad_token_id": 0,
        "hidden_activation": "relu", "classifier_activation": "silu", "norm_eps": 0.01, "norm_bias": True,
        "attention_bias": True, "mlp_bias": True, "classifier_bias": True, "tie_word_embeddings": False,
        "global_rope_theta": 300.0, "local_rope_theta": 70.0,
    },
    "mpnet": BERT,
    "mpnet, other settings": {**BERT, "hidden_act": "relu", "layer_norm_eps": 1e-2, "tie_word_embeddings": False},
    "jina_embeddings_v3": BERT,
    "jina_embeddings_v3, other settings": {
        **BERT, "head_dim": 12, "hidden_act": "relu", "layer_norm_eps": 1e-2, "type_vocab_size": 3, "rope_theta": 300.0,
        "tie_word_embeddings": False,
    },
    "gte": BERT,
    "gte, other settings": {
        **BERT, "head_dim": 12, "hidden_act": "relu", "layer_norm_eps": 1e-2, "type_vocab_size": 0,
        "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 300.0},
    },
    "nomic_bert": BERT,
    "nomic_bert, other settings": {
        **BERT, "head_dim": 12, "hidden_act": "relu", "layer_norm_eps": 1e-2, "rope_theta": 300.0,
        "tie_word_embeddings": False,
    },
    "eurobert": {**BERT, "num_key_value_heads": 2, "pad_token_id": 0},
    "eurobert, other settings": {
        **BERT, "num_key_value_heads": 2, "head_dim": 12, "hidden_act": "relu", "rms_norm_eps": 1e-2,
        "attention_bias": True, "mlp_bias": True, "rope_theta": 300.0, "pad_token_id": 0, "tie_word_embeddings": True,
    },
    "deberta-v2": {
        **BERT, "relative_attention": True, "pos_att_type": "p2c|c2p", "position_buckets": 8, "share_att_key": True,
        "max_relative_positions": -1, "norm_rel_ebd": "layer_norm", "position_biased_input": False,
    },
    "deberta-v2, other settings": {
        **BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "max_relative_positions": 7,
        "conv_kernel_size": 3, "conv_groups": 2, "conv_act": "gelu", "hidden_act": "relu", "layer_norm_eps": 1e-2,
        "type_vocab_size": 3, "embedding_size": 20, "tie_word_embeddings": False,
    },
    "deberta-v2, keys alone": {**BERT, "relative_attention": True, "pos_att_type": "c2p", "legacy": False},
    "deberta": {**BERT, "relative_attention": True, "pos_att_type": "c2p|p2c", "position_biased_input": False},
    "deberta, other settings": {
        **BERT, "relative_attention": True, "pos_att_type": "p2c", "max_relative_positions": 5, "hidden_act": "relu",
        "layer_norm_eps": 1e-2, "type_vocab_size": 3, "embedding_size": 20, "tie_word_embeddings": False,
    },
    "deberta, usual positions": {**BERT, "legacy": False},
    "hunyuan_vl_text": {
        **USUAL, "head_dim": 8,
        "rope_parameters": {
            "rope_type": "xdrope", "rope_theta": 300.0, "alpha": 50.0, "factor": 1.0, "xdrope_section": [1, 1, 1, 1],
        },
    },
    "ernie4_5_vl_moe_text": {
        **USUAL, "head_dim": 8, "moe_num_experts": 8, "moe_k": 3, "moe_intermediate_size": [12, 20],
        "rope_parameters": {"rope_type": "default", "rope_theta": 300.0, "mrope_section": [1, 1, 2]},
    },
    "esm": {**BERT, "pad_token_id": 1, "mask_token_id": 7, "position_embedding_type": "rotary", "token_dropout": True},
    "esm, other settings": {
        **BERT, "pad_token_id": 2, "layer_norm_eps": 1e-2, "emb_layer_norm_before": True, "tie_word_embeddings": False,
    },
    "esm, decoder": {
        **BERT, "pad_token_id": 1, "position_embedding_type": "rotary", "rope_theta": 300.0, "is_decoder": True,
    },
    "esmc": NO_WIDTH | {"num_key_value_heads": 4},
    "esmc, other settings": {
        **BERT, "attention_bias": True, "mlp_bias": True, "hidden_act": "relu",
        "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 300.0},
    },
    "layoutlm": {**BERT, "max_2d_position_embeddings": 30},
    "layoutlm, other settings": {
        **BERT, "max_2d_position_embeddings": 30, "hidden_act": "relu", "layer_norm_eps": 1e-2, "type_vocab_size": 3,
        "tie_word_embeddings": False,
    },
    "squeezebert": {**BERT, "embedding_size": 32},
    "squeezebert, other settings": {
        **BERT, "embedding_size": 32, "q_groups": 1, "k_groups": 2, "post_attention_groups": 8, "hidden_act": "relu",
        "output_groups": 2, "layer_norm_eps": 1e-2, "tie_word_embeddings": False,
    },
    "mobilebert": {**BERT, "embedding_size": 12, "intra_bottleneck_size": 20},
    "mobilebert, other settings": {
        **BERT, "embedding_size": 32, "intra_bottleneck_size": 20, "normalization_type": "layer_norm",
        "trigram_input": False, "use_bottleneck_attention": True, "hidden_act": "gelu", "layer_norm_eps": 1e-2,
        "num_feedforward_networks": 2, "tie_word_embeddings": False, "key_query_shared_bottleneck": False,
    },
    "mobilebert, wide": {**BERT, "embedding_size": 12, "use_bottleneck": False, "num_feedforward_networks": 1},
    "convbert": {**BERT, "embedding_size": 20, "conv_kernel_size": 5},
    "convbert, other settings": {
        **BERT, "embedding_size": 32, "conv_kernel_size": 3, "head_ratio": 4, "num_groups": 4, "hidden_act": "relu",
        "layer_norm_eps": 1e-2, "tie_word_embeddings": False,
    },
}  # fmt: skip
# One config of each kind of forward pass: these are traced in every way; of the others the logits say more.
EVERY_WAY = (
    "gpt2",
    "llama",
    "qwen2",
    "qwen2_moe",
    "qwen3",
    "qwen3_moe",
    "deepseek_v2",
    "deepseek_v3",
    "mistral",
    "mixtral",
    "gpt_oss",
    "t5",
    "gemma3_text",
    "mamba",
    "mamba2",
    "jamba",
    "qwen3_next",
    "bart",
    "falcon",
    "falcon, grouped",
    "gpt_bigcode",
    "bloom",
    "zamba2",
    "recurrent_gemma",
    "mllama.MllamaForCausalLM",
    "gemma3n_text",
    "deepseek_v32",
    "bert",
)
# Compared in their logits alone: the reference runs only the adapters of the languages that occur, looks up no language
# unless it is given, keeps no cache of a causal XLM, pads what BigBird and Longformer read, and has landmarks for texts
# of one length.
LOGITS_ONLY: dict[str, dict[str, Any]] = {
    **images.CONFIGS,
    "step3p7, both directions": {
        **images.CONFIGS["step3p7"],
        "text_config": {**images.CONFIGS["step3p7"]["text_config"], "use_bidirectional_attention": True},
    },
    "musicgen": {"decoder": MUSICGEN, "text_encoder": T5_ENCODER, "audio_encoder": ENCODEC},
    "musicgen, other settings": {
        "decoder": {**MUSICGEN, "num_codebooks": 2, "activation_function": "relu"},
        "text_encoder": {**T5_ENCODER, "d_model": 32, "feed_forward_proj": "gated-gelu", "layer_norm_epsilon": 1e-2},
        "audio_encoder": {
            **ENCODEC, "audio_channels": 2, "num_residual_layers": 2, "num_lstm_layers": 3, "compress": 1,
            "norm_type": "time_group_norm", "pad_mode": "constant", "use_causal_conv": False,
            "use_conv_shortcut": False, "dilation_growth_rate": 3,
        },
    },
    "musicgen_melody": {
        "decoder": MUSICGEN, "text_encoder": T5_ENCODER, "audio_encoder": ENCODEC, "num_chroma": 5, "chroma_length": 9,
    },
    "musicgen_melody, other settings": {
        "decoder": MUSICGEN, "text_encoder": {**T5_ENCODER, "d_model": 32}, "num_chroma": 32, "chroma_length": 4,
        "audio_encoder": {**ENCODEC, "pad_mode": "replicate", "use_causal_conv": False, "trim_right_ratio": 1.0},
    },
    "xmod, two languages": {**BERT, "languages": ["en_XX", "de_DE"], "default_language": "de_DE"},
    "big_bird, short text": BERT,
    "perceiver": {
        "vocab_size": 96, "d_model": 32, "d_latents": 24, "num_latents": 7, "num_self_attends_per_block": 2,
        "num_self_attention_heads": 4, "num_cross_attention_heads": 2, "max_position_embeddings": 11,
        "num_blocks": 2, "self_attention_widening_factor": 3, "cross_attention_widening_factor": 2,
        "hidden_act": "relu", "use_query_residual": False,
    },
    "perceiver, one layer again": {
        "vocab_size": 96, "d_model": 32, "d_latents": 24, "num_latents": 7, "num_self_attends_per_block": 1,
        "num_self_attention_heads": 4, "num_cross_attention_heads": 2, "max_position_embeddings": 11,
        "num_blocks": 4, "self_attention_widening_factor": 3, "cross_attention_widening_factor": 2,
        "hidden_act": "relu", "use_query_residual": False,
    },
    "longformer": {**BERT, "attention_window": 4, "layer_norm_eps": 1e-2},
    "longformer, windows": {
        **BERT, "attention_window": [4, 8], "hidden_act": "relu", "pad_token_id": 0, "tie_word_embeddings": False,
    },
    "led": {
        **{key: size for key, size in BART.items() if key != "max_position_embeddings"},
        "max_encoder_position_embeddings": 32, "max_decoder_position_embeddings": 64, "attention_window": 4,
    },
    "led, windows": {
        **{key: size for key, size in BART.items() if key != "max_position_embeddings"},
        "max_encoder_position_embeddings": 32, "max_decoder_position_embeddings": 64, "attention_window": [8, 4],
        "activation_function": "relu",
    },
    "nystromformer, landmarks": {
        **BERT, "conv_kernel_size": 3, "num_landmarks": 5, "segment_means_seq_len": 15, "layer_norm_eps": 1e-2,
    },
    "xlm, languages": {
        **XLM,
        "n_langs": 3,
        "gelu_activation": False,
        "layer_norm_eps": 1e-2,
        "sinusoidal_embeddings": True,
    },
    "xlm, causal": {**XLM, "causal": True},
    "zaya, sliding": {
        **SLIDING, "num_hidden_layers": 3, "head_dim": 8, "layer_types": ["hybrid_sliding", "hybrid", "hybrid_sliding"],
        "moe_intermediate_size": 14, "num_experts": 3, "router_hidden_size": 12, "cca_time0": 3, "cca_time1": 4,
        "rms_norm_eps": 1e-2, "attention_bias": True, "lm_head_bias": True, "hidden_act": "gelu",
        "rope_parameters": {
            "hybrid": {"rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": 0.75},
            "hybrid_sliding": {"rope_type": "default", "rope_theta": 70.0, "partial_rotary_factor": 0.5},
        },
    },
    "hrm_text, biases": {
        **USUAL, "head_dim": 8, "H_cycles": 2, "L_cycles": 2, "attention_bias": True, "mlp_bias": True,
        "rms_norm_eps": 1e-2, "hidden_act": "gelu", "rope_theta": 300.0, "embedding_scale": 3.0,
    },
    "beam, varied": {
        **SLIDING, **MOE, "num_hidden_layers": 4, "head_dim": 8, "rms_norm_eps": 1e-2, "hidden_act": "gelu",
        "layer_types": ["sliding_attention", "full_attention", "full_attention", "sliding_attention"],
        "mlp_layer_types": ["dense", "sparse", "sparse", "dense"], "n_group": 4, "topk_group": 2,
        "norm_topk_prob": False, "routed_scaling_factor": 1.7, "final_logit_softcapping": 3.0, "attention_bias": True,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 300.0}, "full_attention": None,
        },
    },
    "beam, all rotated": {
        **SLIDING, **MOE, "head_dim": 8, "layer_types": ["sliding_attention", "full_attention"],
        "mlp_layer_types": ["dense", "sparse"], "n_group": 2, "topk_group": 1, "final_logit_softcapping": None,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
            "full_attention": {"rope_type": "default", "rope_theta": 70.0},
        },
    },
    "glm4v_moe_text, varied": {
        **MOE, "head_dim": 12, "n_routed_experts": 8, "n_shared_experts": 2, "first_k_dense_replace": 1,
        "n_group": 4, "topk_group": 2, "routed_scaling_factor": 1.7, "norm_topk_prob": False, "attention_bias": True,
        "hidden_act": "gelu", "rms_norm_eps": 1e-2,
        "rope_parameters": {
            "rope_type": "default", "rope_theta": 300.0, "mrope_section": [1, 1, 1], "partial_rotary_factor": 0.5,
        },
    },
    "minimax_m3_vl_text, sparse": {
        **USUAL, "num_hidden_layers": 3, "head_dim": 16, "intermediate_size": 14, "dense_intermediate_size": 44,
        "shared_intermediate_size": 18, "num_local_experts": 8, "num_experts_per_tok": 3, "rms_norm_eps": 1e-2,
        "layer_types": ["minimax_m3_sparse", "full_attention", "minimax_m3_sparse"],
        "mlp_layer_types": ["dense", "sparse", "sparse"], "index_n_heads": 2, "index_head_dim": 12,
        "index_block_size": 2, "index_topk_blocks": 3, "index_local_blocks": 2, "swiglu_alpha": 1.3,
        "swiglu_limit": 0.2, "routed_scaling_factor": 1.7,
        "rope_parameters": {"rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": 0.5},
    },
    "inkling_text, varied": {
        **USUAL, "num_hidden_layers": 3, "head_dim": 8, "swa_num_attention_heads": 6, "swa_num_key_value_heads": 3,
        "swa_head_dim": 12, "sliding_window_size": 4, "d_rel": 5, "rel_extent": 7, "log_scaling_n_floor": 3,
        "log_scaling_alpha": 0.4, "layer_types": ["hybrid_sliding", "hybrid", "hybrid_sliding"], "conv_kernel_size": 3,
        "mlp_layer_types": ["dense", "sparse", "sparse"], "hidden_act": "gelu", "moe_intermediate_size": 14,
        "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 2, "route_scale": 1.7,
        "rms_norm_eps": 1e-2, "logits_mup_width_multiplier": 3.0, "unpadded_vocab_size": 90,
    },
    "jetmoe, gelu": {
        **NO_WIDTH, "kv_channels": 10, "num_local_experts": 6, "num_experts_per_tok": 3, "rms_norm_eps": 1e-2,
        "activation_function": "gelu", "rope_theta": 300.0,
    },
    "doge, few kept": {
        **SLIDING, "head_dim": 8, "keep_window_size": 4, "attention_bias": True, "mlp_bias": True, "rms_norm_eps": 1e-2,
        "hidden_act": "gelu", "rope_theta": 300.0,
    },
    "doge, mixture": {
        **NO_WIDTH, "keep_window_size": 4, "is_moe": True, "num_experts": 18, "num_experts_per_tok": 5,
    },
    "diffllama, biases": {
        **USUAL, "head_dim": 8, "attention_bias": True, "rms_norm_eps": 1e-2, "hidden_act": "gelu", "rope_theta": 300.0,
    },
}  # fmt: skip


CASES = cases.load_cases()
# Of an architecture that is no key of CONFIGS, a config without these keys is taken: the declaration does not know of
# them.
UNTRACED = ("'use_bidirectional_attention': 'all'",)
LARGEST = 1_000_000  # parameters


class ComparedRun(NamedTuple):
    """The trace, and what the reference did with the same tokens."""

    trace: Trace
    calls: Mapping[str, Call]
    products: Mapping[str, list[tuple[int, ...]]]
    output: Any
    kept: list[Cached]


@cache
def make_document(name: str) -> dict[str, Any]:
    """A config.json: one of CONFIGS, whose names have the model type before a comma, or else one that is known to
    run.
    """
    if name in CONFIGS or name in LOGITS_ONLY:
        model_type, _ = split_name(name.partition(",")[0])
        return {
            "model_type": model_type,
            "architectures": [MODEL_TYPES[name.partition(",")[0]].cls],
            **(CONFIGS | LOGITS_ONLY)[name],
        }
    known = [
        case
        for case in CASES[name]
        if "refused" not in case and case["total"] < LARGEST and not any(word in str(case) for word in UNTRACED)
    ]
    configs: list[dict[str, Any]] = [case["config"] for case in sorted(known, key=lambda case: -case["total"])]
    configs += [
        config | {"num_key_value_heads": config["num_attention_heads"]}
        for config in configs
        if "num_attention_heads" in config
    ]
    for config in configs:
        try:
            model = build_model(config, config.get("architectures", [MODEL_TYPES[name].cls])[0])
            run_reference(model, TOKENS, 1, make_other_inputs(model, trace_model(load(config), TraceOptions(1)), 1))
        except (
            AttributeError,
            IndexError,
            RuntimeError,
            StopIteration,
            ValueError,
        ):  # some that the reference runs, it cannot run with its eager attention or with a cache
            continue
        return config
    raise AssertionError(f"no case of {name} runs with a cache")


def build_model(config: dict[str, Any], cls_name: str) -> Any:
    """The model of the reference, with its attention in the open and weights that are numbers."""
    import torch

    model = differential.build_model(config, cls_name, "cpu").eval()
    model.set_attn_implementation("eager")
    model.set_experts_implementation("eager")
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(1)
        for weight in model.parameters():
            weight.normal_(0, 0.1)
    return model


@cache
def load_model(name: str) -> Any:
    return build_model(make_document(name), find_class(name))


def find_class(name: str) -> str:
    found: str = make_document(name).get("architectures", [MODEL_TYPES[name.partition(",")[0]].cls])[0]
    return found


@cache
def run_both(name: str, asked: TraceOptions) -> ComparedRun:
    """The same tokens through both: those before them first, if there are any."""
    model, texts = load_model(name), asked.batch or 1
    sizes = load(make_document(name))
    trace = trace_model(sizes, asked._replace(source=SOURCE if has_encoder_input(sizes) else None))
    beside = make_other_inputs(model, trace_model(sizes, TraceOptions(1)), texts)
    if asked.past is not None:
        output = run_reference(model, asked.past, texts, beside)
        kept: tuple[str, ...] = (
            "past_key_values",
            "cache_params",
            "state",
            "mems",
            "use_mems",
            "encoder_hidden_states",
            "use_cache",
            "pixel_values",
            "qformer_input_ids",
        )
        if "encoder_last_hidden_state" in output:
            output["encoder_outputs"] = model.get_encoder()(beside["input_ids"])
            kept = ("past_key_values", "encoder_outputs")
        beside = {key: given for key, given in (*beside.items(), *output.items()) if key in kept}
    with watch_modules(model) as calls, watch_experts(model) as products:
        output = run_reference(model, asked.tokens, texts, beside)
    prefix = model.base_model_prefix + "."
    if type(model).__name__ in images.ALWAYS_SEE:  # the trace is that of a text alone
        calls = {name: call for name, call in calls.items() if name.startswith("language_model.")}
    return ComparedRun(
        trace,
        {module.removeprefix(prefix): call for module, call in calls.items()},
        products,
        output,
        list_cached(model, beside | dict(output)),
    )


def make_other_inputs(model: Any, trace: Trace, texts: int) -> dict[str, Any]:
    """What the reference takes beside its tokens: another text, an encoder's output, a cache that it does not make
    itself.
    """
    import torch
    from transformers import DynamicCache

    if type(model).__name__ in images.ALWAYS_SEE:
        found = differential.make_image(model.config, type(model).__name__, make_token_ids(1, texts))
        del found["input_ids"]
        return found | ({"use_cache": True} if trace.cache else {})
    parts = {step.part for step in trace.steps}
    if "encoder" in parts and any("source" in step.out for step in trace.steps):
        return {"input_ids": make_token_ids(SOURCE, texts)}
    given: dict[str, Any] = (
        {"use_mems" if model.config.model_type == "xlnet" else "use_cache": True} if trace.cache else {}
    )
    if "cross_attention" in parts:
        crossing = (step for step in trace.steps if step.part == "cross_attention" and step.text.startswith("keys"))
        width = next(crossing).inputs[0][-1]  # a fused matrix comes before the keys and values that it gives
        name = "cross_attention_states" if model.config.model_type == "mllama_text_model" else "encoder_hidden_states"
        given[name] = torch.ones((texts, SOURCE, int(width)))
    elif model.config.model_type == "recurrent_gemma":
        given["past_key_values"] = DynamicCache(config=model.config)
    return given


def run_reference(model: Any, n: int, texts: int, beside: Mapping[str, Any]) -> Any:
    import torch

    name = "decoder_input_ids" if "input_ids" in beside or "encoder_outputs" in beside else "input_ids"
    with torch.no_grad():
        ids = differential.repeat_for_codebooks(model, make_token_ids(n, texts))
        output = model(**{name: ids}, **beside, output_attentions=True)
    return output.get("language_model_outputs", output)


def make_token_ids(n: int, texts: int) -> Any:
    import torch

    return (7 * torch.arange(n * texts).reshape(texts, n)) % 89 + 3
