"""Hy3: one dense layer, then layers with 192 routed experts and a shared one.

The routing bias is stored as a buffer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, dense_or_moe, usual_layer
from paramcount.parts.feed_forward import correction, gated_mlp, mixture
from paramcount.sizes import Condition, Flag, Indices, Positive, Sizes, derived, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.layer_types import dense_by_type, unused


def shared_width(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    """num_shared_experts experts as one; without any the reference takes the width of the dense layers."""
    n = js.get("num_shared_experts", 1)
    width: int = (unused(js, c) if n is None else n) * c["d_expert"] or c["d_ff"]
    return width


class HYV3(Sizes):
    """Source: modeling_hy_v3.py of the reference."""

    reference: ClassVar[str] = "HYV3ForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=120832)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=80)
    n_heads: Positive = hf(absent=64)
    n_kv_heads: Positive = hf(absent=8)
    d_head: Positive = hf(absent=128)
    d_ff: Positive = hf(absent=13312)
    dense_layers: Indices = derived(dense_by_type(lambda js, c: (0,), checked=False))
    d_expert: Positive = hf(absent=1536)
    n_routed_experts: Positive = hf("num_local_experts", "num_experts", absent=192, null=unused)
    n_active_experts: Positive = hf(absent=8, null=unused)
    d_shared_expert: Positive = derived(shared_width)
    attention_bias: Flag = hf(absent=False)
    mlp_bias: Flag = hf(absent=False)  # of the dense layers and the shared experts
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, dense_or_moe(c.dense_layers, c.n_layers))


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(
        c, x, (lambda h: moe(c, h)) if kind == "moe" else None, bias=c.attention_bias, mlp_bias=c.mlp_bias, qk_norm=True
    )


def moe(c: Any, x: Data) -> Data:
    routed = mixture(c, x, "mlp.", router="router.gate", choose=correction(c, "mlp.expert_bias"))
    return routed + gated_mlp(x, "mlp.shared_mlp.", "shared_experts", c.d_shared_expert, bias=c.mlp_bias)
