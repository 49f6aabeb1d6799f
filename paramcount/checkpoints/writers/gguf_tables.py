"""The names and layouts of llama.cpp's converter, as data.

Source: conversion/ and gguf-py/gguf/tensor_mapping.py of llama.cpp as in llama-cpp-python 0.3.36; gguf 0.19.0.
Comments say where older converters differed.
"""

from __future__ import annotations

# The names of modules are in gguf_modules.json: {GGUF's name: names in models} of modules in a layer, of those outside,
# and of tensors in a layer that are not the weight or bias of a module, with their whole names. The longest matching
# suffix of a module's path decides: `q_proj` is attn_q in any module, but `shared_experts.up_proj` differs from
# `up_proj`. Endings are kept.
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
