"""LongT5: T5 whose encoder looks around itself only, or also at sums of blocks of the text."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.t5 import BUCKETS_OF_AN_ENCODER, QKVO, T5, decoder, encoder, relative_bias, source_tokens
from paramcount.errors import make_choice_error
from paramcount.flow import Data, attend, linear, norm
from paramcount.parts.attentions import relative
from paramcount.sizes import Condition, Flag, Positive, Word, derived, flag, hf

ATTENTIONS = ("local", "transient-global")


class LongT5(T5):
    """Source: arXiv:2112.07916, section 3."""

    reference: ClassVar[str] = "LongT5ForConditionalGeneration"
    linear_by_component: ClassVar[bool] = False
    unused_keys: ClassVar[tuple[str, ...]] = ("global_block_size",)

    encoder_attention: Word = hf("encoder_attention_type", absent="local")
    radius: Positive = hf("local_radius", absent=127)
    scaled: Flag = derived(lambda js, c: flag(js, "tie_word_embeddings", True))

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, encoded(c, source_tokens()))

    def check(c) -> None:
        if c.encoder_attention not in ATTENTIONS:
            raise make_choice_error(c.encoder_attention, ATTENTIONS, where="encoder_attention")


class LongT5Encoder(LongT5):
    """The encoder alone."""

    reference: ClassVar[str] = "LongT5EncoderModel"
    conditions: ClassVar[tuple[Condition, ...]] = BUCKETS_OF_AN_ENCODER

    def forward(c, tokens: Data) -> Data:
        return encoded(c, tokens)


def encoded(c: Any, tokens: Data) -> Data:
    around, bias = (attend_around, local_bias) if c.encoder_attention == ATTENTIONS[0] else (attend_wide, wide_bias)
    return encoder(c, tokens, attend=around, bias=bias)


def local_bias(c: Any, x: Data) -> Data:
    return relative_bias(c, x, "LocalSelfAttention.relative_attention_bias")


def wide_bias(c: Any, x: Data) -> Data:
    """For the tokens around, and beside it for the blocks."""
    prefix = "TransientGlobalSelfAttention."
    near, far = (
        relative_bias(c, x, prefix + "relative_attention_bias"),
        relative_bias(c, x, prefix + "global_relative_attention_bias"),
    )
    return Data("tokens and blocks", (near, far), near.shape)


def attend_around(c: Any, x: Data, bias: Data) -> Data:
    return windowed(c, x, x, bias, "layer.0.LocalSelfAttention.")


def attend_wide(c: Any, x: Data, bias: Data) -> Data:
    """Keys and values of the tokens around, and of every block's sum."""
    prefix = "layer.0.TransientGlobalSelfAttention."
    blocks = norm(Data("sums of blocks", (x,), x.shape), prefix + "global_input_layer_norm")
    return windowed(c, x, Data("tokens and blocks", (x, blocks), x.shape), bias, prefix)


def windowed(c: Any, x: Data, source: Data, bias: Data, prefix: str) -> Data:
    """multi_head with a window on both sides of a token."""
    heads = (c.n_heads, c.d_head)
    q = relative(linear(x, prefix + QKVO[0], "qkv.q", heads), bias)
    k, v = (linear(source, prefix + name, f"qkv.{name}", heads) for name in QKVO[1:3])
    return linear(attend(q, k, v, window=c.radius, cached=()), prefix + QKVO[3], "output_projection", c.d_model)
