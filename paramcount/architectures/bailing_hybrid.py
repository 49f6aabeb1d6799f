"""Ling 3.0: five layers with a gated delta rule and one with gated latent attention in turn, DeepSeek-V3's experts."""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

KINDS = ("linear_attention", "full_attention")


def last_of_group(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    size = sizes.check_no_types(js, "layer_group_size", 6)
    return tuple(KINDS[(i + 1) % size == 0] for i in sizes.per_layer(c))


def heads_stay_whole(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if "full_attention" in c["layer_types"]:
        sizes.latent_heads_stay_whole(32)(js, c)


def groups_fit(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The number of groups goes by two names."""
    key = "num_expert_group" if "num_expert_group" in js else "n_group"
    sizes.grouped_routing(8, 4, (key,))(js, c)


class BailingHybrid(parts.RoutedLatentDecoder):
    """Source: BailingHybridDecoderLayer of the reference. It ignores tie_word_embeddings: the head is never tied."""

    reference = "BailingHybridForCausalLM"
    is_section_type = False
    rotated = None
    d_q_lora = sizes.constant(None)
    reference_names = {
        ".attention.": ".self_attn.",
        ".self_attn.f_proj.": ".self_attn.forget_gate.f_proj.",
    }
    modules = {".attention.dense": (".self_attn.o_proj",), ".word_embeddings": (".embed_tokens",)}
    names = ("word_embeddings", "layers", "norm")
    routing_bias = "mlp.gate.expert_bias"
    float32 = (
        "e_score_correction_bias", "conv1d", "dt_bias", "A_log",
        *("expert_bias", "q_conv1d", "k_conv1d", "v_conv1d"),  # as saved
    )  # fmt: skip
    conditions = (
        groups_fit,
        heads_stay_whole,
        sizes.padding_in_table(156892),
        sizes.not_null("n_group", "topk_group", "num_local_experts", "num_experts_per_tok", "n_shared_experts"),
    )
    tie_word_embeddings = sizes.constant(False)

    layer_types: sizes.Words = sizes.hf(absent=last_of_group, null=sizes.ABSENT)
    n_linear_heads: sizes.Positive = sizes.hf(
        "linear_num_heads", absent=sizes.equal_to("n_heads"), null=sizes.unless(("linear_attention",))
    )
    d_linear_head: sizes.Positive = sizes.hf("linear_head_dim", "head_dim", null=sizes.unless(("linear_attention",)))
    d_conv: sizes.Positive = sizes.hf(
        "linear_conv_kernel_dim", "short_conv_kernel_size", null=sizes.unless(("linear_attention",))
    )
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(sizes.first_dense(2)))
    n_routed_experts: sizes.Natural = sizes.hf(
        "num_experts", "num_local_experts", null=sizes.needed("num_experts"), late=True
    )
    n_active_experts: sizes.Natural = sizes.hf(
        "num_experts_per_token", "num_experts_per_tok", null=sizes.needed("num_experts_per_token"), late=True
    )
    n_shared_experts: sizes.Natural = sizes.hf(
        "num_shared_experts", "n_shared_experts", null=sizes.needed("num_shared_experts")
    )

    rope = sizes.rotary(6_000_000)
    pairing = "interleaved"
    norm_topk_prob = sizes.setting("moe_renormalize", "norm_topk_prob")
    n_groups = sizes.setting("num_expert_group", "n_group")
    # The least logarithm of the decay of linear attention, if there is one.
    decay_floor = sizes.setting(
        default=lambda config, c: config.get("kda_lower_bound", -5.0) if config.get("kda_safe_gate", True) else None
    )
    kinds = parts.layers_by_type_and_mlp

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, density = kind
        h = c.norm(x, "input_layernorm")
        x = x + (c.attention if word == "full_attention" else c.delta_attention)(h, "attention.")
        h = c.norm(x, "post_attention_layernorm")
        if density == "moe":
            return x + parts.shared_mixture(c, h, "mlp.", choose=c.choose)
        return x + c.gated_mlp(h)

    def attention(c, x: Data, prefix: str) -> Data:
        """Latent attention with one gate for each head, queries without a latent."""
        widths = parts.Latent(c.n_heads, None, c.d_kv_lora, c.d_nope, c.d_rope, c.d_v)
        turn, bias = parts.rotate_pairs(c), c.attention_bias
        latents = parts.cache_latents(widths, x, prefix, bias=bias, turn=turn)  # [m, d_kv_lora] and [m, d_rope]
        k, v = parts.expand_latents(widths, latents, prefix)  # [m, n_heads, d_nope + d_rope] and [m, n_heads, d_v]
        q = parts.turn_queries(
            widths, parts.queries(widths, x, prefix, bias=bias), turn
        )  # [n, n_heads, d_nope + d_rope]
        a = ops.attend(q, k, v, mask=ops.Causal(), scale=c.attention_scale)  # [n, n_heads, d_v]
        a = head_gate(c.n_heads, x, a, prefix + "g_proj")
        return parts.project_output(a, prefix + "dense", c.d_model, bias=bias)

    def delta_attention(c, x: Data, prefix: str) -> Data:
        """Kimi Delta Attention: one state per head that decays per channel and is corrected towards each new value.

        Source: arXiv:2510.26692.
        """
        heads, width = (c.n_linear_heads, c.d_linear_head), c.n_linear_heads * c.d_linear_head
        q, k, v = parts.streams_apart(c, x, prefix, heads, heads)
        step = ops.linear(x, prefix + "f_proj", "mixer.step", heads)
        beta = ops.activate(ops.linear(x, prefix + "b_proj", "mixer.beta", c.n_linear_heads), "sigmoid")
        rate = ops.Weight(prefix + "A_log", "mixer.state", (c.n_linear_heads,))
        bias = ops.Weight(prefix + "dt_bias", "mixer.state", (width,))
        y = parts.delta_rule(q, k, v, step, beta, rate, bias, floor=c.decay_floor)
        z = ops.linear(x, prefix + "g_proj", "mixer.gate", heads)
        names = (prefix + "o_norm", prefix + "dense")
        return parts.gated_output(y, z, *names, c.d_model, eps=c.norm_eps, activation="sigmoid")

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)
        if "full_attention" in c.layer_types:
            sizes.check_even(c, "d_rope")
            sizes.check_rotated_in_pairs(c, "d_rope")
        elif c.d_rope % 2 and c.d_rope > 4:
            raise ParamcountError(
                f"= {c.d_rope} is odd, but rotary embedding rotates pairs",
                where=FieldName("d_rope"),
                expected="an even number",
            )


def head_gate(n_heads: ops.Size, x: Data, a: Data, name: str) -> Data:
    return ops.scale(a, ops.activate(ops.linear(x, name, "qkv.gate", (n_heads, 1)), "sigmoid"))
