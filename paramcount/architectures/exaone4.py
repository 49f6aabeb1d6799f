"""EXAONE 4: post-norm, and a norm on every query and key head.

Full-attention layers have no rotary positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data, norm, rope
from paramcount.parts.decoders import decoder, post_norm, usual_layer
from paramcount.sizes import ABSENT, SLIDING, Condition, Flag, Positive, Sizes, Words, d_model_per_head, hf, per_layer
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_sliding_or_full


def pattern(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    """One layer of sliding_window_pattern looks back over all.

    Without a window the reference divides by 0 unless layers are named.
    """
    period = js.get("sliding_window_pattern", 4) if c["window"] is not None else 0
    return tuple(SLIDING[(i + 1) % period == 0] for i in per_layer(c))


class Exaone4(Sizes):
    """Source: arXiv:2507.11407, section 2.1."""

    reference: ClassVar[str] = "Exaone4ForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=102400)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=32)
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Positive = hf(absent=16384)
    window: Positive | None = hf(absent=4096)
    layer_types: Words = hf(absent=pattern, null=ABSENT)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [(kind, 1) for kind in c.layer_types])

    def check(c) -> None:
        check_sliding_or_full(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    sliding = kind == "sliding_attention"
    turn = rope if sliding or c.window is None else lambda x: x

    def prepare(q: Data, k: Data) -> tuple[Data, Data]:
        return turn(norm(q, "self_attn.q_norm")), turn(norm(k, "self_attn.k_norm"))

    return usual_layer(c, x, arrange=post_norm, prepare=prepare, window=c.window if sliding else None)
