"""Gemma: Llama's layout with a GELU gate, heads wider than d_model shared out, and a tied head."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, activate
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes import Condition, Flag, Positive, Sizes, hf
from paramcount.sizes.conditions import padding_in_table


class Gemma(Sizes):
    """Source: arXiv:2403.08295, section 2. A norm multiplies by 1 + its weight, which counts no less."""

    reference: ClassVar[str] = "GemmaForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(0),)

    vocab_size: Positive = hf(absent=256000)
    d_model: Positive = hf(absent=3072)
    n_layers: Positive = hf(absent=28)
    n_heads: Positive = hf(absent=16)
    n_kv_heads: Positive = hf(absent=16)
    d_head: Positive = hf(absent=256)
    d_ff: Positive = hf(absent=24576)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, enter=enlarge)


def enlarge(x: Data) -> Data:
    return activate(x, "times √d_model")


def gelu_mlp(c: Any, x: Data) -> Data:
    return gated_mlp(x, "mlp.", "mlp", c.d_ff, activation="gelu")


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, lambda h: gelu_mlp(c, h), bias=c.attention_bias)
