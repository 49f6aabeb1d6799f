"""BLT: a byte-level model that runs its large transformer over patches of bytes.

A small model cuts bytes into patches, an encoder pools them, the large model runs over patches, and a decoder returns
to bytes.
"""

from typing import Any

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Unreachable, attend, block, layers, linear, lookup, norm
from paramcount.parts.decoders import usual_layer
from paramcount.sizes import ABSENT, ConfigJson, FieldValues, Flag, Natural, Positive, Sizes, derived, hf
from paramcount.sizes.derivations import d_model_per_head, equal_to
from paramcount.sizes.rules import check_equal


def two_thirds_of_four(js: ConfigJson, c: FieldValues) -> int:
    return int(8 * c["d_model"] / 3)


class BltStack(Sizes):
    """One of the four stacks of Llama layers."""

    rotated = "d_head"

    d_model: Positive = hf()
    n_layers: Natural = hf()
    n_heads: Positive = hf()
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf()


class BltPatcher(BltStack):
    config_class = "BltPatcherConfig"
    section = "patcher_config"

    vocab_size: Positive = hf()
    window: Positive | None = hf()


class BltEncoder(BltStack):
    config_class = "BltLocalEncoderConfig"
    section = "encoder_config"

    n_layers: Positive = hf()  # of which the last one gathers patches
    vocab_size: Positive = hf()
    d_ff: Positive = hf(absent=two_thirds_of_four, null=ABSENT)
    n_parts: Positive = hf("cross_attn_k")
    cross_every_layer: Flag = hf("cross_attn_all_layers", null=False)


class BltGlobal(BltStack):
    config_class = "BltGlobalTransformerConfig"
    section = "global_config"


class BltDecoder(BltStack):
    config_class = "BltLocalDecoderConfig"
    section = "decoder_config"

    n_layers: Positive = hf()  # of which the first one reads patches
    d_global: Positive = hf("hidden_size_global")
    n_parts: Positive = hf("cross_attn_k")
    cross_every_layer: Flag = hf("cross_attn_all_layers", null=False)


def n_hash_tables(js: ConfigJson, c: FieldValues) -> int:
    """One for each hash function and length of byte group."""
    groups, functions = (
        js.get("encoder_hash_byte_group_size") or range(3, 9),
        js.get("encoder_hash_byte_group_nb_functions", 1),
    )
    if not all(type(n) is int and n > 0 for n in groups):
        raise ParamcountError(
            f"= {describe_value(groups)}", where="encoder_hash_byte_group_size", expected="positive integers"
        )
    return len(groups) * (functions if type(functions) is int else 0)


class Blt(Sizes):
    """Source: arXiv:2412.09871, section 3. The patcher is frozen; with another patching_mode than entropy nothing
    reaches it.
    """

    reference = "BltForCausalLM"
    linear_by_component = False
    unused_keys = (
        "patch_size", "decoder_config.head_dim", "encoder_config.head_dim", "global_config.head_dim",
        "patcher_config.head_dim",
    )  # fmt: skip

    vocab_size: Positive = hf()
    n_parts: Positive = hf("cross_attn_k")
    n_hash_tables: Positive = derived(n_hash_tables)
    hash_rows: Positive = hf("encoder_hash_byte_group_vocab")
    window: Positive | None = hf("local_attention_window_len")
    patch_in_forward: Flag = hf("patch_in_forward", null=False)
    has_patcher: Flag = derived(lambda js, c: c["patch_in_forward"] and js.get("patching_mode", "entropy") == "entropy")
    patcher: BltPatcher
    encoder: BltEncoder
    large: BltGlobal
    decoder: BltDecoder
    widened: Flag = derived(lambda js, c: c["encoder"]["d_model"] * c["n_parts"] != c["large"]["d_model"])
    tie_word_embeddings: Flag = hf()

    def forward(c, tokens: Data) -> Data:
        patch_ends = (
            block(tokens, "model.patcher.", lambda tokens: patcher(c.patcher, tokens), part="encoder")
            if c.has_patcher
            else tokens
        )
        both = block(
            tokens, "model.", lambda tokens, ends: encoder(c, tokens, ends), reads=(patch_ends,), part="encoder"
        )
        x = Data("byte states", (both,), (*tokens.shape, c.encoder.d_model))
        patches = Data("patches", (both,), ("patches", c.encoder.d_model * c.n_parts))
        if c.widened:
            patches = linear(patches, "model.global_transformer.token_embedding_projection", "other", c.large.d_model)
        prefix = "model.global_transformer.layers.{layer}."
        patches = layers(patches, prefix, [("layer", c.large.n_layers)], lambda kind, x: usual_layer(c.large, x))
        x = decoder(c, x, patches)
        return linear(
            norm(x, "model.local_decoder.norm"),
            "lm_head",
            "lm_head",
            c.vocab_size,
            tied_to=table(c) if c.tie_word_embeddings else None,
        )

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        if c.has_patcher or not c.patch_in_forward:
            return ()
        unused = block(tokens, "model.patcher.", lambda tokens: patcher(c.patcher, tokens), part="encoder")
        return (Unreachable(unused, "with another patching_mode than entropy the patcher never runs"),)

    def check(c) -> None:
        check_equal(c, "decoder.d_model", "encoder.d_model")
        check_equal(c, "decoder.d_global", "large.d_model")
        check_equal(c, "encoder.n_parts", "n_parts")
        check_equal(c, "decoder.n_parts", "n_parts")


def table(c: Any) -> str:
    """Where the token embedding is stored: a tied one as the head, with as many rows."""
    return "lm_head.weight" if c.tie_word_embeddings else "model.local_encoder.embed_tokens.weight"


def patcher(c: Any, tokens: Data) -> Data:
    """A language model of bytes: a patch begins where it is unsure of the next one."""
    x = lookup(tokens, "embed_tokens.weight", "other_embedding", c.vocab_size, c.d_model)
    x = layers(x, "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: usual_layer(c, x, window=c.window))
    return linear(norm(x, "norm"), "lm_head", "other", c.vocab_size)


def encoder(c: Any, tokens: Data, ends: Data) -> Data:
    """Bytes and patches. Where every layer gathers patches, each begins anew: the last one's go on."""
    e = c.encoder
    x = lookup(tokens, "/" + table(c), "embedding", c.vocab_size if c.tie_word_embeddings else e.vocab_size, e.d_model)
    x = x + lookup(
        tokens, "encoder_hash_tok_embedding.weight", "other_embedding", c.n_hash_tables * c.hash_rows, e.d_model
    )
    kinds = [("gathering" if e.cross_every_layer else "layer", e.n_layers - 1), ("last", 1)]
    return layers(x, "local_encoder.", kinds, lambda kind, x, ends: encoder_layer(c, kind, x, ends), reads=(ends,))


def encoder_layer(c: Any, kind: str, x: Data, ends: Data) -> Data:
    e = c.encoder
    x = stacked_layer(e, x, c.window)
    if kind == "layer":
        return x
    name = "patch_embedding_projection"  # one for all layers
    patches = Data("max pool per patch", (x, ends), ("patches", e.d_model))
    tied = f"model.local_encoder.{name}.weight" if kind == "gathering" else None
    patches = apart(
        linear(patches, f"/model.local_encoder.{name}", "other", e.n_parts * e.d_model, tied_to=tied), e.d_model
    )
    patches = patches + look(e, patches, x, "{layer}" if e.cross_every_layer else "0")
    return Data("tuple", (x, patches), x.shape)


def decoder(c: Any, x: Data, patches: Data) -> Data:
    d = c.decoder
    patches = apart(
        linear(patches, "model.local_decoder.patch_embedding_projection", "other", d.n_parts * d.d_model), d.d_model
    )
    kinds = [("cross", 1), ("cross" if d.cross_every_layer else "layer", d.n_layers - 1)]

    def layer(kind: str, x: Data, patches: Data) -> Data:
        if kind == "cross":
            x = x + look(d, x, patches, "{layer}" if d.cross_every_layer else "0")
        return stacked_layer(d, x, c.window)

    return layers(x, "model.local_decoder.", kinds, layer, reads=(patches,))


def apart(patches: Data, d_model: Any) -> Data:
    """Every patch as a few vectors as wide as a byte's."""
    return Data("reshape", (patches,), ("patch parts", d_model))


def stacked_layer(c: Any, x: Data, window: Any) -> Data:
    return block(x, "layers.{layer}.", lambda x: usual_layer(c, x, window=window))


def look(c: Any, x: Data, source: Data, index: str) -> Data:
    """Attention between bytes and patches, with a norm for each and a residual of its own."""
    return block(
        x,
        f"cross_attn_layers.{index}.",
        lambda x, source: x + cross_attention(c, x, source),
        reads=(source,),
        part="cross_attention",
    )


def cross_attention(c: Any, x: Data, source: Data) -> Data:
    q = linear(norm(x, "q_norm"), "q_proj", "qkv.q", (c.n_heads, c.d_head))
    source = norm(source, "k_norm")
    k, v = (linear(source, f"{name}_proj", f"qkv.{name}", (c.n_kv_heads, c.d_head)) for name in "kv")
    return linear(attend(q, k, v, cached=()), "o_proj", "output_projection", c.d_model)
