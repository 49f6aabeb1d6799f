"""Phi-3.5-MoE: LayerNorms with a bias, a bias on the head if wanted, and a router that always picks two experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError
from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.parts.feed_forward import mixture
from paramcount.sizes import Condition, Flag, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.conditions import padding_in_table


def visited(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    """Active experts: 2. The reference's sparse mixer always takes the two best and ignores num_experts_per_tok."""
    if js.get("num_experts_per_tok", 2) is None:
        raise ParamcountError("= null", where="num_experts_per_tok", expected="an integer")
    return 2 if c["n_routed_experts"] > 1 else 1


class Phimoe(Sizes):
    """Source: arXiv:2404.14219, section 2; routing arXiv:2409.12136. In the released files w1 is the gate, w3 up and w2
    down.
    """

    reference: ClassVar[str] = "PhimoeForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=32064)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=8)
    d_head: Positive = hf(absent=d_model_per_head)
    d_expert: Positive = hf("intermediate_size", absent=6400)
    n_routed_experts: Positive = hf("num_local_experts", absent=16)
    n_active_experts: Positive = derived(visited)
    window: Positive | None = hf(absent=None)
    attention_bias: Flag = hf(absent=False)
    lm_head_bias: Flag = hf("lm_head_bias", absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, norm_bias=True, head_bias=c.lm_head_bias)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(
        c,
        x,
        lambda h: mixture(c, h, "block_sparse_moe.", names=("w1", "w3", "w2")),
        bias=c.attention_bias,
        norm_bias=True,
        window=c.window,
    )
