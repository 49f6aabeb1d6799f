"""Ling 1 and 2: fused q, k and v with grouped-query attention, fine-grained experts with shared ones.

Version 2 normalizes queries and keys and routes as DeepSeek-V3 does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, attend, fused, linear, norm
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoders import decoder, dense_first, pre_norm
from paramcount.parts.feed_forward import corrected_mixture, gated_mlp, shared_mixture
from paramcount.sizes import (
    Condition,
    Flag,
    Natural,
    Positive,
    Sizes,
    d_model_per_head,
    derived,
    equal_to,
    hf,
    rotary_part,
)
from paramcount.sizes.conditions import grouped_routing, padding_in_table
from paramcount.sizes.rules import check_even


def head_size(js: Mapping[str, Any], c: Mapping[str, Any]) -> Any:
    """Null and 0 stand for d_model / n_heads."""
    return js.get("head_dim") or d_model_per_head(js, c)


class BailingMoe(Sizes):
    """Source: arXiv:2503.05139; configuration_bailing_moe.py and modeling_bailing_moe.py of github
    inclusionAI/Ling@5ccaeae073d6.
    """

    reference: ClassVar[str] = "BailingMoeForCausalLM of inclusionAI/Ling-lite"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(126081),)

    vocab_size: Positive = hf(absent=30592)
    d_model: Positive = hf(absent=1024)
    n_layers: Positive = hf(absent=24)
    n_heads: Positive = hf(absent=16)
    n_kv_heads: Positive = hf()
    d_head: Positive = derived(head_size)
    d_rope: Positive = derived(equal_to("d_head"))
    d_ff: Positive = hf()
    n_dense_layers: Natural = hf(absent=0, at_most="n_layers")
    d_expert: Positive = hf()
    n_routed_experts: Positive = hf("num_experts", absent=16)
    n_active_experts: Positive = hf(absent=2)
    n_shared_experts: Natural = hf("num_shared_experts", absent=0, null=0)
    qkv_bias: Flag = hf("use_qkv_bias", absent=False)
    o_bias: Flag = hf("use_bias", absent=True)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, dense_first(c), names=("word_embeddings", "layers", "norm"))

    def check(c) -> None:
        check_even(c, "d_rope")


def without_mtp(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    if js.get("num_nextn_predict_layers", 0):
        found = f"= {describe_value(js['num_nextn_predict_layers'])} is not supported"
        raise ParamcountError(found, where="num_nextn_predict_layers", expected="0")


class BailingMoeV2(BailingMoe):
    """Source: arXiv:2510.22115; configuration_bailing_moe_v2.py and modeling_bailing_moe_v2.py of github
    inclusionAI/Ling-V2@af8837e677a1.
    """

    reference: ClassVar[str] = "BailingMoeV2ForCausalLM of inclusionAI/Ling-mini-2.0"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(156892), grouped_routing(8, 4), without_mtp)
    defaults: ClassVar[Mapping[str, Any]] = {
        "vocab_size": 157184, "d_model": 2048, "n_layers": 20, "n_kv_heads": 4, "d_ff": 5120, "n_dense_layers": 1,
        "d_expert": 512,
        "n_routed_experts": 256, "n_active_experts": 8, "n_shared_experts": 1, "o_bias": False,
    }  # fmt: skip

    d_head: Positive = derived(lambda js, c: js.get("head_dim", 128) or d_model_per_head(js, c))
    d_rope: Positive = derived(rotary_part(1.0))
    qk_norm: Flag = hf("use_qk_norm", absent=True)


def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(x, lambda h: attention(c, h), lambda h: feed_forward(c, kind, h))


def attention(c: Any, x: Data) -> Data:
    few = (c.n_kv_heads, c.d_head)
    q, k, v = fused(
        x, "attention.query_key_value", {"qkv.q": (c.n_heads, c.d_head), "qkv.k": few, "qkv.v": few}, bias=c.qkv_bias
    )
    if getattr(c, "qk_norm", False):
        q, k = norm(q, "attention.query_layernorm"), norm(k, "attention.key_layernorm")
    a = attend(partial_rope(q, c.d_rope), partial_rope(k, c.d_rope), v)
    return linear(a, "attention.dense", "output_projection", c.d_model, bias=c.o_bias)


def feed_forward(c: Any, kind: str, x: Data) -> Data:
    """The second version has a routing bias, which is a buffer."""
    if kind == "dense":
        return gated_mlp(x, "mlp.", "mlp", c.d_ff)
    if hasattr(c, "qk_norm"):
        return corrected_mixture(c, x, "mlp.", name="gate.expert_bias")
    return shared_mixture(c, x, "mlp.")
