"""Persimmon: fused q, k and v, LayerNorms on queries and keys, and a squared ReLU.

Half of each head is rotated.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.phi import prepare
from paramcount.flow import Data, attend, linear
from paramcount.parts.attentions import fused_qkv
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import Condition, Flag, Natural, Positive, Sizes, d_model_per_head, derived, hf, rotary_part
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_at_most, check_heads_fill


class Persimmon(Sizes):
    """Source: modeling_persimmon.py of the reference."""

    reference: ClassVar[str] = "PersimmonForCausalLM"
    rotated: ClassVar[str | None] = "d_rope"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=262144)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=36)
    n_heads: Positive = hf(absent=64)
    d_head: Positive = derived(d_model_per_head)
    d_rope: Natural = derived(rotary_part(0.5))
    d_ff: Positive = hf(absent=16384)
    qk_norm: Flag = hf("qk_layernorm", absent=True)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, names=("embed_tokens", "layers", "final_layernorm"), norm_bias=True)

    def check(c) -> None:
        check_heads_fill(c)
        check_at_most(c, "d_rope", "d_head")


def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(
        x,
        lambda h: attention(c, h),
        lambda h: plain_mlp(
            h, ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"), "mlp", c.d_ff, activation="relu2", bias=True
        ),
        bias=True,
    )


def attention(c: Any, x: Data) -> Data:
    q, k, v = fused_qkv(c, x, "self_attn.query_key_value")  # stored head by head: its q, its k, its v
    q, k = prepare(c, q, k)
    return linear(attend(q, k, v), "self_attn.dense", "output_projection", c.d_model, bias=True)
