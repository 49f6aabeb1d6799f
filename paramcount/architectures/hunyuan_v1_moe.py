"""Hunyuan-A13B: Hunyuan's dense layers with routed experts and a shared one.

The number of experts may differ by layer.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


def visited(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """How many experts a token visits: one number for all layers, or one for each."""
    key = "num_experts_per_tok" if "num_experts_per_tok" in js else "moe_topk"
    found = js.get(key, 1)
    if type(found) is int and found > 0:
        return (found,)
    if (
        not isinstance(found, (list, tuple))
        or len(found) < c["n_layers"]
        or not all(type(n) is int and n > 0 for n in found)
    ):
        raise sizes.make_value_error(found, key, "a positive integer, or one per layer")
    return tuple(found[i] for i in sizes.per_layer(c))


def stretched_rope(config: Mapping[str, Any], c: Any) -> ops.Rope:
    """Rotary positions; "dynamic" scaling with an alpha stretches the base once and for all."""
    parameters = config.get("rope_parameters") or config.get("rope_scaling") or {}
    base = parameters.get("rope_theta", config.get("rope_theta", 10_000.0))
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    if kind == "dynamic" and parameters.get("alpha"):
        return ops.Rope(base * parameters["alpha"] ** (c.d_head / (c.d_head - 2)))
    return sizes.make_rope(kind, base, parameters, config, 2048)


class HunYuanMoEV1(parts.AttentionBias, parts.MixtureDecoder):
    """Source: HunYuanMoEV1Attention and HunYuanMoEV1Gate of the reference, modeling_hunyuan_v1_moe.py."""

    reference = "HunYuanMoEV1ForCausalLM"
    gguf = "hunyuan-moe"
    task_heads = "SCORED"
    adapts_experts = True
    linear_routers = (".gate.wg.weight",)
    conditions = (sizes.padding_in_table(0),)

    d_head: sizes.Positive = sizes.hf()  # the reference has no default and derives none
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "num_experts")
    n_active_experts: sizes.Natural = sizes.derived(lambda js, c: max(visited(js, c)))  # in the layer with the most
    active_by_layer: sizes.Indices = sizes.derived(
        lambda js, c: () if len(set(visited(js, c))) == 1 else visited(js, c)
    )

    rope = sizes.setting(default=stretched_rope)

    def kinds(c) -> parts.Kinds | None:
        return [(n, 1) for n in c.active_by_layer] or None

    def layer(c, x: Data, n_active: ops.Size | None = None) -> Data:
        """`n_active`: active experts of this layer, if layers differ in it."""
        n_active = c.n_active_experts if n_active is None else n_active
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias, prepare=c.prepare)
        h = c.norm(x, "post_attention_layernorm")

        logits = ops.linear(h, "mlp.gate.wg", "router", c.n_routed_experts)  # [n, experts]
        weights = ops.route(logits, n_active, "softmax", normalise=True)  # 0 for those not chosen
        routed = ops.experts(h, weights, "mlp.experts.{expert}.", c.n_routed_experts, n_active, c.expert)
        shared = parts.gated_mlp(h, "mlp.shared_mlp.", "shared_experts", c.d_expert, activation=c.activation)
        return x + (routed + shared)

    def expert(c, x: Data) -> Data:
        return parts.gated_mlp(x, "", "experts", c.d_expert, activation=c.activation)

    def prepare(c, q: Data, k: Data) -> tuple[Data, Data]:
        q, k = ops.rope(q, c.rope), ops.rope(k, c.rope)
        return c.norm(q, "self_attn.query_layernorm"), c.norm(k, "self_attn.key_layernorm")

    def check(c) -> None:
        if c.active_by_layer and (len(c.active_by_layer) != c.n_layers or max(c.active_by_layer) != c.n_active_experts):
            expected = (
                "one number per layer, the largest equal to "
                + FieldName("n_active_experts")
                + f" = {c.n_active_experts}"
            )
            raise ParamcountError(
                f"has {len(c.active_by_layer)} items with maximum {max(c.active_by_layer)}",
                where=FieldName("active_by_layer"),
                expected=expected,
            )
