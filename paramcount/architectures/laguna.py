"""Laguna: a softplus gate on the attention output and a number of heads per layer.

The routing bias is a parameter.
"""

from typing import Any

from paramcount.errors import FieldName, ParamcountError, describe_value
from paramcount.flow import Data, Unknown, activate, linear, route, scale, soft_cap
from paramcount.parts.attentions import Heads, attention, partial_rope
from paramcount.parts.decoder import Decoder, Kinds
from paramcount.parts.feed_forward import gated_mlp, mixture, routing_bias
from paramcount.sizes import SLIDING, Flag, Indices, Natural, Positive, Words, per_layer, rotary_of, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.fields import ABSENT, ConfigJson, FieldValues, derived, hf
from paramcount.sizes.layer_types import dense_by_type
from paramcount.sizes.rotary_sizes import rotary_width_of
from paramcount.sizes.rules import check_at_most, check_sliding_or_full

ROPES = {  # the reference's default of rope_parameters
    SLIDING[1]: {"rope_type": "default", "rope_theta": 500_000.0, "partial_rotary_factor": 0.5},
    SLIDING[0]: {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 1.0},
}


def heads_by_layer(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    """One number of heads a layer, where layers differ from n_heads."""
    found = js.get("num_attention_heads_per_layer")
    if found is None:
        return ()
    if (
        not isinstance(found, (list, tuple))
        or len(found) != c["n_layers"]
        or not all(type(n) is int and n > 0 for n in found)
    ):
        raise ParamcountError(
            f"= {describe_value(found)}",
            where="num_attention_heads_per_layer",
            expected="a positive integer for each layer",
        )
    return () if set(found) == {c["n_heads"]} else tuple(found[i] for i in per_layer(c))


def gate_for_each_head(js: ConfigJson, c: FieldValues) -> bool:
    """The reference gates each number of each head where `gating` is false or any other word."""
    gating = js.get("gating", True)
    if not isinstance(gating, (bool, str)):
        raise ParamcountError(f"= {describe_value(gating)}", where="gating", expected="true, per-head or per-element")
    return gating is True or gating == "per-head"


def weighs_outputs(js: ConfigJson, c: FieldValues) -> None:
    if js.get("moe_apply_router_weight_on_input"):
        raise ParamcountError("= true", where="moe_apply_router_weight_on_input", expected="false")


class Laguna(Decoder):
    """Source: LagunaAttention and LagunaTopKRouter of the reference, modeling_laguna.py."""

    reference = "LagunaForCausalLM"
    gguf = "laguna"
    is_section_type = True
    reference_names = {".shared_expert.": ".shared_experts."}
    conditions = (weighs_outputs, padding_in_table(None))

    n_layers: Positive = hf()  # the reference needs one
    n_heads: Positive = hf()
    heads_by_layer: Indices = derived(heads_by_layer)
    n_kv_heads: Positive = hf()
    d_head: Positive = hf()
    layer_types: Words = hf(absent=lambda js, c: tuple(SLIDING[1] for _ in per_layer(c)), null=ABSENT)
    window: Positive = hf()
    d_rope: Natural = derived(rotary_width_of(SLIDING[1], 0.5, 1.0))
    d_rope_sliding: Natural = derived(rotary_width_of(SLIDING[0], 1.0, 1.0))
    d_ff: Natural = hf()
    dense_layers: Indices = derived(dense_by_type(lambda js, c: (0,)))
    d_expert: Natural = hf()
    n_routed_experts: Positive = hf("num_experts")
    n_active_experts: Natural = hf()
    d_shared_expert: Natural = hf("shared_expert_intermediate_size")
    gate_per_head: Flag = derived(gate_for_each_head)
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary_of(SLIDING[1], ROPES, 131072, share=1.0)
    rope_sliding = rotary_of(SLIDING[0], ROPES, 131072, share=1.0)
    routed_scale = setting("moe_routed_scaling_factor", default=1.0)
    router_cap = setting(default=lambda config, c: config.get("moe_router_logit_softcapping") or None)

    def kinds(c) -> Kinds:
        dense, heads = set(c.dense_layers), c.heads_by_layer or [None] * c.n_layers
        return [((word, "dense" if i in dense else "moe", heads[i]), 1) for i, word in enumerate(c.layer_types)]

    def layer(c, x: Data, kind: tuple[str, str, Any]) -> Data:
        word, mlp, n_heads = kind
        heads = Heads(c.n_heads if n_heads is None else n_heads, c.n_kv_heads, c.d_head)
        x = x + c.attention(heads, c.norm(x, "input_layernorm"), sliding=word == SLIDING[0])
        h = c.norm(x, "post_attention_layernorm")
        if mlp == "dense":
            return x + c.gated_mlp(h)
        shared = gated_mlp(h, "mlp.shared_expert.", "shared_experts", c.d_shared_expert, activation=c.activation)
        return x + (mixture(c, h, "mlp.", choose=c.choose) + shared)

    def attention(c, heads: Heads, x: Data, *, sliding: bool) -> Data:
        d_rope, settings = (c.d_rope_sliding, c.rope_sliding) if sliding else (c.d_rope, c.rope)

        def prepare(q: Data, k: Data) -> tuple[Data, Data]:
            q, k = c.norm(q, "self_attn.q_norm"), c.norm(k, "self_attn.k_norm")
            return partial_rope(q, d_rope, settings), partial_rope(k, d_rope, settings)

        def gate(x: Data, a: Data) -> Data:
            width = (heads.n_heads, 1) if c.gate_per_head else (heads.n_heads, heads.d_head)
            g = activate(linear(x, "self_attn.g_proj", "qkv.gate", width), "softplus")
            return scale(a, g) if c.gate_per_head else a * g

        window = c.window if sliding else None
        return attention(heads, x, "self_attn.", bias=c.attention_bias, prepare=prepare, gate=gate, window=window)

    def choose(c, logits: Data) -> Data:
        bias = routing_bias(c, "mlp.experts.e_score_correction_bias", role="parameter")
        logits = soft_cap(logits, None if isinstance(c.router_cap, Unknown) else c.router_cap)
        return route(logits, c.n_active_experts, "sigmoid", bias=bias, normalise=True, factor=c.routed_scale)

    def check(c) -> None:
        check_sliding_or_full(c)
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
            found, sizes = (
                f"has {len(c.heads_by_layer)} entries for " + FieldName("n_layers") + f" = {c.n_layers}",
                (len(c.heads_by_layer), c.n_layers),
            )
            raise ParamcountError(
                found, where=FieldName("heads_by_layer"), expected="one number per layer, or an empty list", sizes=sizes
            )
        if SLIDING[1] in c.layer_types:
            check_at_most(c, "d_rope", "d_head")
        if SLIDING[0] in c.layer_types:
            check_at_most(c, "d_rope_sliding", "d_head")

    def unused_fields(c) -> tuple[str, ...]:
        return ("n_kv_heads",) if c.heads_by_layer else ()  # n_heads is of no layer then
