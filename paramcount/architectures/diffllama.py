"""DiffLlama: Llama with differential attention.

Every head attends twice and subtracts the second result from the first, scaled by a learned factor per layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Weight, attend, linear, rope
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, d_model_per_head, equal_to, hf
from paramcount.sizes.conditions import padding_in_table


def nothing_is_dropped(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    if js.get("attention_dropout", 0.0) > 0:
        raise ParamcountError(f"= {describe_value(js['attention_dropout'])}", where="attention_dropout", expected="0")


class DiffLlama(Sizes):
    """Source: arXiv:2410.05258, section 2.1."""

    reference: ClassVar[str] = "DiffLlamaForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (nothing_is_dropped, padding_in_table(None))

    vocab_size: Positive = hf(absent=32000)
    d_model: Positive = hf(absent=2048)
    n_layers: Positive = hf(absent=16)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=d_model_per_head, null=ABSENT)
    d_ff: Positive = hf(absent=8192)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)

    def check(c) -> None:
        if c.n_kv_heads % 2:
            raise ParamcountError(
                f"= {c.n_kv_heads}", where="n_kv_heads", expected="an even number, because value heads form two halves"
            )


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, attend=differential)


def differential(c: Any, x: Data, prefix: str) -> Data:
    """Differential attention: the difference of two attention maps.

    Each head reads two value heads side by side, one from the first half and one from the second. The output has heads
    of twice the size, and the second half of the heads is subtracted from the first, so the number of elements stays
    the same.
    """
    q = linear(x, prefix + "q_proj", "qkv.q", (c.n_heads, c.d_head), bias=c.attention_bias)
    k = rope(linear(x, prefix + "k_proj", "qkv.k", (c.n_kv_heads, c.d_head), bias=c.attention_bias))
    v = linear(x, prefix + "v_proj", "qkv.v", (c.n_kv_heads, c.d_head), bias=c.attention_bias)
    pairs = Data("pairs of heads, twice", (v,), (*v.shape[:2], c.d_head + c.d_head))
    a = attend(rope(q), k, pairs, cached=(k, v))
    learned = tuple(Weight(prefix + f"lambda_{name}", "other", (c.d_head,)) for name in ("q1", "k1", "q2", "k2"))
    less = Data("difference", (a,), q.shape, learned)
    a = Data("norm", (less,), less.shape)
    return linear(a, prefix + "o_proj", "output_projection", c.d_model, bias=c.attention_bias)
