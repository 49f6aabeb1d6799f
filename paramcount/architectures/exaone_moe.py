"""K-EXAONE: sliding windows with rotary positions, every fourth layer global without them, DeepSeek-V3's experts."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import normed
from paramcount.parts.decoders import decoder, typed_layers, usual_layer
from paramcount.parts.feed_forward import corrected_mixture
from paramcount.sizes import (
    ABSENT,
    Condition,
    Flag,
    Indices,
    Natural,
    Positive,
    Sizes,
    Words,
    d_model_per_head,
    derived,
    hf,
)
from paramcount.sizes.conditions import even_where_rotated, grouped_routing, not_null, padding_in_table
from paramcount.sizes.layer_types import dense_by_type, first_dense, full_every_key
from paramcount.sizes.rules import check_sliding_or_full


class ExaoneMoe(Sizes):
    """Source: modeling_exaone_moe.py of the reference."""

    reference: ClassVar[str] = "ExaoneMoeForCausalLM"
    conditions: ClassVar[tuple[Condition, ...]] = (
        grouped_routing(1, 1),
        padding_in_table(0),
        even_where_rotated("sliding_attention"),
        not_null("n_group", "topk_group"),
    )

    vocab_size: Positive = hf(absent=102400)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=32)
    d_head: Positive = hf(absent=d_model_per_head)
    layer_types: Words = hf(absent=full_every_key("sliding_window_pattern", 4), null=ABSENT)
    window: Positive = hf(absent=4096)
    d_ff: Positive = hf(absent=16384)
    dense_layers: Indices = derived(dense_by_type(first_dense(1)))
    d_expert: Positive = hf(absent=1024)
    n_routed_experts: Positive = hf("num_experts", absent=64)
    n_active_experts: Positive = hf(absent=8)
    n_shared_experts: Natural = hf("num_shared_experts", absent=1)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, typed_layers(c.layer_types, c.dense_layers))

    def check(c) -> None:
        check_sliding_or_full(c)


def layer(c: Any, kind: tuple[str, str], x: Data) -> Data:
    word, mlp = kind
    sliding = word == "sliding_attention"
    mixture = (lambda h: corrected_mixture(c, h, "mlp.", name="e_score_correction_bias")) if mlp == "moe" else None
    return usual_layer(c, x, mixture, prepare=normed(rotate=sliding), window=c.window if sliding else None)
