"""Laguna: a softplus gate on the attention output and a number of heads per layer.

The routing bias is a parameter.
"""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

ROPES = {  # the reference's default of rope_parameters
    sizes.SLIDING[1]: {"rope_type": "default", "rope_theta": 500_000.0, "partial_rotary_factor": 0.5},
    sizes.SLIDING[0]: {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 1.0},
}


def heads_by_layer(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """One number of heads a layer, where layers differ from n_heads."""
    found = js.get("num_attention_heads_per_layer")
    if found is None:
        return ()
    if (
        not isinstance(found, (list, tuple))
        or len(found) != c["n_layers"]
        or not all(type(n) is int and n > 0 for n in found)
    ):
        raise sizes.make_value_error(found, "num_attention_heads_per_layer", "a positive integer for each layer")
    return () if set(found) == {c["n_heads"]} else tuple(found[i] for i in sizes.per_layer(c))


def gate_for_each_head(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    """The reference gates each number of each head where `gating` is false or any other word."""
    gating = js.get("gating", True)
    if not isinstance(gating, (bool, str)):
        raise sizes.make_value_error(gating, "gating", "true, per-head or per-element")
    return gating is True or gating == "per-head"


def weighs_outputs(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if js.get("moe_apply_router_weight_on_input"):
        raise ParamcountError("= true", where="moe_apply_router_weight_on_input", expected="false")


class Laguna(parts.AttentionBias, parts.RoutedExperts, parts.AttentionDecoder):
    """Source: LagunaAttention and LagunaTopKRouter of the reference, modeling_laguna.py."""

    reference = "LagunaForCausalLM"
    gguf = "laguna"
    rotated = None
    reference_names = {".shared_expert.": ".shared_experts."}
    conditions = (weighs_outputs, sizes.padding_in_table(None))

    n_layers: sizes.Positive = sizes.hf()  # the reference needs one
    heads_by_layer: sizes.Indices = sizes.derived(heads_by_layer)
    layer_types: sizes.Words = sizes.hf(absent=sizes.full_every(1), null=sizes.ABSENT)
    window: sizes.Positive = sizes.hf()
    d_rope: sizes.Natural = sizes.derived(sizes.rotary_width_of(sizes.SLIDING[1], 0.5, 1.0))
    d_rope_sliding: sizes.Natural = sizes.derived(sizes.rotary_width_of(sizes.SLIDING[0], 1.0, 1.0))
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(lambda js, c: (0,)))
    d_shared_expert: sizes.Natural = sizes.hf("shared_expert_intermediate_size")
    gate_per_head: sizes.Flag = sizes.derived(gate_for_each_head)

    rope = sizes.rotary_of(sizes.SLIDING[1], ROPES, 131072, share=1.0)
    rope_sliding = sizes.rotary_of(sizes.SLIDING[0], ROPES, 131072, share=1.0)
    routed_scale = sizes.setting("moe_routed_scaling_factor")
    router_cap = sizes.setting(default=lambda config, c: config.get("moe_router_logit_softcapping") or None)

    def kinds(c) -> parts.Kinds:
        dense, heads = set(c.dense_layers), c.heads_by_layer or [None] * c.n_layers
        return [((word, "dense" if i in dense else "moe", heads[i]), 1) for i, word in enumerate(c.layer_types)]

    def layer(c, x: Data, kind: tuple[str, str, Any]) -> Data:
        word, mlp, n_heads = kind
        heads = parts.Heads(c.n_heads if n_heads is None else n_heads, c.n_kv_heads, c.d_head)
        x = x + c.attention(heads, c.norm(x, "input_layernorm"), sliding=word == sizes.SLIDING[0])
        h = c.norm(x, "post_attention_layernorm")
        if mlp == "dense":
            return x + c.gated_mlp(h)
        shared = parts.gated_mlp(h, "mlp.shared_expert.", "shared_experts", c.d_shared_expert, activation=c.activation)
        return x + (parts.mixture(c, h, "mlp.", choose=c.choose) + shared)

    def attention(c, heads: parts.Heads, x: Data, *, sliding: bool) -> Data:
        d_rope, settings = (c.d_rope_sliding, c.rope_sliding) if sliding else (c.d_rope, c.rope)

        def prepare(q: Data, k: Data) -> tuple[Data, Data]:
            q, k = c.norm(q, "self_attn.q_norm"), c.norm(k, "self_attn.k_norm")
            return parts.partial_rope(q, d_rope, settings), parts.partial_rope(k, d_rope, settings)

        def gate(x: Data, a: Data) -> Data:
            width = (heads.n_heads, 1) if c.gate_per_head else (heads.n_heads, heads.d_head)
            g = ops.activate(ops.linear(x, "self_attn.g_proj", "qkv.gate", width), "softplus")
            return ops.scale(a, g) if c.gate_per_head else a * g

        q, k, v = parts.project_heads(heads, x, "self_attn.", bias=c.attention_bias)  # [n, n_heads, d_head]
        a = gate(x, ops.attend_causally(*prepare(q, k), v, window=c.window if sliding else None))
        return parts.project_output(a, "self_attn.o_proj", c.d_model, bias=c.attention_bias)

    def choose(c, logits: Data) -> Data:
        bias = parts.routing_bias(c, "mlp.experts.e_score_correction_bias", role="parameter")
        logits = ops.soft_cap(logits, None if isinstance(c.router_cap, ops.Unknown) else c.router_cap)
        return ops.route(logits, c.n_active_experts, "sigmoid", bias=bias, normalise=True, factor=c.routed_scale)

    def check(c) -> None:
        sizes.check_sliding_or_full(c)
        for i, n in enumerate(c.heads_by_layer):
            if n % c.n_kv_heads:
                found, expected = (
                    f"= {n}, but " + FieldName("n_kv_heads") + f" = {c.n_kv_heads}",
                    f"a multiple of {c.n_kv_heads}",
                )
                raise ParamcountError(
                    found, where=FieldName("heads_by_layer") + f".{i}", expected=expected, sizes=(n, c.n_kv_heads)
                )
        if c.heads_by_layer and len(c.heads_by_layer) != c.n_layers:
            found, widths = (
                f"has {len(c.heads_by_layer)} entries for " + FieldName("n_layers") + f" = {c.n_layers}",
                (len(c.heads_by_layer), c.n_layers),
            )
            raise ParamcountError(
                found,
                where=FieldName("heads_by_layer"),
                expected="one number per layer, or an empty list",
                sizes=widths,
            )
        if sizes.SLIDING[1] in c.layer_types:
            sizes.check_at_most(c, "d_rope", "d_head")
        if sizes.SLIDING[0] in c.layer_types:
            sizes.check_at_most(c, "d_rope_sliding", "d_head")

    def unused_fields(c) -> tuple[str, ...]:
        return ("n_kv_heads",) if c.heads_by_layer else ()  # n_heads is of no layer then
