"""Mellum 2: Qwen 3's layers with windows and mixtures of experts where layer_types and mlp_layer_types say so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError
from paramcount.flow import Data
from paramcount.parts.decoders import decoder, typed_layers, usual_layer
from paramcount.parts.feed_forward import mixture
from paramcount.sizes import ABSENT, SLIDING, Condition, Flag, Indices, Positive, Sizes, Words, derived, hf, per_layer
from paramcount.sizes.conditions import not_null, padding_in_table
from paramcount.sizes.layer_types import dense_by_type, unused
from paramcount.sizes.rules import check_sliding_or_full


def one_mtp_layer(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    n = js.get("num_nextn_predict_layers", js.get("num_mtp_layers"))
    if n is not None and n > 1:
        raise ParamcountError(f"= {n}", where="num_mtp_layers", expected="0 or 1")


class Mellum(Sizes):
    """Source: modeling_mellum.py of the reference."""

    reference: ClassVar[str] = "MellumForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (one_mtp_layer, not_null("num_experts"), padding_in_table(None))

    vocab_size: Positive = hf(absent=98304)
    d_model: Positive = hf(absent=2304)
    n_layers: Positive = hf(absent=28)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=4)
    d_head: Positive = hf(absent=128)
    d_ff: Positive = hf(absent=7168)
    layer_types: Words = hf(absent=lambda js, c: tuple(SLIDING[1] for _ in per_layer(c)), null=ABSENT)
    window: Positive | None = hf(absent=1024)
    dense_layers: Indices = derived(dense_by_type(lambda js, c: ()))
    d_expert: Positive = hf(absent=896)
    n_routed_experts: Positive = hf("num_local_experts", "num_experts", absent=64, null=unused)
    n_active_experts: Positive = hf(absent=8)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, typed_layers(c.layer_types, c.dense_layers))

    def check(c) -> None:
        check_sliding_or_full(c)


def layer(c: Any, kind: tuple[str, str], x: Data) -> Data:
    attention, feed_forward = kind
    window = c.window if attention == SLIDING[0] else None
    return usual_layer(
        c,
        x,
        (lambda h: mixture(c, h, "mlp.")) if feed_forward == "moe" else None,
        bias=c.attention_bias,
        qk_norm=True,
        window=window,
    )
