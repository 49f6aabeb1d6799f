"""Hunyuan-Large: pairs of layers that share keys and values, routed and shared experts.

Queries and keys are normalised after their rotation.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from paramcount.architectures.hunyuan_v1_moe import stretched_rope
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, describe_value


def owners(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """Which layers have keys and values of their own: with use_cla, the first of every cla_share_factor.

    Empty where all have.
    """
    every = sizes.check_no_types(js, "cla_share_factor", 1) if sizes.flag(js, "use_cla", False) else 1
    return (
        () if every == 1 else tuple("shared_attention" if i % every else "full_attention" for i in sizes.per_layer(c))
    )


def as_first_published(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Keys of later modelling code that was published under the same model type and reads other weights."""
    if sizes.flag(js, "use_mla", False):
        raise ParamcountError(
            "= true requires later modeling code, which is not supported", where="use_mla", expected="false"
        )
    if js.get("moe_intermediate_size") is not None:
        raise ParamcountError(
            "requires later modeling code, which is not supported", where="moe_intermediate_size", expected="null"
        )
    for key in ("head_dim", "attention_head_dim"):
        if js.get(key) not in (None, c["d_head"]):
            raise ParamcountError(
                f"= {describe_value(js[key])} requires later modeling code, which is not supported",
                where=key,
                expected=f"{c['d_head']}",
            )


def routing(config: Mapping[str, Any], c: Any) -> str:
    """Source: HunYuanTopKGate and top1gating of modeling_hunyuan.py: the share of the one expert is not normalised."""
    if c.n_active_experts > 1:
        raise ValueError("more than one expert per token drop tokens beyond their capacity")
    return "softmax"


class HunYuan(parts.Decoder):
    """Source: arXiv:2411.02265; HunYuanDecoderLayer in modeling_hunyuan.py of tencent/Tencent-Hunyuan-Large; layers
    that share keys and values arXiv:2405.12981.

    moe_topk is one number: topkgating hands it to torch.topk, which takes no list. Lists of one value per layer belong
    to the later class of Hunyuan-A13B, HunYuanMoEV1ForCausalLM.
    """

    reference = "HunYuanForCausalLM of tencent/Tencent-Hunyuan-Large"
    rotated = "d_head"
    conditions = (as_first_published,)
    defaults = {"d_model": 4096, "n_layers": 32}

    layer_types: sizes.Words = sizes.derived(owners)
    n_heads: sizes.Positive = sizes.hf(absent=32)
    n_kv_heads: sizes.Positive = sizes.hf(absent=sizes.equal_to("n_heads"), null=sizes.ABSENT)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_expert: sizes.Natural = sizes.hf("intermediate_size", absent=11008)
    n_routed_experts: sizes.Positive = sizes.hf("num_experts", absent=1)
    n_active_experts: sizes.Positive = sizes.hf("moe_topk", absent=1)
    n_shared_experts: sizes.Positive = sizes.hf("num_shared_expert", absent=1)
    moe: sizes.Flag = sizes.derived(lambda js, c: c["n_routed_experts"] > 1)
    shared_mlp: sizes.Flag = sizes.hf("use_mixed_mlp_moe", absent=False)
    qk_norm: sizes.Flag = sizes.hf("use_qk_norm", absent=False)
    attention_bias: sizes.Flag = sizes.hf(absent=False)

    norm_eps = sizes.setting("rms_norm_eps", default=1e-5)
    rope = sizes.setting(default=stretched_rope)
    routing = sizes.setting(default=routing)

    def kinds(c) -> parts.Kinds | None:
        return [(word, 1) for word in c.layer_types] or None

    def carry(c) -> tuple[ops.Width, ...]:
        """Keys, before their rotation, and values: those of the last layer that has some."""
        return ((c.n_kv_heads, c.d_head),) * 2 if c.layer_types else ()

    def layer(c, x: Data, *passed: Any) -> Any:
        *before, kind = passed or ("full_attention",)
        a, kv = c.attend(c.norm(x, "input_layernorm"), before if kind == "shared_attention" else None)
        x = x + a
        x = x + c.feed_forward(c.norm(x, "post_attention_layernorm"))
        return (x, *kv) if c.layer_types else x

    def attend(c, x: Data, shared: Sequence[Data] | None) -> tuple[Data, Sequence[Data]]:
        """Attended x, and the keys and values that the next layer may take.

        A layer that takes them rotates and normalises the keys itself.
        """
        heads, bias = (c.n_kv_heads, c.d_head), c.attention_bias
        q = ops.rope(ops.linear(x, "self_attn.q_proj", "qkv.q", (c.n_heads, c.d_head), bias=bias), c.rope)
        kv = shared or [
            ops.cache(ops.linear(x, f"self_attn.{letter}_proj", f"qkv.{letter}", heads, bias=bias)) for letter in "kv"
        ]
        k = ops.rope(kv[0], c.rope)
        if c.qk_norm:
            q, k = c.norm(q, "self_attn.query_layernorm"), c.norm(k, "self_attn.key_layernorm")
        a = ops.attend(q, k, kv[1], mask=ops.Causal())  # [n, n_heads, d_head]
        return ops.linear(a, "self_attn.o_proj", "output_projection", c.d_model, bias=bias), kv

    def feed_forward(c, x: Data) -> Data:
        if not c.moe:
            return parts.gated_mlp(x, "mlp.", "mlp", c.d_expert, activation=c.activation)
        routed = parts.mixture(c, x, "mlp.", router="gate.wg", choose=c.choose)
        if not c.shared_mlp:
            return routed
        width = c.n_shared_experts * c.d_expert
        return routed + parts.gated_mlp(x, "mlp.shared_mlp.", "shared_experts", width, activation=c.activation)

    def choose(c, logits: Data) -> Data:
        return ops.route(logits, c.n_active_experts, c.routing)

    def unused_fields(c) -> tuple[str, ...]:
        return (
            *(() if c.moe else ("n_active_experts",)),
            *(() if c.layer_types else ("layer_types",)),
        )  # of no words: every layer is alike

    def check(c) -> None:
        sizes.check_heads_fill(c)
        if c.layer_types and c.layer_types[0] != "full_attention":
            raise ParamcountError(
                f"= {c.layer_types[0]}",
                where=FieldName("layer_types") + ".0",
                expected="full_attention, because no earlier layer has keys and values to share",
            )
