"""What the usual sizes mean, in words, and the key of config.json that each is read from."""

from __future__ import annotations

from paramcount.sizes import Sizes, get_key

MEANINGS = {
    "vocab_size": "rows of the token table",
    "target_vocab_size": "rows of the decoder's token table",
    "d_model": "width of a token's vector",
    "n_layers": "layers",
    "n_encoder_layers": "layers of the encoder",
    "n_decoder_layers": "layers of the decoder",
    "n_dense_layers": "first layers, without experts",
    "n_global_layers": "layers that see the whole image",
    "n_labels": "labels of the classifier",
    "d_projected": "dimension before the classifier",
    "n_mtp_layers": "layers for multi-token prediction",
    "n_heads": "attention heads",
    "n_encoder_heads": "attention heads of the encoder",
    "n_decoder_heads": "attention heads of the decoder",
    "n_kv_heads": "heads of keys and values",
    "n_global_kv_heads": "those of layers that see everything",
    "n_sliding_heads": "attention heads of sliding layers",
    "n_sliding_kv_heads": "heads of their keys and values",
    "d_head": "width of a head",
    "d_encoder_head": "width of a head of the encoder",
    "d_decoder_head": "width of a head of the decoder",
    "d_global_head": "that of layers that see everything",
    "d_sliding_head": "width of a head of sliding layers",
    "d_ff": "inner width of the MLP",
    "d_encoder_ff": "inner width of the encoder's MLP",
    "d_decoder_ff": "inner width of the decoder's MLP",
    "d_expert": "inner width of an expert",
    "d_shared_expert": "inner width of the shared expert",
    "d_expert_latent": "width that experts read and write",
    "n_routed_experts": "experts to choose from",
    "n_active_experts": "of them, those a token visits",
    "n_shared_experts": "experts that every token visits",
    "d_q_lora": "width of the queries' latent",
    "d_kv_lora": "width of the keys' and values' latent",
    "d_nope": "part of a head without positions",
    "d_rope": "part of a head that is rotated",
    "d_v": "width of a value head",
    "n_positions": "rows of the position table",
    "n_token_types": "rows of the table of token types",
    "n_buckets": "rows of the table of distances",
    "d_embedding": "width of the token table",
    "n_per_layer_rows": "rows of the table for each layer",
    "d_per_layer": "width of a layer's own vectors",
    "n_index_heads": "heads of the indexer",
    "d_index": "width of a head of the indexer",
    "n_streams": "residual streams",
    "d_inner": "inner width of the mixer",
    "d_state": "numbers of state a channel keeps",
    "d_conv": "tokens that a convolution sees",
    "dt_rank": "width that the step is made of",
    "n_mamba_heads": "heads of the mixer",
    "d_mamba_head": "width of a head of the mixer",
    "n_groups": "groups of heads that share B and C",
    "n_linear_heads": "heads of linear attention",
    "d_linear_head": "width of a head of linear attention",
    "n_linear_k_heads": "key heads of linear attention",
    "n_linear_v_heads": "value heads of linear attention",
    "d_linear_k": "width of a key of linear attention",
    "d_linear_v": "width of a value of linear attention",
    "n_channels": "colours of a pixel",
    "patch_size": "pixels along a patch",
    "merge_size": "patches along a merged one",
    "n_patches": "patches of an image",
    "n_tiles": "tiles of an image",
    "n_mels": "bands of a spectrum",
    "n_frames": "frames of sound",
}


def meaning(sizes: Sizes, path: str) -> tuple[str, str]:
    """(what a size means in words, the config.json key that it is read from, or several); each empty where nobody says.

    >>> from paramcount.zoo.names import load
    >>> meaning(load("gpt2-small").sizes, "d_model")
    ("width of a token's vector", 'hidden_size or n_embd')
    >>> meaning(load("llama-3.2-11b-vision").sizes, "vision.d_ff")
    ('inner width of the MLP', 'vision_config.intermediate_size')
    """
    name, _, rest = path.partition(".")
    if rest:
        return meaning(getattr(sizes, name), rest)
    keys = [key.removeprefix("/") if key[0] == "/" or not sizes.section else f"{sizes.section}.{key}" for key in get_key(type(sizes), name).spellings(name)]
    return MEANINGS.get(name, ""), " or ".join(keys)
