"""Helium: the Llama layout, neighbours rotated together."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import Condition, Flag, Positive, Sizes, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_heads_fill, check_rotated_in_pairs


class Helium(Sizes):
    """Source: modeling_helium.py of the reference."""

    reference: ClassVar[str] = "HeliumForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(3),)

    vocab_size: Positive = hf(absent=48000)
    d_model: Positive = hf(absent=2560)
    n_layers: Positive = hf(absent=24)
    n_heads: Positive = hf(absent=20)
    n_kv_heads: Positive = hf(absent=20)
    d_head: Positive = hf(absent=128)
    d_ff: Positive = hf(absent=7040)
    qkv_bias: Flag = hf("attention_bias", absent=False)
    mlp_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_head")
        check_heads_fill(c)  # the last matrix of attention is square


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, bias=c.qkv_bias, o_bias=False, mlp_bias=c.mlp_bias)
