"""LongCat-Flash: two attentions and two dense MLPs per layer in parallel with one MoE.

Some of its experts are identities.
"""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError


def layers_of(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The reference reads num_hidden_layers, where it stands, as a number of attentions: two in a layer."""
    return (
        sizes.check_no_types(js, "num_hidden_layers", 56) // 2
        if "num_hidden_layers" in js
        else sizes.check_no_types(js, "num_layers", 28)
    )


def visited(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The most experts with weights that a token visits: it chooses among those that do nothing too."""
    key = "num_experts_per_tok" if "num_experts_per_tok" in js else "moe_topk"
    chosen, n = sizes.check_no_types(js, key, 12), c["n_routed_experts"] + c["n_identity_experts"]
    if not 1 < chosen <= n:  # the reference cannot run with one
        raise ParamcountError(f"= {chosen}, but there are {n} experts", where=key, expected=f"2 to {n}")
    most: int = min(chosen, c["n_routed_experts"])
    return most


def visited_at_least(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """All but those that can do nothing."""
    chosen = sizes.check_no_types(js, "num_experts_per_tok" if "num_experts_per_tok" in js else "moe_topk", 12)
    least: int = max(0, chosen - c["n_identity_experts"])
    return least


def heads_are_rotated_whole(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The rotation is made for head_dim and meets d_rope.

    Queries are made for qk_head_dim and cut into d_nope and d_rope.
    """
    for key, absent, fits in (("head_dim", 64, c["d_rope"]), ("qk_head_dim", None, c["d_nope"] + c["d_rope"])):
        value = js.get(key, absent)
        if value != fits and (value is not None or key == "head_dim"):
            raise sizes.make_value_error(value, key, f"{fits}")


class LongcatFlash(parts.RoutedLatentDecoder):
    """Source: arXiv:2509.01322, section 2; LongcatFlashDecoderLayer."""

    reference = "LongcatFlashForCausalLM"
    linear_routers = (".router.classifier.weight",)
    adapts_experts = True
    linear_by_component = False
    float32_if_float16 = ("classifier.weight",)
    is_section_type = False
    conditions = (heads_are_rotated_whole, sizes.latent_heads_stay_whole(None), sizes.padding_in_table(None))

    n_layers: sizes.Natural = sizes.derived(layers_of)
    d_q_lora: sizes.Positive = sizes.hf()
    d_ff: sizes.Natural = sizes.hf("intermediate_size", "ffn_hidden_size")
    d_expert: sizes.Natural = sizes.hf("moe_intermediate_size", "expert_ffn_hidden_size")
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "n_routed_experts")
    n_identity_experts: sizes.Natural = sizes.hf("zero_expert_num")
    n_active_experts: sizes.Natural = sizes.derived(visited, late=True)
    n_least_experts: sizes.Natural = sizes.derived(visited_at_least)
    router_bias: sizes.Flag = sizes.hf(absent=False)

    rope = sizes.rotary()
    pairing = sizes.setting(default="interleaved")
    n_chosen = sizes.setting("num_experts_per_tok", "moe_topk")

    def layer(c, x: Data) -> Data:
        x = x + c.attention(c.norm(x, "input_layernorm.0"), "self_attn.0.")
        h = c.norm(x, "post_attention_layernorm.0")
        shortcut = c.moe(h)
        x = x + c.gated_mlp(h, "mlps.0.")
        x = x + c.attention(c.norm(x, "input_layernorm.1"), "self_attn.1.")
        h = c.norm(x, "post_attention_layernorm.1")
        return x + c.gated_mlp(h, "mlps.1.") + shortcut

    def attention(c, x: Data, prefix: str) -> Data:
        """Queries and the KV latent are rescaled by what their ranks lack to d_model."""
        q = parts.queries(c, x, prefix, bias=c.attention_bias)
        q = ops.scale_by_root(q, c.d_model, "times √(d_model / rank)", over=c.d_q_lora)
        latents = parts.cache_latents(c, x, prefix, bias=c.attention_bias, rescaled=True)
        k, v = parts.expand_latents(c, latents, prefix)  # [m, n_heads, d_nope + d_rope] and [m, n_heads, d_v]
        a = ops.attend(parts.turn_queries(c, q), k, v, mask=ops.Causal(), scale=c.attention_scale)  # [n, n_heads, d_v]
        return parts.project_output(a, prefix + "o_proj", c.d_model, bias=c.attention_bias)

    def moe(c, x: Data) -> Data:
        n = c.n_routed_experts + c.n_identity_experts
        scores = ops.linear(x, "mlp.router.classifier", "router", n)  # [n, experts + identities]
        bias = ops.Weight("mlp.router.e_score_correction_bias", "router", (n,), role="buffer")
        n_chosen = c.n_chosen if ops.is_known(c.n_chosen) else c.n_active_experts
        weights = ops.route(scores, n_chosen, "softmax", bias=bias, factor=c.routed_scale)
        name, counts = "mlp.experts.{expert}.", (c.n_routed_experts, c.n_active_experts)
        y = ops.experts_and_identities(x, weights, name, *counts, c.expert, c.n_identity_experts)  # [n, d_model]
        return ops.use_at_least(y, c.n_least_experts)

    def expert(c, x: Data) -> Data:
        return parts.gated_mlp(x, "", "experts", c.d_expert, activation=c.activation)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        """LongcatFlashExperts makes gate_up_proj for all experts and down_proj for those that compute.

        Its forward indexes gate_up_proj for these alone. LongcatFlashTopkRouter multiplies with the router's weight and
        never adds its bias.
        """
        x = ops.given("hidden states", "tokens", c.d_model)
        idle = ops.layers(x, "model.layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: identity_experts(c, x))
        found = (ops.Unreachable(idle, "identity experts compute nothing"),)
        if not c.router_bias:
            return found
        n = c.n_routed_experts + c.n_identity_experts
        biases = ops.layers(
            x,
            "model.layers.{layer}.",
            [("layer", c.n_layers)],
            lambda kind, x: ops.add_vector(x, "mlp.router.classifier.bias", "router", n),
        )
        return (*found, ops.Unreachable(biases, "the router multiplies with its weight alone"))


def identity_experts(c: Any, x: Data) -> Data:
    """What is allocated of the experts that hand on what they get."""

    def expert(x: Data) -> Data:
        gate, up = (ops.linear(x, f"{name}_proj", f"experts.{name}", c.d_expert) for name in ("gate", "up"))
        return ops.bundle(x, gate, up)

    return ops.experts(x, x, "mlp.experts.{expert}.", c.n_identity_experts, 0, expert, first=c.n_routed_experts)
