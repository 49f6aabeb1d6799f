"""InternLM2 and 2.5: grouped-query attention with q, k and v fused group by group.

Tensor names follow the first Llama.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, attend, fused, linear, rope
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes import ABSENT, Flag, Positive, Sizes, d_model_per_head, derived, equal_to, hf
from paramcount.sizes.rules import check_heads_fill


class InternLM2(Sizes):
    """Source: arXiv:2403.17297, section 2.2; modeling_internlm2.py of internlm/internlm2-7b."""

    reference: ClassVar[str] = "InternLM2ForCausalLM of internlm/internlm2-7b"
    rotated: ClassVar[str | None] = "d_head"

    vocab_size: Positive = hf(absent=103168)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=11008)
    attention_bias: Flag = hf("bias", absent=True)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, names=("tok_embeddings", "layers", "norm"), head_name="output")

    def check(c) -> None:
        check_heads_fill(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(
        x,
        lambda h: attention(c, h),
        lambda h: gated_mlp(h, "feed_forward.", "mlp", c.d_ff, names=("w1", "w3", "w2")),
        ("attention_norm", "ffn_norm"),
    )


def attention(c: Any, x: Data) -> Data:
    few = (c.n_kv_heads, c.d_head)
    q, k, v = fused(
        x, "attention.wqkv", {"qkv.q": (c.n_heads, c.d_head), "qkv.k": few, "qkv.v": few}, bias=c.attention_bias
    )
    return linear(attend(rope(q), rope(k), v), "attention.wo", "output_projection", c.d_model, bias=c.attention_bias)
