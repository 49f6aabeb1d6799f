"""Kolibri-1: 384 small experts and a shared one, pre-norm and post-norm.

Four of five layers attend to a sliding window; the others have no positions.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import normed
from paramcount.parts.decoders import decoder, sandwich, usual_layer
from paramcount.parts.feed_forward import correction, gated_mlp, mixture
from paramcount.sizes import ABSENT, SLIDING, Condition, Flag, Positive, Sizes, Words, full_every, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_sliding_or_full

NORMS = ("input_layernorm", "post_attn_norm", "post_attention_layernorm", "post_ffn_norm")


class Kolibri1(Sizes):
    """Source: modeling_kolibri1.py of the reference."""

    reference: ClassVar[str] = "Kolibri1ForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=128000)
    d_model: Positive = hf(absent=2560)
    n_layers: Positive = hf(absent=50)
    n_heads: Positive = hf(absent=48)
    n_kv_heads: Positive = hf(absent=4)
    d_head: Positive = hf(absent=128)
    layer_types: Words = hf(absent=full_every(5), null=ABSENT)
    window: Positive = hf(absent=513)
    d_expert: Positive = hf(absent=512)
    n_routed_experts: Positive = hf("num_local_experts", "num_experts", absent=384)
    n_active_experts: Positive = hf(absent=6)
    d_shared_expert: Positive = hf("shared_expert_intermediate_size", absent=512)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [(word, 1) for word in c.layer_types])

    def check(c) -> None:
        check_sliding_or_full(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    slides = kind == SLIDING[0]
    return usual_layer(
        c,
        x,
        lambda h: moe(c, h),
        arrange=lambda x, attention, feed_forward, bias: sandwich(x, attention, feed_forward, NORMS, bias=bias),
        prepare=normed(rotate=slides),
        window=c.window if slides else None,
    )


def moe(c: Any, x: Data) -> Data:
    return mixture(c, x, "mlp.", choose=correction(c, "moe.router.expert_bias")) + gated_mlp(
        x, "mlp.shared_experts.", "shared_experts", c.d_shared_expert
    )
