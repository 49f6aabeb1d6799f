"""T5Gemma: an encoder and a decoder of Gemma 2's layers, each with sizes and a token embedding of its own."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.gemma import enlarge, gelu_mlp
from paramcount.architectures.gemma2 import Gemma2Layers, window
from paramcount.flow import Data, block, given, layers, lookup, norm
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import head, sandwich
from paramcount.sizes import Flag, hf

NORMS = (
    "pre_self_attn_layernorm",
    "post_self_attn_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)


class T5GemmaEncoder(Gemma2Layers):
    """The encoder's sizes."""

    section: ClassVar[str | None] = "encoder"


class T5Gemma(Gemma2Layers):
    """Source: arXiv:2504.06225. The decoder's sizes, and those of the encoder."""

    reference: ClassVar[str] = "T5GemmaForConditionalGeneration"
    section: ClassVar[str | None] = "decoder"
    unused_keys: ClassVar[tuple[str, ...]] = ("cross_attention_hidden_size",)

    tie_word_embeddings: Flag = hf("/tie_word_embeddings", absent=True)
    encoder: T5GemmaEncoder

    def forward(c, tokens: Data) -> Data:
        memory = block(
            given("source tokens", "source"),
            "model.encoder.",
            lambda tokens: encoder(c.encoder, tokens),
            part="encoder",
        )
        table = "model.decoder.embed_tokens.weight"
        x = enlarge(lookup(tokens, table, "other_embedding", c.vocab_size, c.d_model))
        kinds = [(kind, 1) for kind in c.layer_types]
        x = layers(
            x,
            "model.decoder.layers.{layer}.",
            kinds,
            lambda kind, x, memory: decoder_layer(c, kind, x, memory),
            reads=(memory,),
        )
        return head(c, norm(x, "model.decoder.norm"), table, "lm_head.out_proj")


def encoder(c: Any, tokens: Data) -> Data:
    x = enlarge(lookup(tokens, "embed_tokens.weight", "embedding", c.vocab_size, c.d_model))
    kinds = [(kind, 1) for kind in c.layer_types]
    return norm(layers(x, "layers.{layer}.", kinds, lambda kind, x: encoder_layer(c, kind, x)), "norm")


def encoder_layer(c: Any, kind: str, x: Data) -> Data:
    return sandwich(x, lambda h: self_attention(c, kind, h, cached=False), lambda h: gelu_mlp(c, h), NORMS)


def self_attention(c: Any, kind: str, x: Data, *, cached: bool) -> Data:
    return attention(c, x, "self_attn.", bias=c.attention_bias, window=window(c, kind), cached=cached)


def decoder_layer(c: Any, kind: str, x: Data, memory: Data) -> Data:
    x = x + norm(self_attention(c, kind, norm(x, NORMS[0]), cached=True), NORMS[1])
    x = x + norm(look(c, norm(x, "pre_cross_attn_layernorm"), memory), "post_cross_attn_layernorm")
    return x + norm(gelu_mlp(c, norm(x, NORMS[2])), NORMS[3])


def look(c: Any, x: Data, memory: Data) -> Data:
    """At the encoder's output, whose width is its own."""
    return block(
        x,
        "cross_attn.",
        lambda x, memory: attention(c, x, "", bias=c.attention_bias, memory=memory),
        reads=(memory,),
        part="cross_attention",
    )
