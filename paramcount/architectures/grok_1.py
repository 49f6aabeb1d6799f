"""Grok-1: eight experts with GELU gates, pre-norm and post-norm, and a tied LM head."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, Weight
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import decoder
from paramcount.parts.feed_forward import mixture
from paramcount.sizes import Flag, Positive, Sizes, d_model_per_head, derived, equal_to, hf
from paramcount.sizes.rules import check_heads_fill


class Grok1(Sizes):
    """Source: model.py and run.py of xai-org/grok-1; modeling_grok1.py of hpcai-tech/grok-1, whose names these are."""

    reference: ClassVar[str] = "Grok1ModelForCausalLM of hpcai-tech/grok-1"
    base_model: ClassVar[str | None] = "Grok1Model"
    rotated: ClassVar[str | None] = "d_head"

    vocab_size: Positive = hf(absent=32000)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=32, null=equal_to("n_heads"))
    d_head: Positive = derived(d_model_per_head)
    d_expert: Positive = hf("intermediate_size", absent=32768)
    n_routed_experts: Positive = hf("num_experts", "num_local_experts", absent=8)
    n_active_experts: Positive = hf(absent=2)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, leave=lambda x: norm(x, "model.norm"))

    def check(c) -> None:
        check_heads_fill(c)


def norm(x: Data, name: str) -> Data:
    """The RMS norm whose weight is stored as `scale`."""
    return Data("norm", (x,), x.shape, (Weight(name + ".scale", "norm", x.shape[-1:]),))


def layer(c: Any, kind: str, x: Data) -> Data:
    x = x + norm(attention(c, norm(x, "pre_attn_norm"), "attn."), "post_attn_norm")
    return x + norm(moe(c, norm(x, "pre_moe_norm")), "post_moe_norm")


def moe(c: Any, x: Data) -> Data:
    return mixture(c, x, "moe_block.", names=("linear", "linear_v", "linear_1"))
