"""BitNet b1.58: the Llama layout with one norm more before each layer's two last matrices; its MLP squares a ReLU."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, activate, linear, norm
from paramcount.parts.attentions import wide_norm
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import Condition, Flag, Positive, Sizes, d_model_per_head, equal_to, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_heads_fill


class BitNet(Sizes):
    """Source: arXiv:2504.12285, section 2."""

    reference: ClassVar[str] = "BitNetForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=128256)
    d_model: Positive = hf(absent=2560)
    n_layers: Positive = hf(absent=30)
    n_heads: Positive = hf(absent=20)
    n_kv_heads: Positive = hf(absent=5, null=equal_to("n_heads"))
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Positive = hf(absent=6912)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)

    def check(c) -> None:
        check_heads_fill(c)  # the norm of the attended values is as wide as d_model


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(
        c, x, lambda h: mlp(c, h), bias=c.attention_bias, gate=lambda x, a: wide_norm(a, "self_attn.attn_sub_norm")
    )


def mlp(c: Any, x: Data) -> Data:
    gate = activate(linear(x, "mlp.gate_proj", "mlp.gate", c.d_ff), "relu²")
    up = linear(x, "mlp.up_proj", "mlp.up", c.d_ff)
    return linear(norm(gate * up, "mlp.ffn_sub_norm"), "mlp.down_proj", "mlp.down", c.d_model)
