"""Nemotron-H and Nemotron 3 Nano: every layer is a single mixer.

It is Mamba 2, attention without positions, an MLP or experts.
"""

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Size, experts, linear, route
from paramcount.parts.decoder import Decoder
from paramcount.parts.decoders import layers_by_type
from paramcount.parts.feed_forward import plain_mlp, routing_bias
from paramcount.parts.state_space import mamba2
from paramcount.sizes import ABSENT, ConfigJson, FieldValues, Flag, Natural, Positive, Words, derived, hf, setting
from paramcount.sizes.conditions import grouped_routing
from paramcount.sizes.mixers import least_time_step, list_unused_fields, null_counts
from paramcount.sizes.rules import check_layer_types

LETTERS = {"M": "linear_attention", "E": "moe", "*": "full_attention", "-": "mlp"}
KINDS = (*LETTERS.values(), "mamba", "attention")  # the last two are the older words for the first and the third


def kinds(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    """hybrid_override_pattern has a letter for each layer."""
    pattern = js.get("hybrid_override_pattern", "ME*-")
    for letter in pattern:
        if letter not in LETTERS:
            raise ParamcountError(
                f"= {describe_value(pattern)}", where="hybrid_override_pattern", expected=" ".join(LETTERS)
            )
    return tuple(LETTERS[letter] for letter in pattern)


def count_layers(js: ConfigJson, c: FieldValues) -> int:
    words = next((js[key] for key in ("layer_types", "layers_block_type") if js.get(key) is not None), None)
    return len(kinds(js, c)) if words is None else len(words)


def pattern_is_known(js: ConfigJson, c: FieldValues) -> None:
    """It is read wherever layers_block_type has no value, also where the other name of that key counts in the end."""
    if js.get("layers_block_type") is None:
        kinds(js, c)


def routing(js: ConfigJson, c: FieldValues) -> None:
    if "moe" in c["layer_types"]:
        grouped_routing(1, 1)(js, c)


class NemotronH(Decoder):
    """Source: arXiv:2504.03624, section 2; NemotronHBlock of the reference."""

    reference = "NemotronHForCausalLM"
    state_dtype = "float32"
    gguf = "nemotron_h_moe nemotron_h"
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
        null_counts("layer_types"),
        null_counts("num_local_experts", "moe"),
        null_counts("n_routed_experts"),
    )

    layer_types: Words = hf("layer_types", "layers_block_type", absent=kinds, null=ABSENT)
    n_layers: Natural = derived(count_layers)
    n_heads: Positive = hf()
    n_kv_heads: Positive = hf()
    d_head: Positive = hf()
    n_mamba_heads: Positive = hf("mamba_num_heads")
    d_mamba_head: Positive = hf("mamba_head_dim")
    n_groups: Positive = hf("mamba_n_groups", "n_groups")
    d_state: Positive = hf("ssm_state_size")
    d_conv: Positive = hf("mamba_d_conv", "conv_kernel")
    conv_bias: Flag = hf("mamba_conv_bias", "use_conv_bias")
    mixer_bias: Flag = hf("use_bias")
    d_ff: Natural = hf()
    mlp_bias: Flag = hf()
    n_routed_experts: Positive = hf("num_local_experts", "n_routed_experts", null=1)
    n_active_experts: Natural = hf()
    d_expert: Natural = hf()
    d_shared_expert: Positive = hf("moe_shared_expert_intermediate_size")
    d_expert_latent: Positive | None = hf(
        "moe_latent_size", absent=None
    )  # what the routed experts read and write instead of d_model

    activation = setting("mlp_hidden_act", default="relu2")
    mixer_activation = setting("mamba_hidden_act", default="silu")
    norm_eps = setting("layer_norm_epsilon", default=1e-5)
    time_step_limit = setting(default=least_time_step("mamba_dt_min", "time_step_min"))
    norm_topk_prob = setting("norm_topk_prob", default=True)
    routed_scale = setting("routed_scaling_factor", default=1.0)
    n_expert_groups = setting("n_group", default=1)
    n_active_groups = setting("topk_group", default=1)
    kinds = layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        h = c.norm(x, "norm")
        if kind in ("linear_attention", "mamba"):
            return x + mamba2(c, h, "mixer.", groups=c.n_groups, activation=c.mixer_activation)
        if kind in ("full_attention", "attention"):
            return x + c.self_attention(h, "mixer.", rotate=False)
        return x + (c.mlp(h, "mixer.", "mlp", c.d_ff) if kind == "mlp" else c.experts(h, "mixer."))

    def mlp(c, x: Data, prefix: str, component: str, d_ff: Size) -> Data:
        names = (prefix + "up_proj", prefix + "down_proj")
        return plain_mlp(x, names, component, d_ff, activation=c.activation, bias=c.mlp_bias)

    def experts(c, x: Data, prefix: str) -> Data:
        """Experts without gates, which may work in a latent that all of them share, plus one for every token."""
        scores = c.choose(linear(x, prefix + "gate", "router", c.n_routed_experts))
        h, latent = x, c.d_expert_latent
        if latent is not None:
            h = linear(x, prefix + "fc1_latent_proj", "other", latent, bias=c.mlp_bias)
        y = experts(h, scores, prefix + "experts.{expert}.", c.n_routed_experts, c.n_active_experts, c.expert)
        if latent is not None:
            y = linear(y, prefix + "fc2_latent_proj", "other", x.shape[-1], bias=c.mlp_bias)
        return y + c.mlp(x, prefix + "shared_experts.", "shared_experts", c.d_shared_expert)

    def expert(c, x: Data) -> Data:
        return plain_mlp(x, ("up_proj", "down_proj"), "experts", c.d_expert, activation=c.activation)

    def choose(c, logits: Data) -> Data:
        bias = routing_bias(c, "mixer.gate.e_score_correction_bias")
        groups = {"n_groups": c.n_expert_groups, "n_active_groups": c.n_active_groups, "group_score": "top 2"}
        rules = {"normalise": c.norm_topk_prob, "factor": c.routed_scale, "least_sum": 1e-20, **groups}
        return route(logits, c.n_active_experts, "sigmoid", bias=bias, **rules)

    def unused_fields(c) -> tuple[str, ...]:
        return (
            *list_unused_fields(c.layer_types),
            *(
                ()
                if "moe" in c.layer_types
                else ("n_routed_experts", "n_active_experts", "d_expert", "d_shared_expert")
            ),
        )

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)
