"""Qwen 1: fused QKV with a bias although `no_bias` is set, a gated MLP whose config gives both halves together."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, attend, linear, rope
from paramcount.parts.attentions import fused_qkv
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes import Flag, Positive, Sizes, derived, hf
from paramcount.sizes.rules import check_heads_fill


class Qwen(Sizes):
    """Source: modeling_qwen.py of Qwen/Qwen-7B. `d_ff` is the width of one matrix: half of config.json's
    `intermediate_size`.
    """

    reference: ClassVar[str] = "QWenLMHeadModel of Qwen/Qwen-7B"
    rotated: ClassVar[str | None] = "d_head"

    vocab_size: Positive = hf(absent=151936)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    d_head: Positive = hf("kv_channels", absent=128)
    d_ff: Positive = derived(lambda js, c: js.get("intermediate_size", 22016) // 2)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, prefix="transformer.", names=("wte", "h", "ln_f"))

    def check(c) -> None:
        check_heads_fill(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(
        x,
        lambda h: attention(c, h),
        lambda h: gated_mlp(h, "mlp.", "mlp", c.d_ff, names=("w2", "w1", "c_proj")),
        ("ln_1", "ln_2"),
    )


def attention(c: Any, x: Data) -> Data:
    q, k, v = fused_qkv(c, x, "attn.c_attn")
    return linear(attend(rope(q), rope(k), v), "attn.c_proj", "output_projection", c.d_model)
