"""Command R7B and Command A: Command R, three of four layers looking back over a window; the others rotate nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import unrotated
from paramcount.parts.decoders import decoder, parallel, usual_layer
from paramcount.sizes import (
    ABSENT,
    SLIDING,
    Condition,
    Flag,
    Positive,
    Sizes,
    Words,
    d_model_per_head,
    equal_to,
    full_every,
    hf,
)
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_layer_types, check_rotated_in_pairs


def pattern(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    words: tuple[str, ...] = full_every(js.get("sliding_window_pattern", 4))(js, c)
    return words


class Cohere2(Sizes):
    """Source: modeling_cohere2.py of the reference; layers without positions arXiv:2501.18795."""

    reference: ClassVar[str] = "Cohere2ForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(0),)

    vocab_size: Positive = hf(absent=256000)
    d_model: Positive = hf(absent=8192)
    n_layers: Positive = hf(absent=40)
    n_heads: Positive = hf(absent=64)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Positive = hf(absent=22528)
    layer_types: Words = hf(absent=pattern, null=ABSENT)
    window: Positive = hf(absent=4096)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [(kind, 1) for kind in c.layer_types])

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_head")
        check_layer_types(c, "layer_types", "n_layers", SLIDING)


def layer(c: Any, kind: str, x: Data) -> Data:
    sliding = kind == "sliding_attention"
    return usual_layer(
        c,
        x,
        arrange=parallel,
        bias=c.attention_bias,
        window=c.window if sliding else None,
        prepare=None if sliding else unrotated,
    )
