"""ProphetNet: an encoder-decoder that predicts several tokens ahead.

Each prediction has its own stream through the same layers.
"""

from typing import Any

from paramcount.errors import ParamcountError
from paramcount.flow import Data, Unreachable, block, given, layers, linear, lookup, norm
from paramcount.parts.classic import (
    Stack,
    crossing,
    decoder_stack,
    encoder_stack,
    multi_head,
    norm_behind,
    positions,
    source_states,
    unread_table,
)
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ConfigJson, FieldValues, Sizes, d_model_per, d_model_per_head, derived, flag, hf
from paramcount.sizes.conditions import padding_inside
from paramcount.sizes.rules import check_heads_fill, check_stack_heads
from paramcount.sizes.types import Flag, Positive

MATRICES = ("query_proj", "key_proj", "value_proj", "out_proj")
ROOT = "prophetnet."


def looks_at_the_encoder(js: ConfigJson, c: FieldValues) -> None:
    if not flag(js, "add_cross_attention", absent=True):
        raise ParamcountError("= false in an encoder-decoder model", where="add_cross_attention", expected="true")


def layers_by_stack(js: ConfigJson, c: FieldValues) -> None:
    if "num_hidden_layers" in js:
        raise ParamcountError(
            "is rejected by the reference",
            where="num_hidden_layers",
            expected="num_encoder_layers and num_decoder_layers",
        )


CONDITIONS = (padding_inside(0, places=3), layers_by_stack)  # the streams look one place further than the text


class ProphetNet(Sizes):
    """Source: arXiv:2001.04063, section 3."""

    reference = "ProphetNetForConditionalGeneration"
    linear_by_component = False
    conditions = (*CONDITIONS, looks_at_the_encoder)

    vocab_size: Positive = hf(absent=30522)
    d_model: Positive = hf(absent=1024)
    n_encoder_layers: Positive = hf("num_encoder_layers", absent=12)
    n_decoder_layers: Positive = hf("num_decoder_layers", absent=12)
    n_encoder_heads: Positive = hf("num_attention_heads", "num_encoder_attention_heads", absent=16)
    n_decoder_heads: Positive = hf("num_decoder_attention_heads", absent=16)
    d_encoder_head: Positive = derived(d_model_per("n_encoder_heads"))
    d_decoder_head: Positive = derived(d_model_per("n_decoder_heads"))
    d_encoder_ff: Positive = hf(absent=4096)
    d_decoder_ff: Positive = hf(absent=4096)
    n_positions: Positive = hf("max_position_embeddings", absent=512)
    n_streams: Positive = hf("ngram", absent=2)
    n_buckets: Positive = hf("num_buckets", absent=32)
    tie_word_embeddings: Flag = hf(absent=True)

    check = check_stack_heads

    def forward(c, tokens: Data, head: bool = True) -> Data:
        table = ROOT + "word_embeddings.weight" if c.tie_word_embeddings else None

        def encoder(tokens: Data) -> Data:
            x = lookup(tokens, f"/{table}" if table else "word_embeddings.weight", "embedding", c.vocab_size, c.d_model)
            x = norm(positions(x, tokens, "position_embeddings", c.n_positions), "embeddings_layer_norm", bias=True)
            kinds = [("layer", c.n_encoder_layers)]
            return layers(x, "layers.{layer}.", kinds, lambda kind, x: encoder_layer(encoder_stack(c), x))

        memory = block(given("source tokens", "source"), ROOT + "encoder.", encoder, part="encoder")
        name, component = ROOT + "decoder.word_embeddings.weight", "embedding" if table else "other_embedding"
        x = lookup(tokens, name, component, c.vocab_size, c.d_model, tied_to=table)
        x = decoder(c, decoder_stack(c), x, tokens, memory)
        return logits(c, x, table) if head else x

    def body(c, tokens: Data) -> Data:
        return c.forward(tokens, head=False)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return () if c.tie_word_embeddings else unread_table(c, tokens, ROOT + "word_embeddings.weight", c.vocab_size)


class ProphetNetDecoder(Sizes):
    """Source: arXiv:2001.04063, section 3."""

    reference = "ProphetNetForCausalLM"
    linear_by_component = False
    conditions = CONDITIONS

    vocab_size: Positive = hf(absent=30522)
    d_model: Positive = hf(absent=1024)
    n_layers: Positive = hf("num_decoder_layers", absent=12)
    n_heads: Positive = hf("num_decoder_attention_heads", absent=16)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf("decoder_ffn_dim", absent=4096)
    n_positions: Positive = hf("max_position_embeddings", absent=512)
    n_streams: Positive = hf("ngram", absent=2)
    n_buckets: Positive = hf("num_buckets", absent=32)
    cross_attention: Flag = hf(absent=True)
    tie_word_embeddings: Flag = hf(absent=True)

    check = check_heads_fill

    def forward(c, tokens: Data) -> Data:
        name = ROOT + ("word_embeddings.weight" if c.tie_word_embeddings else "decoder.word_embeddings.weight")
        x = lookup(tokens, name, "embedding", c.vocab_size, c.d_model)
        memory = (source_states(c.d_model),) if c.cross_attention else ()
        x = decoder(c, Stack(c.n_layers, c.n_heads, c.d_head, c.d_ff), x, tokens, *memory)
        return logits(c, x, name if c.tie_word_embeddings else None)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return () if c.tie_word_embeddings else unread_table(c, tokens, ROOT + "word_embeddings.weight", c.vocab_size)


def logits(c: Any, x: Data, tied_to: str | None) -> Data:
    return linear(x, "lm_head", "lm_head", c.vocab_size, tied_to=tied_to)


def encoder_layer(c: Stack, x: Data) -> Data:
    x = norm_behind(x, lambda h: multi_head(c, h, "self_attn.", MATRICES, cached=False), "self_attn_layer_norm")
    return norm_behind(x, lambda h: feed_forward(c, h), "feed_forward_layer_norm")


def feed_forward(c: Stack, x: Data) -> Data:
    return plain_mlp(x, ("feed_forward.intermediate", "feed_forward.output"), "mlp", c.d_ff, bias=True)


def decoder(c: Any, stack: Stack, x: Data, tokens: Data, *memory: Data) -> Data:
    """The prediction streams after all layers.

    The inputs are the token vectors and one stream per token ahead, which starts from its number and position only; all
    go through the same layers.
    """
    prefix, places = ROOT + "decoder.", ROOT + "decoder.position_embeddings"
    x = positions(x, tokens, places, c.n_positions)
    streams = lookup(
        given("streams", "tokens"), prefix + "ngram_embeddings.weight", "other_embedding", c.n_streams, c.d_model
    )
    streams = streams + lookup(
        tokens, places + ".weight", "position", c.n_positions, c.d_model, tied_to=places + ".weight"
    )
    x = norm(
        Data("concat", (x, streams), ("tokens and streams", c.d_model)), prefix + "embeddings_layer_norm", bias=True
    )
    kinds = [("layer", stack.n_layers)]
    x = layers(x, prefix + "layers.{layer}.", kinds, lambda kind, x, *m: decoder_layer(c, stack, x, *m), reads=memory)
    return Data("predict streams", (x,), ("tokens", c.d_model))


def decoder_layer(c: Any, stack: Stack, x: Data, *memory: Data) -> Data:
    def look(h: Data) -> Data:
        relative = linear(h, "self_attn.relative_pos_embeddings", "position", (c.n_buckets, stack.n_heads), bias=True)
        return multi_head(
            stack,
            h,
            "self_attn.",
            MATRICES,
            turn=lambda q, k, v: (Data("relative positions", (q, relative), q.shape), k, v),
        )

    x = norm_behind(x, look, "self_attn_layer_norm")
    for source in memory:
        x = crossing(
            x,
            "",
            lambda x, m: norm_behind(
                x, lambda h: multi_head(stack, h, "cross_attn.", MATRICES, memory=m), "cross_attn_layer_norm"
            ),
            source,
        )
    return norm_behind(x, lambda h: feed_forward(stack, h), "feed_forward_layer_norm")
