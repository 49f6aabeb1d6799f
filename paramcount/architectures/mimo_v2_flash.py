"""MiMo-V2-Flash: layers with a window have sinks and twice the key-value heads.

Values narrower than keys, a third of each head rotated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError
from paramcount.flow import Data
from paramcount.parts.attentions import Heads, attention, partial_rope
from paramcount.parts.decoders import decoder, typed_layers, usual_layer
from paramcount.parts.feed_forward import correction, mixture
from paramcount.sizes import (
    ABSENT,
    SLIDING,
    Condition,
    Flag,
    Indices,
    Natural,
    Positive,
    Sizes,
    Words,
    derived,
    hf,
    per_layer,
)
from paramcount.sizes.conditions import grouped_routing, not_null, padding_in_table
from paramcount.sizes.layer_types import check_no_types, dense_by_type, unused
from paramcount.sizes.rotary import rotary_width_of
from paramcount.sizes.rules import check_at_most, check_sliding_or_full


def looks_back(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    """Released files count the tokens before this one, the reference this one too."""
    if js.get("sliding_window_size") is not None:
        return check_no_types(js, "sliding_window_size", 0) + 1
    return check_no_types(js, "sliding_window", 129)


class MiMoV2Flash(Sizes):
    """Source: arXiv:2601.02780, section 2."""

    reference: ClassVar[str] = "MiMoV2FlashForCausalLM"
    conditions: ClassVar[tuple[Condition, ...]] = (
        grouped_routing(1, 1),
        not_null("n_routed_experts"),
        padding_in_table(None),
    )

    vocab_size: Positive = hf(absent=152576)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=48)
    n_heads: Positive = hf(absent=64)
    n_kv_heads: Positive = hf(absent=4)  # of a layer that sees everything
    d_head: Positive = hf(absent=192)
    d_v: Positive = hf(absent=128)
    layer_types: Words = hf(
        absent=lambda js, c: tuple(SLIDING[i == 0 or (i + 1) % 6 == 0] for i in per_layer(c)), null=ABSENT
    )
    window: Positive = derived(looks_back)
    d_rope: Natural = derived(rotary_width_of(SLIDING[1], 0.334, 0.334))
    d_rope_sliding: Natural = derived(rotary_width_of(SLIDING[0], 0.334, 0.334))
    d_ff: Positive = hf(absent=16384)
    dense_layers: Indices = derived(dense_by_type(lambda js, c: (0,)))
    d_expert: Positive = hf(absent=2048)
    n_routed_experts: Positive = hf("num_local_experts", "n_routed_experts", absent=256, null=unused)
    n_active_experts: Positive = hf(absent=8)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, typed_layers(c.layer_types, c.dense_layers))

    def check(c) -> None:
        check_sliding_or_full(c)
        if SLIDING[0] in c.layer_types and c.n_heads % (2 * c.n_kv_heads):
            found = f"= {c.n_kv_heads}, and 2 × {c.n_kv_heads} does not divide n_heads = {c.n_heads}"
            raise ParamcountError(
                found, where="n_kv_heads", expected="half of a divisor", sizes=(c.n_kv_heads, c.n_heads)
            )
        check_at_most(c, "d_rope", "d_head")
        check_at_most(c, "d_rope_sliding", "d_head")


def layer(c: Any, kind: tuple[str, str], x: Data) -> Data:
    word, feed_forward = kind
    return usual_layer(
        c, x, (lambda h: moe(c, h)) if feed_forward == "moe" else None, attend=look, slides=word == SLIDING[0]
    )


def look(c: Any, x: Data, prefix: str, *, slides: bool) -> Data:
    heads = Heads(c.n_heads, 2 * c.n_kv_heads if slides else c.n_kv_heads, c.d_head)
    d_rope = c.d_rope_sliding if slides else c.d_rope
    return attention(
        heads,
        x,
        prefix,
        bias=c.attention_bias,
        o_bias=False,
        prepare=lambda q, k: (partial_rope(q, d_rope), partial_rope(k, d_rope)),
        d_v=c.d_v,
        window=c.window if slides else None,
        sinks="attention_sink_bias" if slides else False,
    )


def moe(c: Any, x: Data) -> Data:
    return mixture(c, x, "mlp.", choose=correction(c, "mlp.gate.e_score_correction_bias"))
