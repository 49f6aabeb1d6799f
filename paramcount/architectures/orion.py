"""Orion-14B: Llama's layers with LayerNorms that have a bias."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import Condition, Flag, Positive, Sizes, d_model_per_head, derived, equal_to, hf
from paramcount.sizes.conditions import without_experts
from paramcount.sizes.rules import check_heads_fill


class Orion(Sizes):
    """Source: modeling_orion.py of OrionStarAI/Orion-14B-Base."""

    reference: ClassVar[str] = "OrionForCausalLM of OrionStarAI/Orion-14B-Base"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (without_experts,)

    vocab_size: Positive = hf(absent=84608)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=40)
    n_heads: Positive = hf(absent=40)
    n_kv_heads: Positive = hf(absent=40, null=equal_to("n_heads"))
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=15360)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, norm_bias=True)

    def check(c) -> None:
        check_heads_fill(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, norm_bias=True, bias=c.attention_bias)
