"""The meaning of each size in words, and its config.json key."""

from __future__ import annotations

from paramcount.sizes import Sizes, get_key

MEANINGS = {
    "vocab_size": "vocabulary size",
    "target_vocab_size": "vocabulary size of the decoder",
    "d_model": "hidden size",
    "n_layers": "number of layers",
    "n_encoder_layers": "number of encoder layers",
    "n_decoder_layers": "number of decoder layers",
    "n_dense_layers": "number of leading dense layers (no experts)",
    "n_global_layers": "number of layers with global attention",
    "n_labels": "number of classifier labels",
    "d_projected": "dimension before the classifier",
    "n_mtp_layers": "number of multi-token-prediction layers",
    "n_heads": "number of attention heads",
    "n_encoder_heads": "number of encoder attention heads",
    "n_decoder_heads": "number of decoder attention heads",
    "n_kv_heads": "number of KV heads",
    "n_global_kv_heads": "number of KV heads with global attention",
    "n_sliding_heads": "number of sliding-window attention heads",
    "n_sliding_kv_heads": "number of sliding-window KV heads",
    "d_head": "head dimension",
    "d_encoder_head": "encoder head dimension",
    "d_decoder_head": "decoder head dimension",
    "d_global_head": "head dimension with global attention",
    "d_sliding_head": "head dimension with sliding-window attention",
    "d_ff": "MLP hidden size",
    "d_encoder_ff": "encoder MLP hidden size",
    "d_decoder_ff": "decoder MLP hidden size",
    "d_expert": "expert hidden size",
    "d_shared_expert": "shared-expert hidden size",
    "d_expert_latent": "latent dimension of the experts",
    "n_routed_experts": "number of routed experts",
    "n_active_experts": "number of experts per token",
    "n_shared_experts": "number of shared experts",
    "d_q_lora": "dimension of the compressed query latent",
    "d_kv_lora": "dimension of the compressed KV latent",
    "d_nope": "head dimension without rotary embedding",
    "d_rope": "head dimension with rotary embedding",
    "d_v": "value head dimension",
    "n_positions": "number of positions",
    "n_token_types": "number of token types",
    "n_buckets": "number of relative-position buckets",
    "d_embedding": "embedding dimension",
    "n_per_layer_rows": "vocabulary size of the per-layer embedding",
    "d_per_layer": "dimension of the per-layer embedding",
    "n_index_heads": "number of indexer heads",
    "d_index": "indexer head dimension",
    "n_streams": "number of residual streams",
    "d_inner": "mixer hidden size",
    "d_state": "state size per channel",
    "d_conv": "convolution kernel size",
    "dt_rank": "rank of the time-step projection",
    "n_mamba_heads": "number of mixer heads",
    "d_mamba_head": "mixer head dimension",
    "n_groups": "number of groups (heads that share B and C)",
    "n_linear_heads": "number of linear-attention heads",
    "d_linear_head": "linear-attention head dimension",
    "n_linear_k_heads": "number of linear-attention key heads",
    "n_linear_v_heads": "number of linear-attention value heads",
    "d_linear_k": "linear-attention key dimension",
    "d_linear_v": "linear-attention value dimension",
    "n_channels": "number of image channels",
    "patch_size": "patch size in pixels",
    "merge_size": "merge size in patches",
    "n_patches": "number of patches per image",
    "n_tiles": "number of tiles per image",
    "n_mels": "number of mel bands",
    "n_frames": "number of audio frames",
}


def describe_size(sizes: Sizes, path: str) -> tuple[str, str]:
    """The meaning of a size and its config.json key, or keys; "" if unknown or derived.

    >>> from paramcount.loading import load
    >>> describe_size(load("gpt2-small").sizes, "d_model")
    ('hidden size', 'hidden_size or n_embd')
    >>> describe_size(load("llama-3.2-11b-vision").sizes, "vision.d_ff")
    ('MLP hidden size', 'vision_config.intermediate_size')
    """
    name, _, rest = path.partition(".")
    if rest:
        return describe_size(getattr(sizes, name), rest)
    section = f"{sizes.section}." if sizes.section else ""
    spellings = get_key(type(sizes), name).spellings(name)
    keys = [key.removeprefix("/") if key[0] == "/" else section + key for key in spellings]
    return MEANINGS.get(name, ""), " or ".join(keys)
