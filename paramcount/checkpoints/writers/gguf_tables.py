"""The names and layouts of llama.cpp's converter, as data.

Source: conversion/ and gguf-py/gguf/tensor_mapping.py of llama.cpp as in llama-cpp-python 0.3.36; gguf 0.19.0.
Comments say where older converters differed.
"""

from __future__ import annotations

# {GGUF's name of a module in a layer: its names in models}. The longest matching suffix of a module's path decides:
# `q_proj` is attn_q in any module, but `shared_experts.up_proj` differs from `up_proj`. Endings are kept.
IN_LAYER = {
    "attn_norm": (
        "input_layernorm ln_1 ln_mlp norm norm_1 attention_norm attention_layernorm operator_norm layer.0.layer_norm"
    ),
    "attn_norm_2": "ln_attn",
    "attn_q": "q_proj self.query q_lin SelfAttention.q",
    "attn_k": "k_proj self.key k_lin SelfAttention.k",
    "attn_v": "v_proj self.value v_lin SelfAttention.v",
    "attn_qkv": "qkv_proj query_key_value c_attn Wqkv W_pack wqkv linear_attn.in_proj_qkv linear_attn.in_proj_qkvz",
    "attn_output": (
        "o_proj out_proj out_lin attention.wo attn.c_proj attention.dense self_attention.dense "
        "self_attn.dense attention.output.dense"
    ),
    "attn_rel_b": "SelfAttention.relative_attention_bias",
    "attn_gate": "self_attn.gate_proj self_attn.g_proj linear_attn.in_proj_z",
    "attn_q_norm": "q_norm self_attn.q_layernorm query_layernorm q_layernorm.norms.{head}",
    "attn_k_norm": "k_norm self_attn.k_layernorm key_layernorm k_layernorm.norms.{head}",
    "attn_sub_norm": "attn_sub_norm",
    "attn_output_norm": "attention.output.LayerNorm sa_layer_norm norm_attn_norm.norm_2",
    "post_attention_norm": "post_self_attn_layernorm",
    "attn_q_a": "q_a_proj",
    "attn_q_b": "q_b_proj",
    "attn_kv_a_mqa": "kv_a_proj_with_mqa",
    "attn_kv_b": "kv_b_proj",
    "attn_q_a_norm": "q_a_layernorm",
    "attn_kv_a_norm": "kv_a_layernorm",
    "indexer.k_norm": "indexer.k_norm",
    "indexer.proj": "indexer.weights_proj",
    "indexer.attn_k": "indexer.wk",
    "indexer.attn_q_b": "indexer.wq_b",
    "cross_attn_norm": "layer.1.layer_norm",
    "cross_attn_q": "EncDecAttention.q",
    "cross_attn_k": "EncDecAttention.k",
    "cross_attn_v": "EncDecAttention.v",
    "cross_attn_o": "EncDecAttention.o",
    "ffn_norm": (
        "post_attention_layernorm ln_2 norm_2 ffn_norm pre_ff_layernorm pre_mlp_layernorm pre_feedforward_layernorm "
        "feedforward_layernorm residual_layernorm layer.2.layer_norm"
    ),
    "ffn_sub_norm": "ffn_sub_norm",
    "post_ffw_norm": "post_feedforward_layernorm post_mlp_layernorm",
    "post_ffw_norm_1": "post_feedforward_layernorm_1",
    "post_ffw_norm_2": "post_feedforward_layernorm_2",
    "pre_ffw_norm_2": "pre_feedforward_layernorm_2",
    "layer_output_norm": "output.LayerNorm output_layer_norm",
    "ffn_up": (
        "up_proj gate_up_proj c_fc fc1 w3 dense_h_to_4h mlp.w1 intermediate.dense ffn.lin1 DenseReluDense.wi "
        "DenseReluDense.wi_1"
    ),
    "ffn_gate": "gate_proj w1 mlp.w2 DenseReluDense.wi_0",
    "ffn_down": "down_proj c_proj fc2 w2 dense_4h_to_h output.dense ffn.lin2 DenseReluDense.wo",
    "ffn_gate_inp": "gate router router.gate router.layer router.proj gate.wg",
    "ffn_gate_inp_shexp": "shared_expert_gate",
    "ffn_gate_exps": "experts.{expert}.gate_proj experts.{expert}.w1",
    "ffn_up_exps": "experts.{expert}.up_proj experts.{expert}.w3",
    "ffn_down_exps": "experts.{expert}.down_proj experts.{expert}.w2 block_sparse_moe.output_linear",
    "ffn_gate_up_exps": "block_sparse_moe.input_linear",
    "ffn_gate_shexp": "shared_expert.gate_proj shared_experts.gate_proj shared_mlp.gate_proj",
    "ffn_up_shexp": "shared_expert.up_proj shared_experts.up_proj shared_mlp.up_proj shared_mlp.input_linear",
    "ffn_down_shexp": "shared_expert.down_proj shared_experts.down_proj shared_mlp.down_proj shared_mlp.output_linear",
    "ffn_latent_down": "fc1_latent_proj",
    "ffn_latent_up": "fc2_latent_proj",
    "ssm_in": "mamba.in_proj mixer.in_proj",
    "ssm_conv1d": "conv1d",
    "ssm_conv1d_q": "q_conv1d",
    "ssm_conv1d_k": "k_conv1d",
    "ssm_conv1d_v": "v_conv1d",
    "ssm_x": "x_proj",
    "ssm_dt": "dt_proj",
    "ssm_dt_norm": "dt_layernorm",
    "ssm_b_norm": "b_layernorm",
    "ssm_c_norm": "c_layernorm",
    "ssm_norm": "mamba.norm mixer.norm linear_attn.norm self_attn.o_norm",
    "ssm_out": "mamba.out_proj mixer.out_proj linear_attn.out_proj",
    "ssm_alpha": "linear_attn.in_proj_a",
    "ssm_beta": "linear_attn.in_proj_b self_attn.b_proj",
    "ssm_ba": "linear_attn.in_proj_ba",
    "ssm_f_a": "f_a_proj",
    "ssm_f_b": "f_b_proj",
    "ssm_g_a": "g_a_proj",
    "ssm_g_b": "g_b_proj",
    "shortconv.conv": "conv.conv",
    "shortconv.in_proj": "conv.in_proj",
    "shortconv.out_proj": "conv.out_proj",
    "inp_gate": "per_layer_input_gate",
    "proj": "per_layer_projection",
    "post_norm": "post_per_layer_input_norm",
    "altup_router": "altup.modality_router",
    "altup_router_norm": "altup.router_norm",
    "altup_correct_coef": "altup.correction_coefs",
    "altup_predict_coef": "altup.prediction_coefs",
    "laurel_l": "laurel.linear_left",
    "laurel_r": "laurel.linear_right",
    "laurel_post_norm": "laurel.post_laurel_norm",
    "nextn.eh_proj": "eh_proj",
    "nextn.enorm": "enorm",
    "nextn.hnorm": "hnorm",
    "nextn.embed_tokens": "embed_tokens",
    "nextn.shared_head_head": "shared_head.head",
    "nextn.shared_head_norm": "shared_head.norm",
}
# The same for modules outside the layers.
OUTSIDE = {
    "token_embd": "embed_tokens word_embeddings wte embed_in shared tok_embeddings embeddings",
    "token_embd_norm": "embeddings.LayerNorm word_embeddings_layernorm embedding_norm",
    "token_types": "token_type_embeddings",
    "position_embd": "wpe position_embeddings",
    "output": "lm_head embed_out output output_layer",
    "output_norm": "norm ln_f norm_f final_layernorm final_layer_norm",
    "per_layer_token_embd": "embed_tokens_per_layer",
    "per_layer_model_proj": "per_layer_model_projection",
    "per_layer_proj_norm": "per_layer_projection_norm",
    "altup_proj": "altup_projections.{stream}",
    "altup_unembd_proj": "altup_unembed_projections.{stream}",
}
# The same for tensors in a layer that are not the weight or bias of a module, with their whole names.
PARAMETERS = {
    "ssm_a": "A_log",
    "ssm_d": "D",
    "ssm_dt.bias": "dt_bias",
    "attn_sinks.weight": "sinks attention_sink_bias",
    "exp_probs_b.bias": "e_score_correction_bias expert_bias",
    "ffn_gate_exps.weight": "experts.mlp.w1",
    "ffn_up_exps.weight": "experts.mlp.v1",
    "ffn_down_exps.weight": "experts.down_proj experts.mlp.w2",
    "ffn_down_exps.bias": "experts.down_proj_bias",
    "ffn_gate_up_exps.weight": "experts.gate_up_proj",
    "ffn_gate_up_exps.bias": "experts.gate_up_proj_bias",
    "ffn_gate_inp.scale": "router.scale",
    "ffn_down_exps.scale": "router.per_expert_scale",
    "altup_correct_scale.weight": "altup.correct_output_scale",
    "layer_output_scale.weight": "layer_scalar",
}
# Modules that the converter reads but does not write: heads for pretraining encoders, and activation constants, which
# become metadata.
DROPPED = ("cls", "pooler", "vocab_transform", "vocab_layer_norm", "vocab_projector", "act_fn")
HEADLESS = ("bert", "gemma", "gemma2")  # layouts whose LM head is not written, tied or not
WITHOUT_ENDING = {"falcon-h1": "ffn_norm"}  # a weight whose name has no ending
# Tensors that it adds, and their class: RoPE factors, which the reference computes.
ROPE_FACTORS = dict.fromkeys(("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"), "buffer")

# Matrices that are split: GGUF's name, layouts, names of the parts in order (adjacent parts with the same name stay
# together), and the name in files that do not split it.
SPLIT = (
    ("attn_qkv", "internlm2 baichuan", "attn_q attn_k attn_v", "attn_qkv"),
    (
        "attn_qkv",
        "qwen3next",
        "attn_qkv attn_qkv attn_qkv attn_gate",
        "ssm_in",  # in November 2025, llama.cpp #16095
    ),
    (
        "ffn_gate_up_exps",
        "glm4moe gpt-oss granitehybrid granitemoe llama4 qwen3vlmoe",
        "ffn_gate_exps ffn_up_exps",
        "ffn_gate_up_exps",
    ),
    ("ffn_up_shexp", "granite granitehybrid granitemoe", "ffn_gate_shexp ffn_up_shexp", "ffn_up_shexp"),
)
# Matrices that are fused on request: gate and up of experts (--fuse-gate-up-exps); queries, keys and values
# (--fuse-qkv, and Phi-2 as first published).
FUSED = (("ffn_gate_up_exps", ("ffn_gate_exps", "ffn_up_exps")), ("attn_qkv", ("attn_q", "attn_k", "attn_v")))
# Layouts that do not split MLA's kv_b. Before April 2025 (llama.cpp #12801), no layout did.
WHOLE_KV_B = ("minicpm3",)

CONV1D = ("gpt2",)  # layouts of models whose matrices are [in, out],
CONV1D_MATRICES = ("attn_qkv", "attn_output", "ffn_up", "ffn_down")  # and those matrices
# Layouts that write decays as [heads, 1] and norms as [groups, channels].
MAMBA2 = ("mamba2", "nemotron_h", "nemotron_h_moe", "granitehybrid", "falcon-h1")
WITHOUT_PADDING = ("gemma3", "gemma-embedding", "gemma4")  # layouts that drop the padding rows of the token embedding
MOST_PADDING_TOKENS = 256  # Gemma 3 has 64
