"""Names and shapes that writers of safetensors files use in place of the model's, as data.

Sources: transformers 5.23, conversion_mapping.py (its own names for released ones); for Meta's and Mistral's files
convert_mistral_weights_to_hf.py, convert_mistral3_weights_to_hf.py of transformers and mistralai/mistral-inference,
transformer_layers.py; for MLX ml-explore/mlx-lm, models/*.py, `sanitize`; for wrappers torch/_dynamo/eval_frame.py,
torch/distributed/fsdp and huggingface/peft, tuners/tuners_utils.py.
"""

from __future__ import annotations

# Words that a wrapper around a module adds to its path: torch.compile, FSDP, activation checkpointing, PEFT.
WRAPPERS = frozenset(
    ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "base_layer", "original_module")
)

# Matrices [out, in] over the same input that some writers fuse along the outputs.
FUSED = (
    ("qkv_proj", ("q_proj", "k_proj", "v_proj")),
    ("query_key_value", ("query", "key", "value")),
    ("gqkv_proj", ("gate_proj", "q_proj", "k_proj", "v_proj")),
    ("gate_up_proj", ("gate_proj", "up_proj")),
    ("conv1d", ("q_conv1d", "k_conv1d", "v_conv1d")),
)
# Matrices of experts that some writers fuse and stack into one tensor per layer: transformers,
STACKED_EXPERTS = (
    ("gate_up_proj", ("gate_proj", "up_proj")),
    ("gate_up_proj", ("w1", "w3")),
    ("up_proj", ("up_proj",)),
    ("down_proj", ("down_proj",)),
    ("down_proj", ("w2",)),
)
# and MLX, in `switch_mlp`.
MLX_EXPERTS = (
    ("gate_proj", ("gate_proj",)),
    ("gate_proj", ("w1",)),
    ("up_proj", ("up_proj",)),
    ("up_proj", ("w3",)),
    ("down_proj", ("down_proj",)),
    ("down_proj", ("w2",)),
)
# Pairs of names for the same module; a file may have either.
ALIASES = (
    (".LayerNorm.weight", ".LayerNorm.gamma"),
    (".LayerNorm.bias", ".LayerNorm.beta"),
    ("embed_out.", "lm_head."),
    ("language_model.lm_head.", "lm_head."),
    ("cls.", "head.decoder."),
    ("head.decoder.", "lm_head."),
    # Experts, routers and shared experts.
    (".block_sparse_moe.", ".mlp."),
    (".block_sparse_moe.gate.", ".mlp.router."),
    (".block_sparse_moe.router.layer.", ".block_sparse_moe.router."),
    (".block_sparse_moe.input_linear.weight", ".block_sparse_moe.experts.gate_up_proj"),
    (".block_sparse_moe.output_linear.weight", ".block_sparse_moe.experts.down_proj"),
    (".mlp.experts.fc1.weight", ".mlp.experts.gate_up_proj"),
    (".mlp.experts.fc2.weight", ".mlp.experts.down_proj"),
    (".mlp.router.gate.", ".mlp.gate."),
    (".mlp.e_score_correction_bias", ".mlp.gate.e_score_correction_bias"),
    (".mlp.experts.e_score_correction_bias", ".mlp.gate.e_score_correction_bias"),
    (".mlp.gate.expert_bias", ".mlp.gate.e_score_correction_bias"),
    (".mlp.expert_bias", ".mlp.e_score_correction_bias"),
    (".moe.router.expert_bias", ".mlp.gate.e_score_correction_bias"),
    (".mlp.moe_statics.", ".mlp.gate.moe_statics."),
    (".shared_expert.", ".shared_experts."),
    (".shared_mlp.", ".shared_experts."),
    # Attention and embeddings.
    (".self_attn.softmax_offset", ".self_attn.sinks"),
    (".self_attn.attention_sink_bias", ".self_attn.sinks"),
    (".self_attn.learnable_sink_param", ".self_attn.sinks"),
    (".self_attn.q_b_proj.", ".self_attn.q_gate_proj."),
    (".self_attn.", ".self_attn.forget_gate."),
    (".attn.", ".self_attn."),
    (".attention.", ".self_attn."),
    (".attention.", ".self_attn.forget_gate."),
    (".attention.dense.", ".self_attn.o_proj."),
    (".self_attn.to_q.", ".self_attn.q_proj."),
    (".self_attn.to_k.", ".self_attn.k_proj."),
    (".self_attn.to_v.", ".self_attn.v_proj."),
    (".self_attn.to_out.", ".self_attn.o_proj."),
    (".norm_q.", ".q_norm."),
    (".norm_k.", ".k_norm."),
    (".self_attn.q_layernorm.", ".self_attn.q_norm."),
    (".self_attn.k_layernorm.", ".self_attn.k_norm."),
    (".self_attn.index_q_", ".self_attn.indexer.q_"),
    (".self_attn.index_k_", ".self_attn.indexer.k_"),
    (".linear_gate.", ".gate_proj."),
    ("word_embeddings.", "embed_tokens."),
    # Norms and hyper-connections.
    (".post_mlp_layernorm.", ".mlp.post_mlp_layernorm."),
    (".post_attn_norm.", ".post_self_attn_layernorm."),
    (".post_ffn_norm.", ".post_mlp_layernorm."),
    ("layernorm.W_down.", "layernorm.mlp.fc1."),
    ("layernorm.W_up.", "layernorm.mlp.fc2."),
    (".hc_attn_", ".attn_hc."),
    (".hc_ffn_", ".ffn_hc."),
    (".hc_pre.hc_attn_layer.hc_", ".attn_hc."),
    (".hc_pre.hc_mlp_layer.hc_", ".ffn_hc."),
    (".hc_pre.hc_head.hc_head_", ".hc_head.hc_"),
    # Vision encoders and projectors.
    (".patchifier.", ".patch_embed."),
    (".embeddings.patch_embedding.", ".embeddings.proj."),
    (".patch_merge_mlp.linear_", ".multi_modal_projector.merge_linear_"),
    (".vision_projector.", ".projector."),
    ("embed_vision.embedding_projection.", "embed_vision.multimodal_embedder.embedding_projection."),
    # Meta's and Mistral's own, as in consolidated.safetensors.
    ("embed_tokens.", "tok_embeddings."),
    (".self_attn.q_proj.", ".attention.wq."),
    (".self_attn.k_proj.", ".attention.wk."),
    (".self_attn.v_proj.", ".attention.wv."),
    (".self_attn.o_proj.", ".attention.wo."),
    (".input_layernorm.", ".attention_norm."),
    (".post_attention_layernorm.", ".ffn_norm."),
    (".mlp.gate_proj.", ".feed_forward.w1."),
    (".mlp.down_proj.", ".feed_forward.w2."),
    (".mlp.up_proj.", ".feed_forward.w3."),
    (".block_sparse_moe.", ".feed_forward."),
    ("language_model.lm_head.", "output."),
    ("lm_head.", "output."),
    (".attention.q_proj.", ".attention.wq."),
    (".attention.k_proj.", ".attention.wk."),
    (".attention.v_proj.", ".attention.wv."),
    (".attention.o_proj.", ".attention.wo."),
    (".feed_forward.gate_proj.", ".feed_forward.w1."),
    (".feed_forward.down_proj.", ".feed_forward.w2."),
    (".feed_forward.up_proj.", ".feed_forward.w3."),
    ("multi_modal_projector.linear_1.", "vision_language_adapter.w_in."),
    ("multi_modal_projector.linear_2.", "vision_language_adapter.w_out."),
    ("multi_modal_projector.patch_merger.", "patch_merger."),
    ("multi_modal_projector.norm.", "pre_mm_projector_norm."),
)
