"""Nemotron-H and Nemotron 3 Nano: every layer is a single mixer.

It is Mamba 2, attention without positions, an MLP or experts.
"""

from paramcount.declare import Data, ops, parts, sizes

LETTERS = {"M": "linear_attention", "E": "moe", "*": "full_attention", "-": "mlp"}
KINDS = (*LETTERS.values(), "mamba", "attention")  # the last two are the older words for the first and the third


def kinds(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """hybrid_override_pattern has a letter for each layer."""
    pattern = js.get("hybrid_override_pattern", "ME*-")
    for letter in pattern:
        if letter not in LETTERS:
            raise sizes.make_value_error(pattern, "hybrid_override_pattern", " ".join(LETTERS))
    return tuple(LETTERS[letter] for letter in pattern)


def count_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    words = next((js[key] for key in ("layer_types", "layers_block_type") if js.get(key) is not None), None)
    return len(kinds(js, c)) if words is None else len(words)


def pattern_is_known(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """It is read wherever layers_block_type has no value, also where the other name of that key counts in the end."""
    if js.get("layers_block_type") is None:
        kinds(js, c)


def routing(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if "moe" in c["layer_types"]:
        sizes.grouped_routing(1, 1)(js, c)


class NemotronH(parts.RoutedExperts, parts.Decoder):
    """Source: arXiv:2504.03624, section 2; NemotronHBlock of the reference."""

    reference = "NemotronHForCausalLM"
    state_dtype = "float32"
    gguf = "nemotron_h_moe nemotron_h"
    gguf_kv_heads_by_layer = True
    tie_word_embeddings = sizes.constant(False)
    reference_names = {"backbone.": "model."}
    copied_modules = ("modeling_nemotron_h",)
    not_adapted = ("out_proj", "conv1d")
    prefix = "backbone."
    names = ("embeddings", "layers", "norm_f")
    unused_keys = ("num_hidden_layers", "time_step_rank")
    own_layer_types = True  # it has words of its own
    conditions = (
        pattern_is_known,
        routing,
        sizes.null_counts("layer_types"),
        sizes.null_counts("num_local_experts", "moe"),
        sizes.null_counts("n_routed_experts"),
    )

    layer_types: sizes.Words = sizes.hf("layer_types", "layers_block_type", absent=kinds, null=sizes.ABSENT)
    n_layers: sizes.Natural = sizes.derived(count_layers)
    n_heads: sizes.Positive = sizes.hf()
    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf()
    n_mamba_heads: sizes.Positive = sizes.hf("mamba_num_heads")
    d_mamba_head: sizes.Positive = sizes.hf("mamba_head_dim")
    n_groups: sizes.Positive = sizes.hf("mamba_n_groups", "n_groups")
    d_state: sizes.Positive = sizes.hf("ssm_state_size")
    d_conv: sizes.Positive = sizes.hf("mamba_d_conv", "conv_kernel")
    conv_bias: sizes.Flag = sizes.hf("mamba_conv_bias", "use_conv_bias")
    mixer_bias: sizes.Flag = sizes.hf("use_bias")
    d_ff: sizes.Natural = sizes.hf()
    mlp_bias: sizes.Flag = sizes.hf()
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "n_routed_experts", null=1)
    d_shared_expert: sizes.Positive = sizes.hf("moe_shared_expert_intermediate_size")
    d_expert_latent: sizes.Positive | None = sizes.hf(
        "moe_latent_size", absent=None
    )  # what the routed experts read and write instead of d_model

    activation = sizes.setting("mlp_hidden_act")
    mixer_activation = sizes.setting("mamba_hidden_act")
    norm_eps = sizes.setting("layer_norm_epsilon")
    time_step_limit = sizes.setting(default=sizes.least_time_step("mamba_dt_min", "time_step_min"))
    norm_topk_prob = sizes.setting("norm_topk_prob")
    routed_scale = sizes.setting("routed_scaling_factor")
    n_expert_groups = sizes.setting("n_group")
    n_active_groups = sizes.setting("topk_group")
    kinds = parts.layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        h = c.norm(x, "norm")
        if kind in ("linear_attention", "mamba"):
            return x + parts.mamba2(c, h, "mixer.", activation=c.mixer_activation)
        if kind in ("full_attention", "attention"):
            return x + c.self_attention(h, "mixer.", prepare=c.normalise_heads)
        return x + (c.mlp(h, "mixer.", "mlp", c.d_ff) if kind == "mlp" else c.experts(h, "mixer."))

    def mlp(c, x: Data, prefix: str, component: str, d_ff: ops.Size) -> Data:
        names = (prefix + "up_proj", prefix + "down_proj")
        return parts.plain_mlp(x, names, component, d_ff, activation=c.activation, bias=c.mlp_bias)

    def experts(c, x: Data, prefix: str) -> Data:
        """Experts without gates, which may work in a latent that all of them share, plus one for every token."""
        scores = c.choose(ops.linear(x, prefix + "gate", "router", c.n_routed_experts))  # [n, experts], 0 if not chosen
        h, latent = x, c.d_expert_latent
        if latent is not None:
            h = ops.linear(x, prefix + "fc1_latent_proj", "other", latent, bias=c.mlp_bias)
        y = ops.experts(h, scores, prefix + "experts.{expert}.", c.n_routed_experts, c.n_active_experts, c.expert)
        if latent is not None:
            y = ops.linear(y, prefix + "fc2_latent_proj", "other", x.shape[-1], bias=c.mlp_bias)
        return y + c.mlp(x, prefix + "shared_experts.", "shared_experts", c.d_shared_expert)

    def expert(c, x: Data) -> Data:
        return parts.plain_mlp(x, ("up_proj", "down_proj"), "experts", c.d_expert, activation=c.activation)

    def choose(c, logits: Data) -> Data:
        bias = parts.routing_bias(c, "mixer.gate.e_score_correction_bias")
        scores = ops.activate(logits, "sigmoid")  # [n, experts]
        merit = ops.add_routing_bias(scores, bias)
        merit = ops.limit_to_groups(merit, c.n_expert_groups, c.n_active_groups, "top 2")  # others at -∞
        weights = ops.top_k(scores, c.n_active_experts, merit)  # [n, experts], 0 for those not chosen
        return ops.scale_by(ops.normalise_weights(weights, c.norm_topk_prob, least_sum=1e-20), c.routed_scale)

    def unused_fields(c) -> tuple[str, ...]:
        return (
            *sizes.list_unused_fields(c.layer_types),
            *(
                ()
                if "moe" in c.layer_types
                else ("n_routed_experts", "n_active_experts", "d_expert", "d_shared_expert")
            ),
        )

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)
