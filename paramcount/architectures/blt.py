"""BLT: a byte-level model that runs its large transformer over patches of bytes.

A small model cuts bytes into patches, an encoder pools them, the large model runs over patches, and a decoder returns
to bytes.
"""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes


class BltStack(sizes.Sizes):
    """One of the four stacks of Llama layers."""

    rotated = "d_head"

    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    n_kv_heads: sizes.Positive = sizes.hf(absent=sizes.equal_to("n_heads"), null=sizes.ABSENT)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Positive = sizes.hf()


class BltPatcher(BltStack):
    config_class = "BltPatcherConfig"
    section = "patcher_config"

    vocab_size: sizes.Positive = sizes.hf()
    window: sizes.Positive | None = sizes.hf()


class BltEncoder(BltStack):
    config_class = "BltLocalEncoderConfig"
    section = "encoder_config"

    n_layers: sizes.Positive = sizes.hf()  # of which the last one gathers patches
    vocab_size: sizes.Positive = sizes.hf()
    d_ff: sizes.Positive = sizes.hf(absent=lambda js, c: int(8 * c["d_model"] / 3), null=sizes.ABSENT)
    n_parts: sizes.Positive = sizes.hf("cross_attn_k")
    cross_every_layer: sizes.Flag = sizes.hf("cross_attn_all_layers", null=False)


class BltGlobal(BltStack):
    config_class = "BltGlobalTransformerConfig"
    section = "global_config"


class BltDecoder(BltStack):
    config_class = "BltLocalDecoderConfig"
    section = "decoder_config"

    n_layers: sizes.Positive = sizes.hf()  # of which the first one reads patches
    d_global: sizes.Positive = sizes.hf("hidden_size_global")
    n_parts: sizes.Positive = sizes.hf("cross_attn_k")
    cross_every_layer: sizes.Flag = sizes.hf("cross_attn_all_layers", null=False)


def n_hash_tables(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """One for each hash function and length of byte group."""
    groups, functions = (
        js.get("encoder_hash_byte_group_size") or range(3, 9),
        js.get("encoder_hash_byte_group_nb_functions", 1),
    )
    if not all(type(n) is int and n > 0 for n in groups):
        raise sizes.make_value_error(groups, "encoder_hash_byte_group_size", "positive integers")
    return len(groups) * (functions if type(functions) is int else 0)


class Blt(sizes.Sizes):
    """Source: arXiv:2412.09871, section 3. The patcher is frozen; with another patching_mode than entropy nothing
    reaches it.
    """

    reference = "BltForCausalLM"
    linear_by_component = False
    unused_keys = (
        "patch_size", "decoder_config.head_dim", "encoder_config.head_dim", "global_config.head_dim",
        "patcher_config.head_dim",
    )  # fmt: skip

    vocab_size: sizes.Positive = sizes.hf()
    n_parts: sizes.Positive = sizes.hf("cross_attn_k")
    n_hash_tables: sizes.Positive = sizes.derived(n_hash_tables)
    hash_rows: sizes.Positive = sizes.hf("encoder_hash_byte_group_vocab")
    window: sizes.Positive | None = sizes.hf("local_attention_window_len")
    patch_in_forward: sizes.Flag = sizes.hf("patch_in_forward", null=False)
    has_patcher: sizes.Flag = sizes.derived(
        lambda js, c: c["patch_in_forward"] and js.get("patching_mode", "entropy") == "entropy"
    )
    patcher: BltPatcher
    encoder: BltEncoder
    large: BltGlobal
    decoder: BltDecoder
    widened: sizes.Flag = sizes.derived(lambda js, c: c["encoder"]["d_model"] * c["n_parts"] != c["large"]["d_model"])
    tie_word_embeddings: sizes.Flag = sizes.hf()

    def forward(c, tokens: Data) -> Data:
        patch_ends = (
            ops.block(tokens, "model.patcher.", lambda tokens: patcher(c.patcher, tokens), part="encoder")
            if c.has_patcher
            else tokens
        )
        both = ops.block(
            tokens, "model.", lambda tokens, ends: encoder(c, tokens, ends), reads=(patch_ends,), part="encoder"
        )
        x = Data("byte states", (both,), (*tokens.shape, c.encoder.d_model))
        patches = Data("patches", (both,), ("patches", c.encoder.d_model * c.n_parts))
        if c.widened:
            patches = ops.linear(
                patches, "model.global_transformer.token_embedding_projection", "other", c.large.d_model
            )
        prefix = "model.global_transformer.layers.{layer}."
        patches = ops.layers(
            patches, prefix, [("layer", c.large.n_layers)], lambda kind, x: parts.usual_layer(c.large, x)
        )
        x = decoder(c, x, patches)
        return ops.linear(
            ops.norm(x, "model.local_decoder.norm"),
            "lm_head",
            "lm_head",
            c.vocab_size,
            tied_to=table(c) if c.tie_word_embeddings else None,
        )

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        if c.has_patcher or not c.patch_in_forward:
            return ()
        unused = ops.block(tokens, "model.patcher.", lambda tokens: patcher(c.patcher, tokens), part="encoder")
        return (ops.Unreachable(unused, "with another patching_mode than entropy the patcher never runs"),)

    def check(c) -> None:
        sizes.check_equal(c, "decoder.d_model", "encoder.d_model")
        sizes.check_equal(c, "decoder.d_global", "large.d_model")
        sizes.check_equal(c, "encoder.n_parts", "n_parts")
        sizes.check_equal(c, "decoder.n_parts", "n_parts")


def table(c: Any) -> str:
    """Where the token embedding is stored: a tied one as the head, with as many rows."""
    return "lm_head.weight" if c.tie_word_embeddings else "model.local_encoder.embed_tokens.weight"


def patcher(c: Any, tokens: Data) -> Data:
    """A language model of bytes: a patch begins where it is unsure of the next one."""
    x = ops.lookup(tokens, "embed_tokens.weight", "other_embedding", c.vocab_size, c.d_model)
    x = ops.layers(
        x, "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: parts.usual_layer(c, x, window=c.window)
    )
    return ops.linear(ops.norm(x, "norm"), "lm_head", "other", c.vocab_size)


def encoder(c: Any, tokens: Data, ends: Data) -> Data:
    """Bytes and patches. Where every layer gathers patches, each begins anew: the last one's go on."""
    e = c.encoder
    x = ops.lookup(
        tokens, "/" + table(c), "embedding", c.vocab_size if c.tie_word_embeddings else e.vocab_size, e.d_model
    )
    x = x + ops.lookup(
        tokens, "encoder_hash_tok_embedding.weight", "other_embedding", c.n_hash_tables * c.hash_rows, e.d_model
    )
    kinds = [("gathering" if e.cross_every_layer else "layer", e.n_layers - 1), ("last", 1)]
    return ops.layers(x, "local_encoder.", kinds, lambda kind, x, ends: encoder_layer(c, kind, x, ends), reads=(ends,))


def encoder_layer(c: Any, kind: str, x: Data, ends: Data) -> Data:
    e = c.encoder
    x = stacked_layer(e, x, c.window)
    if kind == "layer":
        return x
    name = "patch_embedding_projection"  # one for all layers
    patches = Data("max pool per patch", (x, ends), ("patches", e.d_model))
    tied = f"model.local_encoder.{name}.weight" if kind == "gathering" else None
    patches = apart(
        ops.linear(patches, f"/model.local_encoder.{name}", "other", e.n_parts * e.d_model, tied_to=tied), e.d_model
    )
    patches = patches + look(e, patches, x, "{layer}" if e.cross_every_layer else "0")
    return Data("tuple", (x, patches), x.shape)


def decoder(c: Any, x: Data, patches: Data) -> Data:
    d = c.decoder
    patches = apart(
        ops.linear(patches, "model.local_decoder.patch_embedding_projection", "other", d.n_parts * d.d_model), d.d_model
    )
    kinds = [("cross", 1), ("cross" if d.cross_every_layer else "layer", d.n_layers - 1)]

    def layer(kind: str, x: Data, patches: Data) -> Data:
        if kind == "cross":
            x = x + look(d, x, patches, "{layer}" if d.cross_every_layer else "0")
        return stacked_layer(d, x, c.window)

    return ops.layers(x, "model.local_decoder.", kinds, layer, reads=(patches,))


def apart(patches: Data, d_model: Any) -> Data:
    """Every patch as a few vectors as wide as a byte's."""
    return Data("reshape", (patches,), ("patch parts", d_model))


def stacked_layer(c: Any, x: Data, window: Any) -> Data:
    return ops.block(x, "layers.{layer}.", lambda x: parts.usual_layer(c, x, window=window))


def look(c: Any, x: Data, source: Data, index: str) -> Data:
    """Attention between bytes and patches, with a norm for each and a residual of its own."""
    return ops.block(
        x,
        f"cross_attn_layers.{index}.",
        lambda x, source: x + cross_attention(c, x, source),
        reads=(source,),
        part="cross_attention",
    )


def cross_attention(c: Any, x: Data, source: Data) -> Data:
    q = ops.linear(ops.norm(x, "q_norm"), "q_proj", "qkv.q", (c.n_heads, c.d_head))
    source = ops.norm(source, "k_norm")
    k, v = (ops.linear(source, f"{name}_proj", f"qkv.{name}", (c.n_kv_heads, c.d_head)) for name in "kv")
    return ops.linear(ops.attend(q, k, v), "o_proj", "output_projection", c.d_model)
