"""Seed-OSS: the Llama layout with a bias on q, k and v and another flag for the last matrix of attention."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import Condition, Flag, Positive, Sizes, d_model_per_head, equal_to, hf
from paramcount.sizes.conditions import padding_in_table


class SeedOss(Sizes):
    """Source: modeling_seed_oss.py of the reference."""

    reference: ClassVar[str] = "SeedOssForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(1),)

    vocab_size: Positive = hf(absent=155136)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=64)
    n_heads: Positive = hf(absent=80)
    n_kv_heads: Positive = hf(absent=8, null=equal_to("n_heads"))
    d_head: Positive = hf(absent=128, null=d_model_per_head)
    d_ff: Positive = hf(absent=27648)
    qkv_bias: Flag = hf("attention_bias", absent=True)
    o_bias: Flag = hf("attention_out_bias", absent=False)
    mlp_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, bias=c.qkv_bias, o_bias=c.o_bias, mlp_bias=c.mlp_bias)
