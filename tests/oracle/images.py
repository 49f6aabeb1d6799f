"""Images and audio for multimodal models: the same values for the flow and, as its processor arranges them, for the
reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

IMAGE_TOKEN, SOUND_TOKEN = 95, 94  # of all small configs
Arrange = Callable[[Any, Any, Any], dict[str, Any]]  # (pixels [channels, height, width], ids, sizes) to arguments


TEXT = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 44, "max_position_embeddings": 64, "head_dim": 8, "rms_norm_eps": 1e-3, "rope_theta": 300.0,
    "pad_token_id": None, "bos_token_id": None, "eos_token_id": None,
}  # fmt: skip
VISION = {
    "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 20, "image_size": 12,
    "patch_size": 4, "layer_norm_eps": 1e-3,
}  # fmt: skip
PLACEHOLDER = {"image_token_id": IMAGE_TOKEN, "image_token_index": IMAGE_TOKEN}
LLAMA, QWEN2 = {**TEXT, "model_type": "llama"}, {**TEXT, "model_type": "qwen2"}
CLIP, SIGLIP = {**VISION, "model_type": "clip_vision_model"}, {**VISION, "model_type": "siglip_vision_model"}
GEMMA = {**TEXT, "model_type": "gemma"}
PALIGEMMA = {
    "text_config": GEMMA, "vision_config": {**SIGLIP, "vision_use_head": False}, **PLACEHOLDER, "projection_dim": 32,
}  # fmt: skip
PIXTRAL = {**VISION, "model_type": "pixtral", "head_dim": 8, "rope_theta": 50.0}
QWEN_TEXT = {key: value for key, value in TEXT.items() if key != "head_dim"}
RESAMPLER = {
    "resampler_num_latents": 5, "resampler_depth": 2, "resampler_dim_head": 6, "resampler_heads": 3,
    "resampler_ff_mult": 2,
}  # fmt: skip
SAPROT = {
    "vocab_size": 20, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 28,
    "max_position_embeddings": 32,
}  # fmt: skip
SECTIONS = {"rope_type": "default", "rope_theta": 300.0, "mrope_section": [2, 1, 1]}
QWEN_VISION = {
    "depth": 3, "embed_dim": 16, "num_heads": 2, "hidden_size": 32, "mlp_ratio": 2, "patch_size": 4,
    "spatial_merge_size": 2, "temporal_patch_size": 2, "in_channels": 3,
}  # fmt: skip
QWEN3_VISION = {
    **QWEN_VISION, "hidden_size": 16, "intermediate_size": 20, "out_hidden_size": 32, "num_position_embeddings": 25,
    "deepstack_visual_indexes": [0, 1], "hidden_act": "gelu",
}  # fmt: skip
GLM_VISION = {
    "depth": 2, "hidden_size": 16, "num_heads": 2, "intermediate_size": 20, "out_hidden_size": 32, "image_size": 20,
    "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, "rms_norm_eps": 1e-3,
}  # fmt: skip
GLM5_TEXT = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4,
    "layer_types": ["linear_attention", "indexed_attention", "indexed_attention", "linear_attention"],
    "indexer_types": ["full", "full", "shared", "full"], "mlp_layer_types": ["dense", "sparse", "sparse", "dense"],
    "intermediate_size": 44, "q_lora_rank": 20, "kv_lora_rank": 16, "qk_nope_head_dim": 12, "v_head_dim": 8,
    "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 2, "moe_intermediate_size": 14,
    "index_n_heads": 3, "index_head_dim": 10, "index_topk": 4, "index_kpool": 2, "linear_num_heads": 3,
    "linear_head_dim": 8, "hc_mult": 3, "pad_token_id": None, "bos_token_id": None, "eos_token_id": None,
}  # fmt: skip
SAM = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "mlp_dim": 20, "image_size": 32,
    "patch_size": 4, "output_channels": 8, "window_size": 3, "global_attn_indexes": [1],
}  # fmt: skip
BERT = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 44,
    "hidden_activation": "relu", "classifier_bias": True,
}  # fmt: skip
DEEPSEEK = {
    **{key: value for key, value in TEXT.items() if key != "head_dim"}, "model_type": "deepseek_v3",
    "num_key_value_heads": 4, "q_lora_rank": 12, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
    "v_head_dim": 8,
}  # fmt: skip
VQ_VAE = {
    "embed_dim": 4, "num_embeddings": 24, "latent_channels": 8, "base_channels": 32, "channel_multiplier": [1, 2],
    "num_res_blocks": 1,
}  # fmt: skip
MOLMO = {"hidden_size": 16, "num_attention_heads": 2, "head_dim": 6, "intermediate_size": 20}
DAVIT = {
    "embed_dim": [8, 16], "depths": [1, 2], "num_heads": [2, 4], "num_groups": [2, 4], "patch_size": [7, 3],
    "patch_stride": [4, 2], "patch_padding": [3, 1], "patch_prenorm": [False, True], "window_size": 3,
    "projection_dim": 32, "max_position_embeddings": 6, "max_temporal_embeddings": 3, "mlp_ratio": 2.0,
}  # fmt: skip
BART = {
    "model_type": "bart", "vocab_size": 96, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 44, "decoder_ffn_dim": 44,
    "max_position_embeddings": 64,
}  # fmt: skip
ONE_TILE = {"image_grid_pinpoints": [[0, 0]]}
COHERE2 = {**TEXT, "model_type": "cohere2", "layer_norm_eps": 1e-3, "sliding_window": 5}
PERCEPTION = {"embed_dim": 16, "depth": 2, "num_heads": 2, "img_size": [56, 56], "global_pool": ""}
MLLAMA_TEXT = {key: value for key, value in TEXT.items() if key not in ("head_dim", "bos_token_id", "eos_token_id")}
OPT = {
    "model_type": "opt", "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "ffn_dim": 44, "max_position_embeddings": 64, "word_embed_proj_dim": 32, "pad_token_id": None,
}  # fmt: skip
T5 = {
    "model_type": "t5", "vocab_size": 96, "d_model": 32, "num_layers": 2, "num_heads": 4, "d_kv": 8, "d_ff": 44,
    "feed_forward_proj": "gated-gelu",
}  # fmt: skip
BERT = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 44,
    "max_position_embeddings": 64,
}  # fmt: skip
GPT2 = {"vocab_size": 96, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "n_inner": 44}
MOSHI = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 44,
    "num_codebooks": 3, "codebook_vocab_size": 17, "audio_bos_token_id": 16, "audio_pad_token_id": 147,
}  # fmt: skip
MIMI = {
    "hidden_size": 16, "num_filters": 4, "upsampling_ratios": [3, 2], "codebook_size": 16, "codebook_dim": 12,
    "vector_quantization_hidden_dimension": 12, "num_quantizers": 3, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2, "intermediate_size": 20, "upsample_groups": 8, "sliding_window": 5,
}  # fmt: skip
PIX2STRUCT = {
    "vocab_size": 96, "d_kv": 8, "d_ff": 20, "num_layers": 2, "num_heads": 2, "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 7, "layer_norm_epsilon": 1e-3, "dense_act_fn": "silu",
}  # fmt: skip
KOSMOS = {
    "vocab_size": 96, "embed_dim": 32, "layers": 2, "attention_heads": 4, "ffn_dim": 44, "layer_norm_eps": 1e-3,
    "activation_function": "silu",
}  # fmt: skip
QFORMER = {
    "vocab_size": 96, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 28,
    "max_position_embeddings": 20, "layer_norm_eps": 1e-3, "hidden_act": "silu",
}  # fmt: skip
EARS = {
    "d_model": 16, "encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 64, "num_mel_bins": 10,
    "max_source_positions": 8, "vocab_size": 96,
}  # fmt: skip
OMNI_THINKER = {
    "text_config": {**TEXT, "head_dim": 10, "rope_parameters": {**SECTIONS, "mrope_section": [2, 1, 2]}},
    **PLACEHOLDER, "audio_config": {**EARS, "output_dim": 32},
    "vision_config": {
        **QWEN_VISION, "hidden_size": 16, "intermediate_size": 20, "out_hidden_size": 32, "window_size": 16,
        "fullatt_block_indexes": [1],
    },
}  # fmt: skip
QWEN3_OMNI_THINKER = {
    "text_config": {
        **TEXT, "rope_parameters": {**SECTIONS, "mrope_interleaved": True}, "moe_intermediate_size": 14,
        "num_experts": 8, "num_experts_per_tok": 3, "mlp_only_layers": [1],
    },
    **PLACEHOLDER, "vision_config": QWEN3_VISION,
    "audio_config": {**EARS, "output_dim": 32, "downsample_hidden_size": 6},
}  # fmt: skip
OMNI_TALKER = {
    **TEXT, "hidden_size": 24, "embedding_size": 32, "rope_parameters": SECTIONS,
}  # fmt: skip
OMNI_DIT = {
    "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "head_dim": 8, "block_size": 4,
    "look_ahead_layers": [1], "look_backward_layers": [0, 2], "emb_dim": 12, "num_embeds": 100, "mel_dim": 12,
    "enc_emb_dim": 6, "enc_dim": 10, "enc_channels": [8, 8, 8, 8, 24], "enc_res2net_scale": 4,
    "enc_attention_channels": 5, "enc_se_channels": 6, "repeats": 2,
}  # fmt: skip
OMNI_VOCODER = {
    "mel_dim": 12, "upsample_initial_channel": 32, "upsample_rates": [5, 3, 2], "upsample_kernel_sizes": [11, 7, 4],
    "resblock_kernel_sizes": [3, 7], "resblock_dilation_sizes": [[1, 3, 5], [1, 2, 4]],
}  # fmt: skip
QWEN3_OMNI_TALKER = {
    "spatial_merge_size": 2, "thinker_hidden_size": 32,
    "text_config": {
        **TEXT, "hidden_size": 24, "shared_expert_intermediate_size": 10, "moe_intermediate_size": 14, "num_experts": 8,
        "num_experts_per_tok": 3, "rope_parameters": {**SECTIONS, "mrope_interleaved": True},
    },
    "code_predictor_config": {**TEXT, "hidden_size": 24, "num_code_groups": 4},
}  # fmt: skip
CODE2WAV = {
    "codebook_size": 96, "num_quantizers": 4, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 44, "sliding_window": 5, "upsample_rates": [3, 2],
    "upsampling_ratios": [2], "decoder_dim": 24, "rms_norm_eps": 1e-3,
}  # fmt: skip
MUSE_SPARK = {
    "text_config": {
        **{key: value for key, value in TEXT.items() if key != "rope_theta"}, "num_hidden_layers": 3,
        "layer_types": ["full_attention", "sliding_attention", "full_attention"], "sliding_window": 5,
        "layer_rope_theta": [0, 300.0, 300.0], "final_logit_softcapping": 5.0, "output_multiplier": 0.4,
        "rope_parameters": {"rope_type": "default", "rope_theta": 300.0},
        "mlp_layer_types": ["sparse", "dense", "sparse"], "num_local_experts": 6, "num_experts_per_tok": 3,
        "moe_intermediate_size": 14, "moe_hidden_size": 20, "routed_scaling_factor": 1.7,
        "residual_gate_temperature": 0.4, "qk_scale_factor": 2.5, "post_norm_eps": 1e-3,
    },
    "out_hidden_size": 64, "projector_hidden_size": 24, "video_token_id": 93,
    "vision_config": {
        **VISION, "pos_emb_height": 3, "pos_emb_width": 3,
        "layer_types": ["window_attention", "full_attention", "window_attention"],
    },
    "audio_config": {
        "patch_sizes": [2, 3], "hidden_sizes": [12, 8], "depths": [2, 1], "num_hidden_layers": 2, "mlp_ratio": 1.5,
        "conv_kernel_size": 5, "hidden_act": "silu", "rms_norm_eps": 1e-2, "out_hidden_size": 32,
    },
}  # fmt: skip
GRANITE_SPEECH = {"audio_token_index": IMAGE_TOKEN, "window_size": 7, "downsample_rate": 2}
GRANITE_EARS = {
    "input_dim": 10, "num_layers": 5, "hidden_dim": 16, "feedforward_mult": 3, "num_heads": 2, "dim_head": 6,
    "output_dim": 9, "context_size": 3, "max_pos_emb": 4, "conv_kernel_size": 4,
}  # fmt: skip
GRANITE_QFORMER = {
    "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 20, "hidden_act": "relu",
    "layer_norm_eps": 1e-2,
}  # fmt: skip
VIBEVOICE = {
    "kernel_size": 3, "num_filters": 4, "downsampling_ratios": [2, 3], "depths": [1, 2, 1], "ffn_expansion": 2,
    "rms_norm_eps": 1e-2,
}  # fmt: skip
DELTA = {
    **TEXT, "layer_types": ["linear_attention", "full_attention"], "linear_num_value_heads": 4,
    "linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 6, "head_dim": 16,
    "rope_parameters": {
        "rope_type": "default", "rope_theta": 300.0, "mrope_section": [2, 1, 1], "mrope_interleaved": True,
        "partial_rotary_factor": 0.5,
    },
}  # fmt: skip
GIT = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 44,
    "max_position_embeddings": 64, "layer_norm_eps": 1e-3, "hidden_act": "silu",
    "vision_config": {**VISION, "layer_norm_eps": 1e-2},
}  # fmt: skip
GEMMA4 = {
    **TEXT, "pad_token_id": 5, "sliding_window": 5, "global_head_dim": 12, "num_hidden_layers": 2,
    "layer_types": ["sliding_attention", "full_attention"],
}  # fmt: skip
DIFFUSION_GEMMA: dict[str, Any] = {
    "text_config": {**GEMMA4, "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 12},
    "image_token_id": IMAGE_TOKEN,
    "vision_config": {
        **VISION,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "position_embedding_size": 10,
        "rms_norm_eps": 1e-3,
        "pooling_kernel_size": 2,
    },
}
UNLIMITED_OCR: dict[str, Any] = {
    "text_config": {
        **TEXT,
        "num_key_value_heads": 4,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 12,
    },
    "image_token_id": IMAGE_TOKEN,
    "vision_config": {
        "sam_config": {**SAM, "downsample_channels": [12, 16]},
        "encoder_config": {**VISION, "image_size": 8, "patch_size": 4},
    },
}
MBART = {
    "vocab_size": 96, "d_model": 32, "decoder_layers": 2, "encoder_layers": 2, "decoder_attention_heads": 4,
    "decoder_ffn_dim": 44, "max_position_embeddings": 64,
}  # fmt: skip
FORMULA_VISION = {
    **SAM, "post_conv_in_channels": 8, "post_conv_mid_channels": 12, "post_conv_out_channels": 20,
    "decoder_hidden_size": 32,
}  # fmt: skip
SWIN = {
    "embed_dim": 8, "depths": [2, 3], "num_heads": [2, 4], "window_size": 2, "patch_size": 3, "mlp_ratio": 1.5,
    "layer_norm_eps": 1e-3,
}  # fmt: skip
WRITER = {"is_decoder": True, "add_cross_attention": True}
# Of Mllama, texts alone are compared.
CONFIGS: dict[str, dict[str, Any]] = {
    "llava": {"text_config": LLAMA, "vision_config": CLIP, **PLACEHOLDER},
    "llava, two views": {
        "text_config": QWEN2, "vision_config": {**CLIP, "hidden_act": "gelu"}, **PLACEHOLDER,
        "vision_feature_layer": [-3, 3], "projector_hidden_act": "silu", "multimodal_projector_bias": False,
    },
    "llava, siglip": {
        "text_config": LLAMA, "vision_config": SIGLIP, **PLACEHOLDER, "vision_feature_layer": -1,
        "vision_feature_select_strategy": "full",
    },
    "paligemma": PALIGEMMA,
    "evolla": {
        **QWEN_TEXT, "num_hidden_layers": 3, "aligner_num_add_layers": 1, **RESAMPLER, "protein_encoder_config": SAPROT,
    },
    "evolla, other settings": {
        **TEXT, "num_hidden_layers": 5, "aligner_num_add_layers": 2, **RESAMPLER, "attention_bias": True,
        "mlp_bias": True, "hidden_act": "gelu", "aligner_ffn_mult": 1, "aligner_enable_bias": False,
        "protein_encoder_config": {
            **SAPROT, "position_embedding_type": "absolute", "pad_token_id": 0, "mask_token_id": 7,
            "emb_layer_norm_before": True, "layer_norm_eps": 1e-2,
        },
    },
    "evolla, no masks": {
        **QWEN_TEXT, "num_key_value_heads": 4, **RESAMPLER, "resampler_depth": 0,
        "protein_encoder_config": {**SAPROT, "token_dropout": False, "rope_theta": 50.0},
    },
    "pi0": {
        "vlm_config": {**PALIGEMMA, "text_config": {**GEMMA, "num_hidden_layers": 3}},
        "dit_config": {**GEMMA, "hidden_size": 24, "intermediate_size": 28, "rope_theta": 500.0},
        "chunk_size": 7, "max_state_dim": 5, "max_action_dim": 6, "min_period": 0.1,
    },
    "pi0, other settings": {
        "vlm_config": {**PALIGEMMA, "text_config": {**GEMMA, "attention_bias": True, "hidden_act": "silu"}},
        "dit_config": {
            **GEMMA, "hidden_size": 40, "num_attention_heads": 8, "rms_norm_eps": 1e-2, "attention_bias": True,
            "hidden_act": "relu",
        },
        "chunk_size": 7, "max_state_dim": 3, "min_period": 0.2, "max_period": 9.0,
    },
    "mistral3": {
        "text_config": {**TEXT, "model_type": "mistral", "sliding_window": None}, "vision_config": PIXTRAL,
        **PLACEHOLDER, "vision_feature_layer": -2,
    },
    "hunyuan_vl": {
        "text_config": {
            **{key: value for key, value in TEXT.items() if key != "rope_theta"},
            "rope_parameters": {"rope_type": "default", "rope_theta": 300.0, "mrope_section": [1, 1, 1, 1]},
        },
        **PLACEHOLDER, "vision_config": {**VISION, "max_image_size": 12, "spatial_merge_size": 2, "hidden_act": "silu"},
    },
    "mistral_large4": {
        "text_config": {
            **{key: value for key, value in DEEPSEEK.items() if key not in ("model_type", "q_lora_rank", "rope_theta")},
            "num_hidden_layers": 5, "moe_intermediate_size": 12, "n_routed_experts": 4, "num_experts_per_tok": 2,
            "index_head_dim": 18, "index_n_heads": 16, "index_topk": 4, "no_rope_layers": [1, 0, 1, 0, 0],
            "kv_source_layers": [0, 1, 0, 1, 4], "indexer_types": ["full", "shared", "full", "full", "shared"],
            "final_logit_softcapping": 3.0, "routed_scaling_factor": 1.7,
            "rope_parameters": {
                "rope_type": "yarn", "rope_theta": 300.0, "factor": 4.0, "original_max_position_embeddings": 8,
                "mscale_all_dim": 0.7,
            },
        },
        "vision_config": PIXTRAL, **PLACEHOLDER, "vision_feature_layer": -2,
    },
    "modernvbert": {
        "text_config": {**BERT, "norm_eps": 1e-3, "local_attention": 4, "pad_token_id": 0},
        "vision_config": {**SIGLIP, "image_size": 16}, **PLACEHOLDER, "pixel_shuffle_factor": 2,
    },
    "neomme": {
        **TEXT, "image_token_id": IMAGE_TOKEN, "embedding_rank": 12, "patch_size": 4,
        "num_hidden_layers": 3, "layer_types": ["full_attention", "sliding_attention", "full_attention"],
        "sliding_window": 3, "hidden_act": "relu2", "rope_parameters": {
            "full_attention": {"partial_rotary_factor": 0.5, "rope_type": "default", "rope_theta": 300.0},
        },
    },
    "ultravbert": {
        "text_config": {
            **{key: value for key, value in TEXT.items() if key != "rope_theta"}, "sliding_window": 2,
            "prediction_head_size": 14, "pad_token_id": 0,
        },
        "vision_config": {**SIGLIP, "image_size": 16, "vision_use_head": False}, **PLACEHOLDER,
        "pixel_shuffle_factor": 2,
    },
    "idefics3": {"text_config": LLAMA, "vision_config": {**VISION, "image_size": 16}, **PLACEHOLDER, "scale_factor": 2},
    "smolvlm": {"text_config": LLAMA, "vision_config": {**VISION, "image_size": 16}, **PLACEHOLDER, "scale_factor": 2},
    "internvl": {
        "text_config": QWEN2, "vision_config": {**VISION, "image_size": [16, 16], "patch_size": [4, 4]}, **PLACEHOLDER,
        "projector_hidden_act": "silu",
    },
    "internvl, earlier layer": {
        "text_config": QWEN2, "vision_config": {**VISION, "image_size": [16, 16], "patch_size": [4, 4]}, **PLACEHOLDER,
        "vision_feature_layer": -2,
    },
    "internvl, RMS norms": {
        "text_config": QWEN2, **PLACEHOLDER,
        "vision_config": {
            **VISION, "image_size": [16, 16], "patch_size": [4, 4], "norm_type": "rms_norm", "use_qk_norm": True,
            "use_mean_pooling": False, "attention_bias": True,
        },
    },
    "qianfan_ocr": {
        "text_config": {**TEXT, "model_type": "qwen3"}, **PLACEHOLDER,
        "vision_config": {**VISION, "image_size": [16, 16], "patch_size": [4, 4], "use_qk_norm": True},
    },
    "gemma3": {
        "text_config": {**TEXT, "model_type": "gemma3_text", "sliding_window": 5, "query_pre_attn_scalar": 20},
        "vision_config": {**SIGLIP, "image_size": 16}, **PLACEHOLDER, "mm_tokens_per_image": 4,
    },
    "gemma4": {
        "text_config": {**GEMMA4, "hidden_size_per_layer_input": 6, "vocab_size_per_layer_input": 96},
        **PLACEHOLDER, "audio_token_id": 93, "video_token_id": 94,
        "vision_config": {
            **VISION, "num_key_value_heads": 1, "head_dim": 8, "position_embedding_size": 10, "rms_norm_eps": 1e-3,
            "pooling_kernel_size": 2, "use_clipped_linears": True, "standardize": True, "hidden_activation": "silu",
        },
        "audio_config": None,
    },
    "gemma4, sound": {
        "text_config": {**GEMMA4, "hidden_size_per_layer_input": 6, "vocab_size_per_layer_input": 96},
        "image_token_id": 93, "audio_token_id": IMAGE_TOKEN, "video_token_id": 94, "vision_config": None,
        "audio_config": {
            "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "subsampling_conv_channels": [8, 6],
            "conv_kernel_size": 3, "output_proj_dims": 12, "rms_norm_eps": 1e-3, "gradient_clipping": 1.5,
            "attention_chunk_size": 3, "attention_context_left": 4, "attention_logit_cap": 3.0, "residual_weight": 0.7,
            "hidden_act": "gelu",
        },
    },
    "gemma4_unified": {
        "text_config": GEMMA4, **PLACEHOLDER, "audio_token_id": 93, "video_token_id": 94,
        "vision_config": {
            "patch_size": 4, "pooling_kernel_size": 2, "model_patch_size": 8, "mm_embed_dim": 16,
            "output_proj_dims": 16, "mm_posemb_size": 10, "rms_norm_eps": 1e-2,
        },
        "audio_config": {
            "audio_samples_per_token": 12, "audio_embed_dim": 12, "output_proj_dims": 12, "rms_norm_eps": 1e-2,
        },
    },
    "diffusion_gemma": DIFFUSION_GEMMA,
    "diffusion_gemma, untied": {
        **DIFFUSION_GEMMA, "tie_word_embeddings": False,
        "text_config": {
            **DIFFUSION_GEMMA["text_config"], "num_hidden_layers": 4, "attention_bias": True, "layer_types": None,
            "num_global_key_value_heads": 1, "final_logit_softcapping": 3.0, "hidden_activation": "silu",
        },
    },
    "unlimited_ocr": UNLIMITED_OCR,
    "unlimited_ocr, groups of experts": {
        **UNLIMITED_OCR, "tie_word_embeddings": True,
        "text_config": {
            **UNLIMITED_OCR["text_config"], "topk_method": "group_limited_greedy", "n_group": 2, "topk_group": 1,
            "routed_scaling_factor": 1.5, "attention_bias": True, "mlp_bias": True, "hidden_act": "relu",
        },
    },
    "git": GIT,
    "git, frames": {**GIT, "num_image_with_embedding": 3, "tie_word_embeddings": True},
    "mllama": {
        "text_config": {**MLLAMA_TEXT, "cross_attention_layers": [1]},
        "vision_config": {
            **VISION, "num_hidden_layers": 2, "num_global_layers": 1, "attention_heads": 2, "image_size": 8,
            "vision_output_dim": 32, "intermediate_layers_indices": [0], "max_num_tiles": 2,
            "supported_aspect_ratios": [[1, 1], [1, 2]],
        },
    },
    "qwen2_audio": {
        "text_config": QWEN2, "audio_config": {**EARS, "model_type": "qwen2_audio_encoder"},
        "audio_token_index": IMAGE_TOKEN,
    },
    "fast_vlm": {
        "text_config": QWEN2, **PLACEHOLDER, "projector_hidden_act": "relu",
        "vision_config": {
            "architecture": "fastvit_mci3", "hidden_size": 64,
            "model_args": {
                "inference_mode": True, "layers": [1, 2, 1, 1, 2], "embed_dims": [8, 16, 16, 32, 32],
                "mlp_ratios": [2, 1.5, 2, 2, 1], "downsamples": [False, True, False, False, False],
            },
        },
    },
    "perception_lm": {
        "text_config": LLAMA, **PLACEHOLDER, "projector_pooling_ratio": 2,
        "vision_config": {"architecture": "vit_pe_core_large_patch14_336", "model_args": PERCEPTION},
    },
    "perception_lm, without a class token": {
        "text_config": QWEN2, **PLACEHOLDER, "projector_pooling_ratio": 2, "vision_use_cls_token": False,
        "vision_config": {
            "architecture": "vit_pe_core_gigantic_patch14_448",
            "model_args": {
                **PERCEPTION, "init_values": 0.1, "ref_feat_shape": [3, 3], "use_post_transformer_norm": False,
                "mlp_ratio": 1.5,
            },
        },
    },
    "got_ocr2": {"text_config": QWEN2, **PLACEHOLDER, "vision_config": SAM},
    "got_ocr2, whole image": {
        "text_config": QWEN2, **PLACEHOLDER,
        "vision_config": {
            **SAM, "window_size": 0, "use_rel_pos": False, "use_abs_pos": False, "qkv_bias": False,
            "layer_norm_eps": 1e-3,
        },
    },
    "pp_chart2table": {"text_config": QWEN2, **PLACEHOLDER, "vision_config": SAM},
    "voxtral": {
        "text_config": LLAMA, "audio_config": {**EARS, "model_type": "voxtral_encoder"}, "audio_token_id": IMAGE_TOKEN,
    },
    "blip-2": {
        "text_config": OPT, "vision_config": VISION, "qformer_config": QFORMER, "num_query_tokens": 3,
        "image_token_index": IMAGE_TOKEN,
    },
    "blip-2, t5": {
        "text_config": T5, "vision_config": {**VISION, "qkv_bias": False, "hidden_act": "silu"},
        "qformer_config": QFORMER, "num_query_tokens": 3, "image_token_index": IMAGE_TOKEN,
    },
    "instructblip": {
        "text_config": LLAMA, "vision_config": VISION, "qformer_config": QFORMER, "num_query_tokens": 3,
        "image_token_index": IMAGE_TOKEN,
    },
    "instructblipvideo": {
        "text_config": OPT, "vision_config": VISION, "qformer_config": QFORMER, "num_query_tokens": 3,
        "video_token_index": IMAGE_TOKEN,
    },
    "blip": {
        "text_config": {**BERT, "layer_norm_eps": 1e-3, "hidden_act": "silu"}, "vision_config": VISION,
    },
    "pp_formulanet": {"text_config": MBART, "vision_config": FORMULA_VISION},
    "pp_formulanet, other settings": {
        "text_config": {**MBART, "scale_embedding": False, "activation_function": "relu"},
        "vision_config": {
            **FORMULA_VISION, "window_size": 0, "use_rel_pos": False, "qkv_bias": False, "hidden_act": "relu",
        },
    },
    "vision-encoder-decoder": {
        "encoder": {**VISION, "model_type": "vit"},
        "decoder": {**BERT, "model_type": "bert", **WRITER},
    },
    "vision-encoder-decoder, other settings": {
        "encoder": {
            **VISION, "model_type": "deit", "qkv_bias": False, "head_dim": 6, "hidden_act": "relu",
            "pooler_output_size": 12,
        },
        "decoder": {**MBART, "model_type": "trocr", "cross_attention_hidden_size": 16},
    },
    "vision-encoder-decoder, beit": {
        "encoder": {
            **VISION, "model_type": "beit", "use_relative_position_bias": True, "layer_scale_init_value": 0.5,
            "use_mask_token": True, "hidden_size": 32,
        },
        "decoder": {**MBART, "model_type": "bart"},
    },
    "vision-encoder-decoder, beit, shared": {
        "encoder": {
            **VISION, "model_type": "beit", "use_shared_relative_position_bias": True, "layer_scale_init_value": 0.0,
            "use_relative_position_bias": True, "use_absolute_position_embeddings": True, "use_mean_pooling": False,
        },
        "decoder": {**BERT, "model_type": "roberta", **WRITER, "pad_token_id": 1},
    },
    "vision-encoder-decoder, swin": {
        "encoder": {
            **SWIN, "model_type": "swin", "use_absolute_embeddings": True, "image_size": 12, "depths": [3],
            "window_size": 3,
        },
        "decoder": {**BERT, "model_type": "bert", **WRITER},
    },
    "vision-encoder-decoder, donut": {
        "encoder": {**SWIN, "model_type": "donut-swin", "qkv_bias": False, "hidden_act": "relu", "window_size": 2},
        "decoder": {**MBART, "model_type": "mbart"},
    },
    "vision-encoder-decoder, gpt2": {
        "encoder": {**VISION, "model_type": "vit"},
        "decoder": {**GPT2, "model_type": "gpt2", "add_cross_attention": True, "layer_norm_epsilon": 1e-2},
    },
    "pix2struct": {
        "text_config": {**PIX2STRUCT, "hidden_size": 16},
        "vision_config": {
            **PIX2STRUCT, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 3, "seq_len": 9,
            "patch_embed_hidden_size": 12, "layer_norm_eps": 1e-2,
        },
    },
    "musicflamingo": {
        "text_config": QWEN2, "audio_config": {**EARS, "model_type": "audioflamingo3_encoder"},
        "audio_token_id": IMAGE_TOKEN, "projector_hidden_act": "silu", "audio_frame_step": 2.0,
    },
    "kosmos-2": {"text_config": KOSMOS, "vision_config": VISION, "latent_query_num": 3},
    "kosmos-2.5": {
        "text_config": {**KOSMOS, "pad_token_id": 2, "scale_embedding": False}, "latent_query_num": 3,
        "vision_config": {
            "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 3, "head_dim": 6, "intermediate_size": 20,
            "max_num_patches": 9, "patch_embed_hidden_size": 12, "layer_norm_eps": 1e-2, "dense_act_fn": "silu",
        },
    },
    "granite_speech": {
        "text_config": {**TEXT, "model_type": "granite", "embedding_multiplier": 3.0}, **GRANITE_SPEECH,
        "encoder_config": GRANITE_EARS, "projector_config": {**GRANITE_QFORMER, "encoder_hidden_size": 16},
    },
    "granite_speech, one layer": {
        "text_config": QWEN2, **GRANITE_SPEECH, "encoder_config": {**GRANITE_EARS, "num_layers": 1},
        "projector_config": {**GRANITE_QFORMER, "encoder_hidden_size": 16, "use_qformer_text_input": True},
    },
    "granite_speech_plus": {
        "text_config": LLAMA, **GRANITE_SPEECH, "encoder_config": {**GRANITE_EARS, "cat_hidden_layers": [2, 0, 3]},
        "projector_config": {**GRANITE_QFORMER, "encoder_hidden_size": 64},
    },
    "voxtral_realtime": {
        "text_config": {**TEXT, "sliding_window": 6}, "default_num_delay_tokens": 3, "downsample_factor": 2,
        "projector_hidden_act": "silu", "tie_word_embeddings": False,
        "audio_config": {
            "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 6, "num_mel_bins": 10,
            "intermediate_size": 20, "sliding_window": 5, "rms_norm_eps": 1e-2, "hidden_act": "relu",
        },
    },
    "kyutai_speech_to_text": {**MOSHI, "codec_config": MIMI},
    "kyutai_speech_to_text, other settings": {
        **MOSHI, "num_codebooks": 5, "num_key_value_heads": 2, "hidden_act": "gelu", "rms_norm_eps": 1e-2,
        "tie_word_embeddings": True, "audio_bos_token_id": 7, "rope_parameters": {"rope_theta": 500.0},
        "codec_config": {
            **MIMI, "num_quantizers": 5, "num_semantic_quantizers": 2, "pad_mode": "replicate", "hidden_act": "silu",
            "num_residual_layers": 2, "dilation_growth_rate": 3, "codebook_dim": 16,
            "vector_quantization_hidden_dimension": 16, "attention_bias": True, "norm_eps": 1e-2, "head_dim": 6,
            "num_key_value_heads": 1, "decoder_config": None,
        },
    },
    "vibevoice_asr": {
        "text_config": QWEN2, "audio_token_id": IMAGE_TOKEN, "acoustic_tokenizer_chunk_size": 48,
        "acoustic_tokenizer_encoder_config": {**VIBEVOICE, "hidden_size": 10},
        "semantic_tokenizer_encoder_config": {**VIBEVOICE, "hidden_size": 12, "kernel_size": 5, "hidden_act": "silu"},
    },
    "fun_asr_nano": {
        "text_config": {**TEXT, "model_type": "qwen3"}, "audio_token_id": IMAGE_TOKEN,
        "audio_config": {
            "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 20, "num_hidden_layers": 5,
            "num_timestamp_prediction_layers": 2, "num_mel_bins": 5, "num_stacked_frames": 2, "fsmn_kernel_size": 5,
            "layer_norm_eps": 1e-2, "hidden_act": "silu",
        },
        "adaptor_config": {
            "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 8, "num_hidden_layers": 2,
            "layer_norm_eps": 1e-3, "hidden_act": "gelu", "projector_hidden_act": "silu", "projector_hidden_size": 14,
        },
    },
    "audioflamingo3": {
        "text_config": QWEN2, "audio_config": {**EARS, "model_type": "audioflamingo3_encoder"},
        "audio_token_id": IMAGE_TOKEN, "projector_hidden_act": "silu", "projector_bias": False,
    },
    "moss_transcribe_diarize": {
        "text_config": {**TEXT, "model_type": "qwen3"}, "audio_config": {**EARS, "model_type": "whisper"},
        "audio_token_id": IMAGE_TOKEN, "audio_merge_size": 4,
    },
    "llava_next": {"text_config": LLAMA, "vision_config": CLIP, **PLACEHOLDER, **ONE_TILE},
    "llava_next_video": {"text_config": LLAMA, "vision_config": CLIP, **PLACEHOLDER, **ONE_TILE},
    "llava_next_video, convolution": {
        "text_config": LLAMA, "vision_config": CLIP, **PLACEHOLDER, **ONE_TILE, "spatial_pool_mode": "conv",
    },
    "llava_onevision": {"text_config": QWEN2, "vision_config": SIGLIP, **PLACEHOLDER, **ONE_TILE},
    "vipllava": {
        "text_config": LLAMA, "vision_config": CLIP, **PLACEHOLDER, "vision_feature_layer": [-1, 1, -3],
        "projector_layernorm_eps": 1e-2,
    },
    "video_llava": {"text_config": LLAMA, "vision_config": CLIP, **PLACEHOLDER, "projector_hidden_act": "silu"},
    "aya_vision": {
        "text_config": COHERE2, "vision_config": {**SIGLIP, "image_size": 16}, **PLACEHOLDER,
        "vision_feature_layer": -2, "adapter_layer_norm_eps": 1e-2,
    },
    "cohere2_vision": {
        "text_config": COHERE2, "vision_config": {**SIGLIP, "image_size": 16}, **PLACEHOLDER,
        "alignment_intermediate_size": 24,
    },
    "lighton_ocr": {"text_config": {**TEXT, "model_type": "qwen3"}, "vision_config": PIXTRAL, **PLACEHOLDER},
    "ernie4_5_vl_moe": {
        "text_config": {
            **TEXT, "num_hidden_layers": 3, "moe_num_experts": 8, "moe_k": 3, "moe_intermediate_size": [12, 20],
            "rope_parameters": {"rope_type": "default", "rope_theta": 300.0, "mrope_section": [1, 1, 2]},
            "use_bias": True,
        },
        **PLACEHOLDER, "vision_config": {
            **VISION, "depth": 3, "num_heads": 2, "spatial_merge_size": 2, "rms_norm_eps": 1e-3, "hidden_act": "silu",
        },
    },
    "exaone4_5": {
        "text_config": {**TEXT, "model_type": "exaone4", "sliding_window": 5, "sliding_window_pattern": 2},
        **PLACEHOLDER,
        "vision_config": {
            **QWEN_VISION, "hidden_size": 16, "intermediate_size": 20, "out_hidden_size": 32, "window_size": 16,
            "fullatt_block_indexes": [1], "num_key_value_heads": 1,
        },
    },
    "hyperclovax_vision_v2": {
        "text_config": {**TEXT, "model_type": "hyperclovax", "logits_scaling": 0.5}, **PLACEHOLDER,
        "vision_config": {
            **QWEN_VISION, "hidden_size": 16, "intermediate_size": 20, "out_hidden_size": 24, "window_size": 16,
            "fullatt_block_indexes": [1], "model_type": "qwen2_5_vl",
        },
    },
    "lfm2_vl": {
        "text_config": {**TEXT, "model_type": "lfm2", "conv_L_cache": 3, "full_attn_idxs": [1]},
        "vision_config": {**VISION, "model_type": "siglip2_vision_model", "num_patches": 25}, **PLACEHOLDER,
        "projector_hidden_size": 24, "projector_hidden_act": "silu",
    },
    "deepseek_vl": {"text_config": LLAMA, "vision_config": SIGLIP, **PLACEHOLDER},
    "janus": {
        "text_config": LLAMA, "vision_config": {**VISION, "mlp_ratio": 1.25, "projection_dim": 32, "depth": 3},
        "vq_config": VQ_VAE, **PLACEHOLDER,
    },
    "florence2": {
        "text_config": BART, "vision_config": DAVIT, **PLACEHOLDER,
    },
    "florence2, other settings": {
        "text_config": {**BART, "tie_word_embeddings": False, "scale_embedding": True, "activation_function": "relu"},
        "vision_config": {
            **DAVIT, "patch_prenorm": [True, False], "activation_function": "silu", "patch_padding": [2, 0],
            "patch_size": [5, 1], "qkv_bias": False,
        },
        **PLACEHOLDER,
    },
    "idefics": {
        **QWEN_TEXT, "vocab_size": 90, "additional_vocab_size": 8, "alpha_type": "vector", "qk_layer_norms": True,
        "use_resampler": True, "vision_config": {**VISION, "embed_dim": 16, "hidden_act": "silu"},
        "perceiver_config": {
            "resampler_depth": 2, "resampler_n_heads": 2, "resampler_head_dim": 6, "resampler_n_latents": 5,
            "qk_layer_norms_perceiver": True,
        },
    },
    "idefics, other settings": {
        **QWEN_TEXT, "num_hidden_layers": 4, "cross_layer_interval": 2, "hidden_act": "gelu",
        "tie_word_embeddings": True, "vision_config": {**VISION, "embed_dim": 16},
    },
    "molmo2": {
        "text_config": {**TEXT, "vocab_size": 90, "additional_vocab_size": 8, "rope_scaling_layers": [0]},
        "vision_config": {
            **MOLMO, "num_key_value_heads": 1, "image_size": [16, 24], "hidden_act": "silu", "num_hidden_layers": 3,
            "patch_size": 4, "layer_norm_eps": 1e-3,
        },
        "adapter_config": {
            **MOLMO, "num_key_value_heads": 1, "text_hidden_size": 32, "vision_feature_layer": [2, -3],
        },
        "image_patch_id": IMAGE_TOKEN,
    },
    "molmo2, other settings": {
        "text_config": {
            **TEXT, "additional_vocab_size": 0, "qk_norm_type": "olmo", "norm_after": True, "qkv_bias": True,
            "rope_parameters": {"rope_type": "linear", "factor": 3.0, "rope_theta": 300.0}, "rope_scaling_layers": [1],
        },
        "vit_config": {
            **MOLMO, "num_key_value_heads": 2, "image_num_pos": 24, "num_hidden_layers": 3, "image_patch_size": 4,
        },
        "adapter_config": {
            **MOLMO, "num_key_value_heads": 2, "text_hidden_size": 32, "vit_layers": [1],
            "mlp_bias": True, "attention_bias": False, "hidden_act": "gelu",
        },
        "image_patch_id": IMAGE_TOKEN,
    },
    "emu3": {
        "text_config": {**MLLAMA_TEXT, "pad_token_id": 0},
        "vq_config": {
            "codebook_size": 24, "embed_dim": 4, "latent_channels": 4, "base_channels": 32,
            "channel_multiplier": [1, 2], "num_res_blocks": 1, "attn_resolutions": [1], "hidden_size": 64,
            "num_attention_heads": 2,
        },
        "vocabulary_map": {
            "<image>": IMAGE_TOKEN, "<|extra_200|>": 7, **{f"<|visual token {i:06}|>": 90 - 2 * i for i in range(24)},
        },
    },
    "chameleon": {
        **QWEN_TEXT, "vq_config": {**VQ_VAE, "attn_resolutions": [8], "resolution": 8},
        "vocabulary_map": {
            "<image>": IMAGE_TOKEN,
            **{f"IMGIMG{'ABC'[i // 10]}{'ABCDEFGHIJ'[i % 10]}Z": 90 - i for i in range(24)},
        },
    },
    "chameleon, other settings": {
        **QWEN_TEXT, "swin_norm": True, "hidden_act": "gelu", "attention_bias": True, "mlp_bias": True,
        "vq_config": {**VQ_VAE, "attn_type": "none", "num_res_blocks": 2, "num_embeddings": 10},
        "vocabulary_map": {
            "<image>": IMAGE_TOKEN, **{f"IMGIMG{letter}Z": 80 - i for i, letter in enumerate("ABCDEFGHIJ")},
        },
    },
    "aria": {
        "text_config": {
            **TEXT, "model_type": "aria_text", "moe_num_experts": 4, "moe_topk": 2, "moe_num_shared_experts": 1,
        },
        "vision_config": {**VISION, "model_type": "idefics3_vision"}, **PLACEHOLDER,
        "projector_patch_to_query_dict": {"9": 5},
    },
    "idefics2": {
        "text_config": {**TEXT, "model_type": "mistral", "sliding_window": None},
        "vision_config": {**VISION, "image_size": 12}, **PLACEHOLDER,
        "perceiver_config": {
            "resampler_n_latents": 5, "resampler_depth": 2, "resampler_n_heads": 4, "num_key_value_heads": 2,
            "resampler_head_dim": 6, "hidden_size": 32, "rms_norm_eps": 1e-2, "hidden_act": "gelu",
        },
    },
    "lfm3_vl": {
        "text_config": {
            **{key: value for key, value in TEXT.items() if key != "rope_theta"}, "model_type": "lfm3",
            "layer_types": ["conv", "full_attention"],
            "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 300.0}},
        },
        **PLACEHOLDER,
        "vision_config": {
            **VISION, "num_key_value_heads": 1, "layer_types": ["conv", "full_attention", "conv"], "norm_eps": 1e-2,
        },
        "projector_hidden_size": 24,
    },
    "minimax_m3_vl": {
        "text_config": {
            **TEXT, "num_hidden_layers": 3, "head_dim": 16, "intermediate_size": 14, "dense_intermediate_size": 44,
            "shared_intermediate_size": 18, "num_local_experts": 8, "num_experts_per_tok": 3,
            "layer_types": ["minimax_m3_sparse", "full_attention", "minimax_m3_sparse"],
            "mlp_layer_types": ["dense", "sparse", "sparse"], "index_n_heads": 2, "index_head_dim": 12,
            "index_block_size": 2, "index_topk_blocks": 3, "swiglu_limit": 0.2,
            "rope_parameters": {"rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": 0.5},
        },
        **PLACEHOLDER, "projector_hidden_size": 24, "vision_config": {**VISION, "num_attention_heads": 1},
    },
    "dots3_note": {
        "text_config": {
            **TEXT, "num_hidden_layers": 3, "num_key_value_heads": 4, "q_lora_rank": 20, "kv_lora_rank": 16,
            "qk_nope_head_dim": 12, "qk_rope_head_dim": 6, "v_head_dim": 8, "head_dim": 18, "n_routed_experts": 8,
            "num_experts_per_tok": 3, "moe_intermediate_size": 12, "shared_experts_intermediate_size": 15,
            "layer_types": ["full_attention", "sliding_attention", "full_attention"], "sliding_window": 5,
            "swa_num_attention_heads": 2, "swa_num_key_value_heads": 2, "swa_q_lora_rank": 22, "swa_kv_lora_rank": 26,
            "swa_qk_nope_head_dim": 8, "swa_qk_rope_head_dim": 4, "swa_head_dim": 12, "swa_v_head_dim": 9,
            "pad_token_id": 0, "index_n_heads": 16, "index_head_dim": 18, "index_topk": 4,
        },
        **PLACEHOLDER, "audio_token_id": SOUND_TOKEN,
        "vision_config": {
            "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 20,
            "patch_size": 4, "moe_intermediate_size": 16, "pyramid_num_routed": [-1, 4, 6], "num_experts_per_tok": 3,
            "router_scaling_factor": 1.7, "rms_norm_eps": 1e-2, "hidden_act": "gelu", "attention_bias": True,
            "adapter_in_dim": 16, "adapter_out_dim": 32, "rope_parameters": {"rope_theta": 50.0},
        },
        "audio_config": {
            "whisper_config": {
                "d_model": 16, "encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 20,
                "num_mel_bins": 12,
            },
            "downsample_hidden_size": 6, "hidden_act": "gelu", "adapter_input_size": 16, "adapter_out_dim": 32,
            "rope_parameters": {"rope_type": "default", "rope_theta": 50.0, "partial_rotary_factor": 0.5},
        },
    },
    "step3p7": {
        "text_config": {
            **TEXT, "num_hidden_layers": 3, "num_sliding_attention_heads": 6, "sliding_window": 3, "pad_token_id": 0,
            "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
            "mlp_layer_types": ["dense", "sparse", "sparse"], "moe_intermediate_size": 14, "share_expert_dim": 18,
            "n_routed_experts": 8, "num_experts_per_tok": 3, "moe_router_scaling_factor": 1.7, "rms_norm_eps": 1e-2,
            "query_pre_attn_scalar": 20, "swiglu_limits": [0, 0.1, 0], "swiglu_limits_shared": [0.1, 0, 0.05],
            "rope_theta": [300.0, 70.0, 70.0], "partial_rotary_factors": [0.5, 1.0, 1.0],
            "rope_scaling": {
                "rope_type": "llama3", "factor": 2.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16,
            },
        },
        **PLACEHOLDER, "projector_bias": True,
        "vision_config": {
            **VISION, "mlp_ratio": 1.3, "hidden_act": "gelu", "rope_parameters": {"rope_theta": 50.0},
        },
    },
    "granite4_vision": {
        "text_config": {
            **TEXT, "embedding_multiplier": 3.0, "attention_multiplier": 0.2, "residual_multiplier": 0.4,
            "logits_scaling": 2.0, "num_hidden_layers": 4,
        },
        **PLACEHOLDER, **ONE_TILE, "downsample_rate": "2/4", "deepstack_layer_map": [[-2, 0], [1, 2]],
        "spatial_vision_layer": 2, "spatial_target_layers": [1, 2, 9, 3],
        "vision_config": {**CLIP, "hidden_size": 128, "image_size": 16, "patch_size": 2},
        "qformer_config": {
            "num_hidden_layers": 3, "intermediate_size": 20, "hidden_act": "relu", "layer_norm_eps": 1e-2,
        },
    },
    "granite_docling": {
        "text_config": {
            **TEXT, "embedding_multiplier": 3.0, "attention_multiplier": 0.2, "residual_multiplier": 0.4,
            "logits_scaling": 2.0, "num_hidden_layers": 3,
        },
        **PLACEHOLDER, "density_router_hidden_size": 12,
        "vision_config": {
            **VISION, "image_size": 16, "out_hidden_size": 32, "scale_factor": 2, "deepstack_visual_indexes": [2, 0],
        },
    },
    "inkling_mm_model": {
        "text_config": {
            **TEXT, "swa_num_attention_heads": 6, "swa_num_key_value_heads": 3, "swa_head_dim": 12, "d_rel": 5,
            "sliding_window_size": 4, "rel_extent": 7, "layer_types": ["hybrid_sliding", "hybrid"],
            "conv_kernel_size": 3, "mlp_layer_types": ["dense", "sparse"], "moe_intermediate_size": 14,
            "n_routed_experts": 8, "num_experts_per_tok": 3, "unpadded_vocab_size": 90,
        },
        "vision_config": {"patch_size": 4, "num_hidden_layers": 5},
        "audio_config": {"n_mel_bins": 3, "mel_vocab_size": 7},
        "image_token_id": IMAGE_TOKEN, "audio_token_id": 94,
    },
    "nemotron_h_omni": {
        "text_config": {
            "vocab_size": 96, "hidden_size": 32, "layer_types": ["linear_attention", "moe", "full_attention", "mlp"],
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 44,
            "mamba_num_heads": 4, "mamba_head_dim": 8, "n_groups": 2, "ssm_state_size": 6, "chunk_size": 4,
            "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12,
            "moe_shared_expert_intermediate_size": 20, "num_nextn_predict_layers": 1,
            "pad_token_id": None, "bos_token_id": None, "eos_token_id": None,
        },
        **PLACEHOLDER, "projector_hidden_size": 24, "vision_hidden_size": 16, "audio_token_id": 94,
        "vision_config": {
            "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "mlp_ratio": 1.5, "patch_size": 4,
            "max_img_size": 20, "video_temporal_patch_size": 2, "layer_norm_eps": 1e-3, "hidden_act": "silu",
        },
        "audio_config": {
            "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20,
            "num_mel_bins": 16, "subsampling_conv_channels": 6, "conv_kernel_size": 5, "projection_hidden_size": 14,
            "projection_bias": True, "scale_input": True,
        },
    },
    "muse_glimmer": {
        "text_config": {
            **{key: value for key, value in TEXT.items() if key != "rope_theta"}, "num_hidden_layers": 3,
            "layer_types": ["full_attention", "sliding_attention", "full_attention"], "sliding_window": 5,
            "layer_rope_theta": [0, 300.0, 300.0], "final_logit_softcapping": 5.0, "post_norm_eps": 1e-3,
            "rope_parameters": {"rope_type": "default", "rope_theta": 300.0},
        },
        **PLACEHOLDER, "out_hidden_size": 64, "projector_hidden_size": 24,
        "vision_config": {
            **VISION, "pos_emb_height": 3, "pos_emb_width": 3,
            "layer_types": ["window_attention", "full_attention", "window_attention"],
        },
    },
    "muse_spark": {**MUSE_SPARK, "image_token_id": IMAGE_TOKEN, "audio_token_id": 94},
    "muse_spark, sound": {**MUSE_SPARK, "image_token_id": 94, "audio_token_id": IMAGE_TOKEN},
    "kimi_k25": {
        "text_config": {
            **DEEPSEEK, "n_group": 1, "topk_group": 1, "n_routed_experts": 4, "num_experts_per_tok": 2,
            "moe_intermediate_size": 12, "first_k_dense_replace": 1,
        },
        **PLACEHOLDER, "projection_hidden_size": 16, "projection_layer_norm_eps": 1e-2,
        "vision_config": {**VISION, "pos_emb_height": 5, "pos_emb_width": 5},
    },
    "fuyu": {"text_config": {**TEXT, "model_type": "persimmon"}, "patch_size": 4, **PLACEHOLDER},
    "llama4": {
        "text_config": {
            **TEXT, "num_hidden_layers": 4, "intermediate_size_mlp": 40, "num_local_experts": 8,
            "num_experts_per_tok": 1, "attention_chunk_size": 4, "interleave_moe_layer_step": 2,
        },
        "vision_config": {
            **VISION, "image_size": 16, "intermediate_size": 64, "projector_input_dim": 20, "projector_output_dim": 20,
            "vision_output_dim": 20, "rope_theta": 50.0,
        },
        **PLACEHOLDER,
    },
    "qwen2_vl": {"text_config": {**QWEN_TEXT, "rope_scaling": SECTIONS}, **PLACEHOLDER, "vision_config": QWEN_VISION},
    "qwen2_5_vl": {
        "text_config": {**QWEN_TEXT, "rope_scaling": SECTIONS}, **PLACEHOLDER,
        "vision_config": {
            **QWEN_VISION, "hidden_size": 16, "intermediate_size": 20, "out_hidden_size": 32, "window_size": 16,
            "fullatt_block_indexes": [1],
        },
    },
    "qwen3_vl": {
        "text_config": {**TEXT, "rope_scaling": {**SECTIONS, "mrope_interleaved": True}}, **PLACEHOLDER,
        "vision_config": QWEN3_VISION,
    },
    "cohere_compass": {
        "text_config": {
            **QWEN_TEXT, "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 4,
            "logit_scale": 0.5, "pad_token_id": 0, "rope_parameters": {
                "sliding_attention": SECTIONS, "full_attention": None,
            },
        },
        **PLACEHOLDER, "vision_config": QWEN3_VISION,
    },
    "qwen3_vl_moe": {
        "text_config": {
            **TEXT, "rope_scaling": {**SECTIONS, "mrope_interleaved": True}, "moe_intermediate_size": 14,
            "num_experts": 8, "num_experts_per_tok": 3, "mlp_only_layers": [1],
        },
        **PLACEHOLDER, "vision_config": QWEN3_VISION,
    },
    "glm4v": {"text_config": {**QWEN_TEXT, "rope_scaling": SECTIONS}, **PLACEHOLDER, "vision_config": GLM_VISION},
    "glm46v": {"text_config": {**QWEN_TEXT, "rope_scaling": SECTIONS}, **PLACEHOLDER, "vision_config": GLM_VISION},
    "glmga": {"text_config": {**QWEN_TEXT, "rope_scaling": SECTIONS}, **PLACEHOLDER, "vision_config": GLM_VISION},
    "glm4v_moe": {
        "text_config": {
            **TEXT, "rope_scaling": {**SECTIONS, "mrope_section": [1, 1], "partial_rotary_factor": 0.5},
            "moe_intermediate_size": 14, "n_routed_experts": 8, "num_experts_per_tok": 3, "first_k_dense_replace": 1,
        },
        **PLACEHOLDER, "vision_config": {**GLM_VISION, "attention_bias": True},
    },
    "glm5_next": {
        "text_config": {**GLM5_TEXT, "swiglu_limit": 0.2}, **PLACEHOLDER,
        "vision_config": {**GLM_VISION, "projection_intermediate_size": 24, "swiglu_limit": 0.1},
    },
    "glm_ocr": {
        "text_config": {**TEXT, "head_dim": 10, "rope_scaling": {**SECTIONS, "mrope_section": [2, 1, 2]}},
        **PLACEHOLDER, "vision_config": GLM_VISION,
    },
    "cosmos3_omni": {
        "text_config": {**TEXT, "rope_scaling": {**SECTIONS, "mrope_interleaved": True}}, **PLACEHOLDER,
        "vision_config": QWEN3_VISION,
    },
    "cosmos3_edge": {
        "text_config": {**TEXT, "rope_parameters": SECTIONS}, **PLACEHOLDER, "projector_hidden_size": 28,
        "vision_config": {**VISION, "num_patches": 9, "spatial_merge_size": 2},
    },
    **{
        name: {
            "text_config": DELTA, **PLACEHOLDER, "insert_layer_id": 1, "downsample_mode": "16x",
            "vision_config": {**VISION, "image_size": 20},
        }
        for name in ("minicpmv4_6", "minicpm_ocr")
    },
    "video_llama_3": {"text_config": QWEN2, "vision_config": VISION, **PLACEHOLDER},
    "paddleocr_vl": {
        "text_config": {**TEXT, "rope_parameters": SECTIONS, "use_bias": True}, **PLACEHOLDER,
        "vision_config": {**VISION, "spatial_merge_size": 2, "image_size": 20},
    },
    "glmasr": {
        "text_config": {**LLAMA, "rope_parameters": {"rope_type": "default", "rope_theta": 300.0}},
        "audio_token_id": IMAGE_TOKEN,
        "audio_config": {
            "model_type": "glmasr_encoder", "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": 64, "num_mel_bins": 10, "rope_parameters": {"rope_type": "default", "rope_theta": 50},
        },
    },
    "qwen3_asr": {
        "text_config": {**TEXT, "model_type": "qwen3"}, "audio_token_id": IMAGE_TOKEN,
        "audio_config": {
            **EARS, "model_type": "qwen3_asr_encoder", "output_dim": 32, "max_position_embeddings": 13,
            "downsample_hidden_size": 6, "activation_function": "silu",
        },
    },
    "qwen2_5_omni_thinker": OMNI_THINKER,
    "qwen2_5_omni": {
        "thinker_config": OMNI_THINKER, "talker_config": OMNI_TALKER,
        "token2wav_config": {"dit_config": OMNI_DIT, "bigvgan_config": OMNI_VOCODER},
    },
    "qwen3_omni_moe_thinker": QWEN3_OMNI_THINKER,
    "qwen3_omni_moe": {
        "thinker_config": QWEN3_OMNI_THINKER, "talker_config": QWEN3_OMNI_TALKER, "code2wav_config": CODE2WAV,
    },
    "qwen3_5": {"text_config": DELTA, **PLACEHOLDER, "vision_config": QWEN3_VISION},
    "qwen3_5_moe": {
        "text_config": {
            **DELTA, "moe_intermediate_size": 14, "shared_expert_intermediate_size": 18, "num_experts": 8,
            "num_experts_per_tok": 3,
        },
        **PLACEHOLDER, "vision_config": QWEN3_VISION,
    },
}  # fmt: skip


# Classes whose forward pass always needs an image.
ALWAYS_SEE = {
    "Blip2ForConditionalGeneration", "BlipForConditionalGeneration", "InstructBlipForConditionalGeneration",
    "InstructBlipVideoForConditionalGeneration", "Pix2StructForConditionalGeneration",
    "IdeficsForVisionText2Text", "Kosmos2ForConditionalGeneration", "VoxtralRealtimeForConditionalGeneration",
    "PI0ForConditionalGeneration", "PPFormulaNetForConditionalGeneration", "VisionEncoderDecoderModel",
    "KyutaiSpeechToTextForConditionalGeneration",
}  # fmt: skip
# Beginnings of classes whose encoder sees an image alone and whose decoder writes about it.
WRITERS = ("Pix2Struct", "PPFormulaNet", "VisionEncoderDecoder")


class Image(NamedTuple):
    """An input besides the text, and how many tokens stand for it."""

    shape: tuple[int, ...]
    n_tokens: int
    arrange: Arrange
    name: str = "pixels"
    n_frames: int = 0  # of a sound besides, which so many tokens stand for
    n_sound_tokens: int = 0


def arrange_one(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    return {"pixel_values": pixels[None]}


def arrange_with_question(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """InstructBLIP: the Q-Former reads the text too, here its first tokens."""
    return {"pixel_values": pixels[None], "qformer_input_ids": ids[:, :3]}


def arrange_with_places(patches: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Pix2Struct: patches of two rows, each after its row and its column."""
    import torch

    places = torch.tensor([[i // 3 + 1, i % 3 + 1] for i in range(len(patches))])
    return {"flattened_patches": torch.cat((places, patches), dim=1)[None]}


def arrange_with_mask(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """KOSMOS-2: which tokens stand for the image."""
    return {"pixel_values": pixels[None], "image_embeds_position_mask": (ids == IMAGE_TOKEN).long()}


def arrange_places_with_mask(patches: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """KOSMOS-2.5: the token before those of the image belongs to it too."""
    mask = (ids == IMAGE_TOKEN).long()
    mask[0, 2] = -1
    return {**arrange_with_places(patches, ids, sizes), "image_embeds_position_mask": mask}


def arrange_one_frame(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    return arrange_with_question(pixels[None], ids, sizes)


def arrange_in_frames(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """GIT: an image, or a video of equal frames."""
    return {"pixel_values": pixels.expand(1, len(sizes.frames), -1, -1, -1) if sizes.frames else pixels[None]}


def arrange_with_size(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    import torch

    return {"pixel_values": pixels[None], "image_sizes": torch.tensor([pixels.shape[1:]])}


def arrange_as_tiles(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """LLaVA-NeXT: an image without tiles besides the whole."""
    import torch

    return {"pixel_values": pixels[None, None], "image_sizes": torch.tensor([pixels.shape[1:]])}


def arrange_as_marked_tile(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Granite Docling: a page of one tile."""
    import torch

    return {"pixel_values": pixels[None, None], "pixel_attention_mask": torch.ones((1, 1), dtype=torch.bool)}


def arrange_as_page(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """NeoMME: patches with their channels last, and positions as its processor has them for a page."""
    from transformers.models.neomme.processing_neomme import NeoMMEProcessor

    side, n = sizes.patch_size, ids.shape[1]
    rows, columns = (size // side for size in pixels.shape[1:])
    patches = pixels.reshape(3, rows, side, columns, side).permute(1, 3, 2, 4, 0).reshape(rows * columns, -1)
    places = NeoMMEProcessor._image_positions(n, columns, device=ids.device)[:n]
    return {"pixel_values": patches, "position_ids": places.T[:, None]}


def arrange_as_parts(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Idefics, PerceptionLM: a list of parts per text."""
    return {"pixel_values": pixels[None, None]}


def arrange_as_patches(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Qwen: patches in squares that are merged later, an image in as many frames as a patch has."""
    import torch

    c = sizes.vision
    side, square, frames = c.patch_size, c.merge_size, c.n_frames
    channels, rows, columns = len(pixels), pixels.shape[1] // side, pixels.shape[2] // side
    grid = pixels.reshape(channels, rows // square, square, side, columns // square, square, side)
    patches = grid.permute(1, 4, 2, 5, 0, 3, 6)[:, :, :, :, :, None].expand(-1, -1, -1, -1, -1, frames, -1, -1)
    return {
        "pixel_values": patches.reshape(rows * columns, -1),
        "image_grid_thw": torch.tensor([[1, rows, columns]]),
        "mm_token_type_ids": (ids == IMAGE_TOKEN).int(),
    }


def arrange_in_grid(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Nemotron 3 Nano Omni: patches row by row, and how many rows and columns of them there are."""
    found = arrange_as_kimi(pixels, ids, sizes)
    return {"pixel_values": found["pixel_values"].flatten(1), "image_grid_hw": found["image_grid_thw"][:, 1:]}


def arrange_as_hunyuan(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Patches row by row."""
    found = arrange_as_kimi(pixels, ids, sizes)
    marks = (ids == IMAGE_TOKEN).int()
    return {**found, "pixel_values": found["pixel_values"].flatten(1), "mm_token_type_ids": marks}


def arrange_as_ernie(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Patches in squares that are merged later, and which tokens stand for them."""
    side, square = sizes.vision.patch_size, sizes.vision.merge_size
    channels, rows, columns = len(pixels), pixels.shape[1] // side, pixels.shape[2] // side
    grid = pixels.reshape(channels, rows // square, square, side, columns // square, square, side)
    patches = grid.permute(1, 4, 2, 5, 0, 3, 6).reshape(rows * columns, -1)
    marks = (ids == IMAGE_TOKEN).int()
    found = arrange_as_kimi(pixels, ids, sizes)
    return {**found, "pixel_values": patches, "mm_token_type_ids": marks, "moe_mm_token_type_ids": marks}


def arrange_as_squares(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Patches in squares that are merged later."""
    found = arrange_as_ernie(pixels, ids, sizes)
    return {key: found[key] for key in ("pixel_values", "image_grid_thw")}


def arrange_as_kimi(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Patches row by row, of one frame."""
    import torch

    side = sizes.vision.patch_size
    channels, rows, columns = len(pixels), pixels.shape[1] // side, pixels.shape[2] // side
    patches = pixels.reshape(channels, rows, side, columns, side).permute(1, 3, 0, 2, 4)
    return {
        "pixel_values": patches.reshape(rows * columns, channels, side, side),
        "image_grid_thw": torch.tensor([[1, rows, columns]]),
    }


def arrange_for_thinker(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Qwen's thinkers: patches in squares, and where each token stands in time, row and column.

    Only their generate() works out the places, if a token says that an image begins.
    """
    import torch

    side = sizes.vision.patch_size * sizes.vision.merge_size
    rows, columns = pixels.shape[1] // side, pixels.shape[2] // side
    start = int((ids[0] == IMAGE_TOKEN).nonzero()[0])
    before = torch.arange(start).expand(3, -1)
    down, across = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    image = torch.stack((torch.zeros(rows * columns, dtype=torch.long), down.flatten(), across.flatten())) + start
    n_after = ids.shape[1] - start - rows * columns
    after = torch.arange(n_after).expand(3, -1) + start + max(rows, columns)
    places = torch.cat((before, image, after), dim=1)[:, None]
    found = arrange_as_patches(pixels, ids, sizes)
    return {"pixel_values": found["pixel_values"], "image_grid_thw": found["image_grid_thw"], "position_ids": places}


def arrange_side_by_side(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """MiniCPM-V: patches row by row, as one strip."""
    import torch

    patches = arrange_as_kimi(pixels, ids, sizes)
    strip = patches["pixel_values"].permute(1, 2, 0, 3).flatten(2)
    return {"pixel_values": strip[None], "target_sizes": patches["image_grid_thw"][:, 1:].to(torch.int32)}


def arrange_with_channels_last(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Cosmos 3 Edge: patches in squares that are merged later, each with its channels last."""
    side, square = sizes.vision.patch_size, sizes.vision.merge_size
    channels, rows, columns = len(pixels), pixels.shape[1] // side, pixels.shape[2] // side
    grid = pixels.reshape(channels, rows // square, square, side, columns // square, square, side)
    patches = grid.permute(1, 4, 2, 5, 3, 6, 0).reshape(rows * columns, -1)
    found = arrange_as_kimi(pixels, ids, sizes)
    return {**found, "pixel_values": patches, "mm_token_type_ids": (ids == IMAGE_TOKEN).int()}


def arrange_in_rows(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """The same, of which the model merges squares later, or none."""
    import torch

    found = arrange_as_kimi(pixels, ids, sizes)
    if hasattr(sizes.vision, "merge_size"):
        return {**found, "mm_token_type_ids": (ids == IMAGE_TOKEN).int()}
    return {**found, "pixel_values": found["pixel_values"].flatten(1), "image_merge_sizes": torch.tensor([1])}


def arrange_as_rows_of_patches(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """SigLIP 2: patches row by row, each with its channels last."""
    import torch

    side = sizes.vision.patch_size
    channels, rows, columns = len(pixels), pixels.shape[1] // side, pixels.shape[2] // side
    patches = pixels.reshape(channels, rows, side, columns, side).permute(1, 3, 2, 4, 0)
    return {
        "pixel_values": patches.reshape(1, rows * columns, -1),
        "spatial_shapes": torch.tensor([[rows, columns]]),
        "pixel_attention_mask": torch.ones(1, rows * columns, dtype=torch.long),
    }


def arrange_as_frames_of_patches(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Patches row by row, each frame with its channels."""
    found = arrange_as_kimi(pixels, ids, sizes)
    patches = found["pixel_values"][:, None].expand(-1, sizes.vision.n_frames, -1, -1, -1)
    return {**found, "pixel_values": patches.reshape(len(patches), -1)}


def arrange_as_gemma4(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Patches, each with its channels last, and the column and the row of each; or frames."""
    import torch

    if not sizes.vision:
        frames = pixels[0].T[None, :, : 4 * sizes.audio.n_bands]
        return {"input_features": frames, "input_features_mask": torch.ones(frames.shape[:2], dtype=torch.bool)}
    side = sizes.vision.patch_size * getattr(sizes.vision, "n_pooled", 1)
    channels, rows, columns = len(pixels), pixels.shape[1] // side, pixels.shape[2] // side
    patches = pixels.reshape(channels, rows, side, columns, side).permute(1, 3, 2, 4, 0)
    down, across = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    places = torch.stack((across, down), dim=-1).reshape(1, -1, 2)
    return {"pixel_values": patches.reshape(1, rows * columns, -1), "image_position_ids": places}


def arrange_as_rows(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Fuyu: patches, each with its channels last."""
    return {"image_patches": pixels[None]}


def arrange_for_every_token(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """One image that all tokens look at."""
    import torch

    return {"pixel_values": pixels[None, None], "image_attention_mask": torch.ones((1, ids.shape[1], 1))}


def arrange_for_merging(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Inkling: both frames of each patch, with channels last."""
    patches = pixels.reshape(3, 4, 4, 6, 4).permute(1, 3, 2, 4, 0).reshape(24, 1, 4, 4, 3)
    return {"pixel_values": patches.repeat(1, 2, 1, 1, 1)}


def arrange_with_pooling(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Pixels of each patch, and the numbers of the four that become one vector."""
    import torch

    patches = pixels.reshape(3, 4, 4, 6, 4).permute(1, 3, 2, 4, 0).reshape(1, 24, 48)
    squares = torch.arange(24).reshape(2, 2, 3, 2).transpose(1, 2).reshape(6, 4)
    return {"pixel_values": patches, "image_token_pooling": squares, "image_grids": torch.tensor([[2, 3, 0, 0]])}


def arrange_as_audio(frames: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    import torch

    return {"input_features": frames.T[None], "input_features_mask": torch.ones(1, len(frames), dtype=torch.long)}


def arrange_with_input_mask(frames: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Fun-ASR-Nano: frames first."""
    import torch

    return {"input_features": frames[None], "input_features_mask": torch.ones(1, len(frames), dtype=torch.long)}


def arrange_as_frames(frames: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    return {"input_features": frames[None]}


def arrange_as_stream(frames: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    return {"input_features": frames.T[None]}


def arrange_for_robot(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """What one camera sees, the state of a robot, and noise instead of seven actions."""
    import torch

    return {
        "pixel_values": pixels[None, None],
        "pixel_attention_mask": torch.ones((1, 1), dtype=torch.bool),
        "attention_mask": torch.ones_like(ids),
        "state": torch.randn(1, sizes.d_robot_state),
        "noise": torch.randn(1, 7, sizes.d_action),
        "timestep": torch.tensor([0.3]),
    }


def arrange_as_sound(samples: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    return {"input_values": samples.T[None]}


def arrange_as_samples(samples: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Without the noise that VibeVoice adds to what it hears."""
    return {"input_values": samples.T[None], "sample": False}


def arrange_as_muse(pixels: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    """Patches with several frames, or samples if those are what the placeholders stand for."""
    if sizes.audio_token != IMAGE_TOKEN:
        return arrange_as_frames_of_patches(pixels, ids, sizes)
    n_samples = 6 * math.prod(sizes.audio.factors)
    return {"input_values": pixels.flatten()[None, :n_samples]}


def arrange_as_masked_audio(frames: Any, ids: Any, sizes: Any) -> dict[str, Any]:
    import torch

    return {"input_features": frames.T[None], "feature_attention_mask": torch.ones(1, len(frames), dtype=torch.long)}


IMAGES: Mapping[str, Image] = {
    "BlipForConditionalGeneration": Image((3, 12, 12), 0, arrange_one),
    "PPFormulaNetForConditionalGeneration": Image((3, 32, 32), 0, arrange_one),
    "VisionEncoderDecoderModel": Image((3, 12, 12), 0, arrange_one),
    "Pix2StructForConditionalGeneration": Image((6, 12), 0, arrange_with_places, "flattened_patches"),
    "MusicFlamingoForConditionalGeneration": Image((16, 10), 4, arrange_as_audio, "log_mel_frames"),
    "Kosmos2ForConditionalGeneration": Image((3, 12, 12), 3, arrange_with_mask),
    "Kosmos2_5ForConditionalGeneration": Image((6, 12), 3, arrange_places_with_mask, "flattened_patches"),
    "Blip2ForConditionalGeneration": Image((3, 12, 12), 3, arrange_one),
    "InstructBlipForConditionalGeneration": Image((3, 12, 12), 3, arrange_with_question),
    "InstructBlipVideoForConditionalGeneration": Image((3, 12, 12), 3, arrange_one_frame),
    "LlavaForConditionalGeneration": Image((3, 12, 12), 9, arrange_one),
    "LlavaNextForConditionalGeneration": Image((3, 12, 12), 10, arrange_as_tiles),
    "LlavaNextVideoForConditionalGeneration": Image((3, 12, 12), 10, arrange_as_tiles),
    "LlavaOnevisionForConditionalGeneration": Image((3, 12, 12), 10, arrange_as_tiles),
    "VipLlavaForConditionalGeneration": Image((3, 12, 12), 9, arrange_one),
    "VideoLlavaForConditionalGeneration": Image((3, 12, 12), 9, arrange_one),
    "AyaVisionForConditionalGeneration": Image((3, 16, 16), 4, arrange_one),
    "Cohere2VisionForConditionalGeneration": Image((3, 16, 16), 4, arrange_one),
    "LightOnOcrForConditionalGeneration": Image((3, 16, 24), 6, arrange_with_size),
    "Exaone4_5_ForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "HyperCLOVAXVisionV2ForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Lfm2VlForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_rows_of_patches),
    "HunYuanVLForConditionalGeneration": Image((3, 16, 16), 8, arrange_as_hunyuan),
    "Ernie4_5_VLMoeForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_ernie),
    "DeepseekVLForConditionalGeneration": Image((3, 12, 12), 9, arrange_one),
    "JanusForConditionalGeneration": Image((3, 12, 12), 9, arrange_one),
    "Molmo2ForConditionalGeneration": Image((3, 16, 24), 6, arrange_with_pooling),
    "Florence2ForConditionalGeneration": Image((3, 32, 32), 17, arrange_one),
    "IdeficsForVisionText2Text": Image((3, 12, 12), 0, arrange_for_every_token),
    "Emu3ForConditionalGeneration": Image((3, 8, 8), 20, arrange_with_size),
    "ChameleonForConditionalGeneration": Image((3, 8, 8), 16, arrange_one),
    "AriaForConditionalGeneration": Image((3, 12, 12), 5, arrange_one),
    "Idefics2ForConditionalGeneration": Image((3, 12, 12), 5, arrange_as_parts),
    "Lfm3VlForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "MiniMaxM3SparseForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Dots3NoteForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_squares, n_frames=16, n_sound_tokens=2),
    "Step3p7ForConditionalGeneration": Image((3, 28, 28), 4, arrange_one),
    "Granite4VisionForConditionalGeneration": Image((3, 16, 16), 17, arrange_as_tiles),
    "GraniteDoclingForConditionalGeneration": Image((3, 16, 16), 4, arrange_as_marked_tile),
    "InklingForConditionalGeneration": Image((3, 16, 24), 24, arrange_for_merging),
    "NemotronH_Omni_Reasoning_V3": Image((3, 16, 24), 6, arrange_in_grid),
    "MuseGlimmerForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_frames_of_patches),
    "MuseSparkForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_muse),
    "PaliGemmaForConditionalGeneration": Image((3, 12, 12), 9, arrange_one),
    "PI0ForConditionalGeneration": Image((3, 12, 12), 9, arrange_for_robot),
    "Mistral3ForConditionalGeneration": Image((3, 16, 24), 6, arrange_with_size),
    "MistralLarge4ForConditionalGeneration": Image((3, 16, 24), 6, arrange_with_size),
    "Idefics3ForConditionalGeneration": Image((3, 16, 16), 4, arrange_as_parts),
    "NeoMMEForMaskedLM": Image((3, 8, 12), 6, arrange_as_page),
    "ModernVBertForMaskedLM": Image((3, 16, 16), 4, arrange_as_parts),
    "UltraVBertForMaskedLM": Image((3, 16, 16), 4, arrange_as_parts),
    "SmolVLMForConditionalGeneration": Image((3, 16, 16), 4, arrange_as_parts),
    "InternVLForConditionalGeneration": Image((3, 16, 16), 4, arrange_one),
    "QianfanOCRForConditionalGeneration": Image((3, 16, 16), 4, arrange_one),
    "Gemma3ForConditionalGeneration": Image((3, 16, 16), 4, arrange_one),
    "Gemma4ForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_gemma4),
    "Gemma4UnifiedForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_gemma4),
    "Kimi_K25ForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_kimi),
    "Llama4ForConditionalGeneration": Image((3, 16, 16), 4, arrange_one),
    "UnlimitedOcrForConditionalGeneration": Image((3, 32, 32), 7, arrange_one),
    "FastVlmForConditionalGeneration": Image((3, 64, 64), 16, arrange_one),
    "PerceptionLMForConditionalGeneration": Image((3, 56, 56), 4, arrange_as_parts),
    "GotOcr2ForConditionalGeneration": Image((3, 32, 32), 4, arrange_one),
    "GitForCausalLM": Image((3, 12, 12), 0, arrange_in_frames),
    "FuyuForCausalLM": Image((6, 48), 6, arrange_as_rows, "image_patches"),
    "Qwen2AudioForConditionalGeneration": Image((16, 10), 4, arrange_as_masked_audio, "log_mel_frames"),
    "VoxtralForConditionalGeneration": Image((16, 10), 2, arrange_as_audio, "log_mel_frames"),
    "FunAsrNanoForConditionalGeneration": Image((4, 10), 4, arrange_with_input_mask, "log_mel_frames"),
    "GraniteSpeechForConditionalGeneration": Image((7, 10), 3, arrange_as_frames, "log_mel_frames"),
    "GraniteSpeechPlusForConditionalGeneration": Image((7, 10), 3, arrange_as_frames, "log_mel_frames"),
    "VoxtralRealtimeForConditionalGeneration": Image((160, 10), 0, arrange_as_stream, "log_mel_frames"),
    "KyutaiSpeechToTextForConditionalGeneration": Image((492, 1), 0, arrange_as_sound, "samples"),
    "VibeVoiceAsrForConditionalGeneration": Image((24, 1), 4, arrange_as_samples, "samples"),
    "AudioFlamingo3ForConditionalGeneration": Image((16, 10), 4, arrange_as_audio, "log_mel_frames"),
    "MossTranscribeDiarizeForConditionalGeneration": Image((16, 10), 2, arrange_as_audio, "log_mel_frames"),
    "Qwen2VLForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Qwen2_5_VLForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Qwen3VLForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "CohereCompassForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Qwen3VLMoeForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Glm4vForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Glm46VForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Glm4vMoeForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Glm5NextForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "GlmOcrForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Cosmos3OmniForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Cosmos3EdgeForConditionalGeneration": Image((3, 16, 24), 6, arrange_with_channels_last),
    "MiniCPMV4_6ForConditionalGeneration": Image((3, 16, 32), 2, arrange_side_by_side),
    "MiniCPMOcrForConditionalGeneration": Image((3, 16, 32), 2, arrange_side_by_side),
    "VideoLlama3ForConditionalGeneration": Image((3, 16, 24), 24, arrange_in_rows),
    "PaddleOCRVLForConditionalGeneration": Image((3, 16, 24), 6, arrange_in_rows),
    "GlmAsrForConditionalGeneration": Image((16, 10), 2, arrange_as_audio, "log_mel_frames"),
    "Qwen3ASRForConditionalGeneration": Image((100, 10), 13, arrange_as_audio, "log_mel_frames"),
    "Qwen2_5OmniThinkerForConditionalGeneration": Image((3, 16, 24), 6, arrange_for_thinker),
    "Qwen2_5OmniForConditionalGeneration": Image((3, 16, 24), 6, arrange_for_thinker),
    "Qwen3OmniMoeThinkerForConditionalGeneration": Image((3, 16, 24), 6, arrange_for_thinker),
    "Qwen3OmniMoeForConditionalGeneration": Image((3, 16, 24), 6, arrange_for_thinker),
    "Qwen3_5ForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
    "Qwen3_5MoeForConditionalGeneration": Image((3, 16, 24), 6, arrange_as_patches),
}


def insert_placeholders(ids: Any, cls_name: str) -> Any:
    """Token ids with those that stand for an image after the third, and those for a sound two tokens later."""
    import torch

    if cls_name not in IMAGES:
        return ids
    image, sound = (
        torch.full((1, n), token)
        for n, token in ((IMAGES[cls_name].n_tokens, IMAGE_TOKEN), (IMAGES[cls_name].n_sound_tokens, SOUND_TOKEN))
    )
    ids = torch.where(ids == IMAGE_TOKEN, 3, ids)
    if IMAGES[cls_name].n_sound_tokens:
        ids = torch.where(ids == SOUND_TOKEN, 3, ids)
    return torch.cat((ids[:, :3], image, ids[:, 3:5], sound, ids[:, 5:]), dim=1)


def make_image(sizes: Any, cls_name: str, ids: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(arguments of the reference, inputs of the flow)."""
    import torch

    image = IMAGES[cls_name]
    values = torch.randn(image.shape)
    given, inputs = image.arrange(values, ids, sizes), {image.name: values.numpy()}
    if image.n_sound_tokens:
        frames = torch.randn(image.n_frames, sizes.audio.n_mels)
        lengths = torch.tensor([160 * image.n_frames])
        given |= {"input_features": frames.T[None], "chunk_sample_lengths": lengths}
        inputs["log_mel_frames"] = frames.numpy()
    elif "input_features" in given and image.name == "pixels":
        inputs = {"log_mel_frames": given["input_features"][0].numpy()}
    if "input_values" in given and image.name == "pixels":
        inputs = {"samples": given["input_values"].T.numpy()}
    if "image_embeds_position_mask" in given:
        mask = given["image_embeds_position_mask"][0].numpy()
        inputs["image_places"] = mask
        if cls_name.startswith("Kosmos2_5"):
            inputs["segments"] = abs(mask)
    if "moe_mm_token_type_ids" in given:
        inputs["tokens_of_images"] = given["moe_mm_token_type_ids"][0].numpy()
    if "flattened_patches" in given:
        places = given["flattened_patches"][0, :, :2].long().numpy()
        inputs |= {"patch_rows": places[:, 0], "patch_columns": places[:, 1]}
    if "image_token_pooling" in given:
        inputs["pooled_patches"] = given["image_token_pooling"].numpy()
    if "noise" in given:
        named = {"state": given["state"], "noisy_actions": given["noise"][0], "time": given["timestep"][:, None]}
        inputs |= {name: value.numpy() for name, value in named.items()}
    if "qformer_input_ids" in given:
        inputs["instruction_tokens"] = given["qformer_input_ids"][0].numpy()
    if hasattr(getattr(sizes, "language", None), "n_decoder_layers"):  # the same text for its encoder
        given, inputs = {"input_ids": ids, **given}, {"source_tokens": ids[0].numpy(), **inputs}
    return given, inputs
