"""Hunyuan 0.5B to 7B: the Llama layout with norms over q and k that stand behind the rotation."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, norm, rope
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, equal_to, hf
from paramcount.sizes.conditions import padding_in_table


class HunYuanDenseV1(Sizes):
    """Source: modeling_hunyuan_v1_dense.py of the reference."""

    reference: ClassVar[str] = "HunYuanDenseV1ForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(0),)

    vocab_size: Positive = hf(absent=290943)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf()  # the reference has no default and derives none
    d_ff: Positive = hf(absent=11008)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, bias=c.attention_bias, prepare=rotate_and_norm)


def rotate_and_norm(q: Data, k: Data) -> tuple[Data, Data]:
    return norm(rope(q), "self_attn.query_layernorm"), norm(rope(k), "self_attn.key_layernorm")
