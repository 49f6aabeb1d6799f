"""DBRX: experts in every layer, and fused q, k and v that are clipped.

The matrices of all experts are stored one after the other in one matrix per projection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, activate, attend, experts, fused, linear, rope
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.sizes import Condition, Flag, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.rules import check_heads_fill


def can_run(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    """Requirements of the reference: it reads rope_theta from attn_config and clips q, k and v unconditionally.

    The experts read d_model under a key of its own.
    """
    inner = js.get("attn_config") or {}
    if "rope_theta" not in inner:
        raise ParamcountError("is missing", where="attn_config.rope_theta", expected="a number")
    if type(inner.get("clip_qkv")) not in (int, float):
        raise ParamcountError(
            f"= {describe_value(inner.get('clip_qkv'))}", where="attn_config.clip_qkv", expected="a number"
        )
    if js.get("d_model", 2048) != c["d_model"]:
        raise ParamcountError(
            f"= {c['d_model']} beside d_model = {describe_value(js.get('d_model', 2048))}",
            where="hidden_size",
            expected="the same",
        )


class Dbrx(Sizes):
    """Source: modeling_dbrx.py of the reference."""

    reference: ClassVar[str] = "DbrxForCausalLM"
    linear_routers: ClassVar[tuple[str, ...]] = (".router.layer.weight",)
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (can_run,)

    vocab_size: Positive = hf(absent=32000)
    d_model: Positive = hf("hidden_size", "d_model", absent=2048)
    n_layers: Positive = hf("num_hidden_layers", "n_layers", absent=24)
    n_heads: Positive = hf("num_attention_heads", "n_heads", absent=16)
    n_kv_heads: Positive = hf("attn_config.kv_n_heads", absent=1)
    d_head: Positive = derived(d_model_per_head)
    d_expert: Positive = hf("ffn_config.ffn_hidden_size", absent=3584)
    n_routed_experts: Positive = hf("ffn_config.moe_num_experts", absent=4)
    n_active_experts: Positive = hf("ffn_config.moe_top_k", absent=1)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, prefix="transformer.", names=("wte", "blocks", "norm_f"))

    def check(c) -> None:
        check_heads_fill(c)
        if c.tie_word_embeddings:
            raise ParamcountError("= true", where="tie_word_embeddings", expected="false")


def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(
        x, lambda h: attention(c, h), lambda h: moe(c, h), ("norm_attn_norm.norm_1", "norm_attn_norm.norm_2")
    )


def attention(c: Any, x: Data) -> Data:
    prefix, shared = "norm_attn_norm.attn.", (c.n_kv_heads, c.d_head)
    q, k, v = (
        activate(y, "clip")
        for y in fused(x, prefix + "Wqkv", {"qkv.q": (c.n_heads, c.d_head), "qkv.k": shared, "qkv.v": shared})
    )
    return linear(attend(rope(q), rope(k), v), prefix + "out_proj", "output_projection", c.d_model)


def moe(c: Any, x: Data) -> Data:
    scores = linear(x, "ffn.router.layer", "router", c.n_routed_experts)
    return experts(
        x, scores, "ffn.experts.mlp.", c.n_routed_experts, c.n_active_experts, lambda x: expert(c, x), merged=True
    )


def expert(c: Any, x: Data) -> Data:
    """w1 is the gate, v1 up and w2 down, stored [in, out]."""
    (gate,) = fused(x, "w1", {"experts.gate": c.d_expert}, suffixes=("", ""))
    (up,) = fused(x, "v1", {"experts.up": c.d_expert}, suffixes=("", ""))
    return fused(activate(gate, "silu") * up, "w2", {"experts.down": c.d_model}, transposed=True, suffixes=("", ""))[0]
