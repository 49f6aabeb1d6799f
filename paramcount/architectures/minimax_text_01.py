"""MiniMax-Text-01 and MiniMax-M1: lightning attention, softmax attention in every eighth layer, large experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data, activate, linear, norm, scale
from paramcount.parts.attentions import attention, partial_rope
from paramcount.parts.decoders import decoder
from paramcount.parts.feed_forward import gated_mlp, mixture
from paramcount.parts.linear_attention import lightning_attention
from paramcount.sizes import ABSENT, Flag, Positive, Sizes, Words, d_model_per_head, derived, equal_to, hf, per_layer
from paramcount.sizes.rules import check_at_most, check_even, check_layer_types

KINDS = ("linear_attention", "full_attention")


def layer_kinds(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    """attn_type_list: 0 for lightning attention, any other number for softmax attention.

    What stands behind the last layer is not read.
    """
    found = js["attn_type_list"]
    return tuple(KINDS[found[i] != 0] for i in per_layer(c))


class MiniMaxText01(Sizes):
    """Source: arXiv:2501.08313, section 2; modeling_minimax_text_01.py of MiniMaxAI/MiniMax-Text-01."""

    reference: ClassVar[str] = "MiniMaxText01ForCausalLM of MiniMaxAI/MiniMax-Text-01"

    vocab_size: Positive = hf(absent=32000)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    layer_types: Words = derived(layer_kinds)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=8, null=equal_to("n_heads"))
    d_head: Positive = hf(absent=d_model_per_head, null=ABSENT)
    d_rope: Positive = hf("rotary_dim", absent=equal_to("d_head"))
    d_expert: Positive = hf("intermediate_size", absent=14336)
    n_routed_experts: Positive = hf("num_local_experts", absent=8)
    n_active_experts: Positive = hf(absent=2)
    shared_mlp: Flag = derived(
        lambda js, c: js.get("shared_intermediate_size", 0) > 0
    )  # its width is d_expert whatever that says
    norm_in_residual: Flag = hf("postnorm", absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [(word, 1) for word in c.layer_types])

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)
        check_at_most(c, "d_rope", "d_head")
        check_even(c, "d_rope")
        if c.n_layers == 1:
            raise ParamcountError(
                "= 1, for which the decay of lightning attention is undefined",
                where=FieldName("n_layers"),
                expected="2 or more",
            )


class MiniMaxM1(MiniMaxText01):
    """Source: arXiv:2506.13585; modeling_minimax_m1.py of MiniMaxAI/MiniMax-M1-80k: the same layers."""

    reference: ClassVar[str] = "MiniMaxM1ForCausalLM of MiniMaxAI/MiniMax-M1-80k"


def layer(c: Any, kind: str, x: Data) -> Data:
    h = norm(x, "input_layernorm")
    a = (
        lightning_attention(c, h, "self_attn.")
        if kind == "linear_attention"
        else attention(c, h, "self_attn.", prepare=lambda q, k: rotated(c, q, k))
    )
    x = (h if c.norm_in_residual else x) + a
    h = norm(x, "post_attention_layernorm")
    return (h if c.norm_in_residual else x) + feed_forward(c, h)


def rotated(c: Any, q: Data, k: Data) -> tuple[Data, Data]:
    return partial_rope(q, c.d_rope), partial_rope(k, c.d_rope)


def feed_forward(c: Any, x: Data) -> Data:
    """Experts; in a config that asks for it, a learned share of an MLP that all tokens visit in their place."""
    routed = mixture(c, x, "block_sparse_moe.", names=("w1", "w3", "w2"))
    if not c.shared_mlp:
        return routed
    share = activate(linear(x, "coefficient", "router", 1), "sigmoid")
    return scale(routed, activate(share, "1 − x")) + scale(
        gated_mlp(x, "shared_mlp.", "shared_experts", c.d_expert), share
    )
