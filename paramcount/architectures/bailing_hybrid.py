"""Ling 3.0: five layers with a gated delta rule and one with gated latent attention in turn, DeepSeek-V3's experts."""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data, Size, Weight, activate, linear, scale
from paramcount.parts.decoders import layers_by_type_and_mlp
from paramcount.parts.feed_forward import shared_mixture
from paramcount.parts.latent_decoder import RoutedLatentDecoder
from paramcount.parts.linear_attention import delta_rule, gated_output, streams_apart
from paramcount.parts.mla import Latent, latent_attention, rotate_pairs
from paramcount.sizes import Flag, Indices, Natural, Positive, Words, equal_to, per_layer, rotary, setting
from paramcount.sizes.conditions import grouped_routing, latent_heads_stay_whole, not_null, padding_in_table
from paramcount.sizes.fields import ABSENT, ConfigJson, FieldValues, derived, hf
from paramcount.sizes.layer_types import check_no_types, dense_by_type, first_dense, needed
from paramcount.sizes.mixers import unless
from paramcount.sizes.rules import check_even, check_experts_exist, check_layer_types, check_rotated_in_pairs

KINDS = ("linear_attention", "full_attention")


def last_of_group(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    size = check_no_types(js, "layer_group_size", 6)
    return tuple(KINDS[(i + 1) % size == 0] for i in per_layer(c))


def heads_stay_whole(js: ConfigJson, c: FieldValues) -> None:
    if "full_attention" in c["layer_types"]:
        latent_heads_stay_whole(32)(js, c)


def groups_fit(js: ConfigJson, c: FieldValues) -> None:
    """The number of groups goes by two names."""
    key = "num_expert_group" if "num_expert_group" in js else "n_group"
    grouped_routing(8, 4, (key,))(js, c)


def read_decay_floor(config: Mapping[str, Any], c: Any) -> float | None:
    """The least logarithm of the decay of linear attention, if there is one."""
    return config.get("kda_lower_bound", -5.0) if config.get("kda_safe_gate", True) else None


class BailingHybrid(RoutedLatentDecoder):
    """Source: BailingHybridDecoderLayer of the reference. It ignores tie_word_embeddings: the head is never tied."""

    reference = "BailingHybridForCausalLM"
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
        padding_in_table(156892),
        not_null("n_group", "topk_group", "num_local_experts", "num_experts_per_tok", "n_shared_experts"),
    )
    tie_word_embeddings: ClassVar[bool] = False

    layer_types: Words = hf(absent=last_of_group, null=ABSENT)
    n_heads: Positive = hf()
    d_kv_lora: Positive = hf()
    d_nope: Positive = hf()
    d_rope: Positive = hf()
    d_v: Positive = hf()
    n_linear_heads: Positive = hf("linear_num_heads", absent=equal_to("n_heads"), null=unless(("linear_attention",)))
    d_linear_head: Positive = hf("linear_head_dim", "head_dim", null=unless(("linear_attention",)))
    d_conv: Positive = hf("linear_conv_kernel_dim", "short_conv_kernel_size", null=unless(("linear_attention",)))
    d_ff: Natural = hf()
    dense_layers: Indices = derived(dense_by_type(first_dense(2)))
    d_expert: Natural = hf()
    n_routed_experts: Natural = hf("num_experts", "num_local_experts", null=needed("num_experts"))
    n_active_experts: Natural = hf("num_experts_per_token", "num_experts_per_tok", null=needed("num_experts_per_token"))
    n_shared_experts: Natural = hf("num_shared_experts", "n_shared_experts", null=needed("num_shared_experts"))
    attention_bias: Flag = hf()

    rope = rotary(6_000_000, positions=262144)
    pairing = "interleaved"
    norm_topk_prob = setting("moe_renormalize", "norm_topk_prob", default=True)
    n_groups = setting("num_expert_group", "n_group", default=8)
    n_active_groups = setting("topk_group", default=4)
    decay_floor = setting(default=read_decay_floor)
    kinds = layers_by_type_and_mlp

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, density = kind
        h = c.norm(x, "input_layernorm")
        x = x + (c.attention if word == "full_attention" else c.delta_attention)(h, "attention.")
        h = c.norm(x, "post_attention_layernorm")
        if density == "moe":
            return x + shared_mixture(c, h, "mlp.", choose=c.choose)
        return x + c.gated_mlp(h)

    def attention(c, x: Data, prefix: str) -> Data:
        """Latent attention with one gate for each head, queries without a latent."""
        sizes = Latent(c.n_heads, None, c.d_kv_lora, c.d_nope, c.d_rope, c.d_v)
        return latent_attention(
            sizes,
            x,
            prefix,
            bias=c.attention_bias,
            gate=lambda x, a: head_gate(c.n_heads, x, a, prefix + "g_proj"),
            output="dense",
            turn=rotate_pairs(c),
            scale=c.attention_scale,
        )

    def delta_attention(c, x: Data, prefix: str) -> Data:
        """Kimi Delta Attention: one state per head that decays per channel and is corrected towards each new value.

        Source: arXiv:2510.26692.
        """
        heads, width = (c.n_linear_heads, c.d_linear_head), c.n_linear_heads * c.d_linear_head
        q, k, v = streams_apart(c, x, prefix, heads, heads)
        step = linear(x, prefix + "f_proj", "mixer.step", heads)
        beta = activate(linear(x, prefix + "b_proj", "mixer.beta", c.n_linear_heads), "sigmoid")
        rate = Weight(prefix + "A_log", "mixer.state", (c.n_linear_heads,))
        bias = Weight(prefix + "dt_bias", "mixer.state", (width,))
        y = delta_rule(q, k, v, step, beta, rate, bias, floor=c.decay_floor)
        z = linear(x, prefix + "g_proj", "mixer.gate", heads)
        names = (prefix + "o_norm", prefix + "dense")
        return gated_output(y, z, *names, c.d_model, eps=c.norm_eps, activation="sigmoid")

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)
        check_experts_exist(c)
        if "full_attention" in c.layer_types:
            check_even(c, "d_rope")
            check_rotated_in_pairs(c, "d_rope")
        elif c.d_rope % 2 and c.d_rope > 4:
            raise ParamcountError(
                f"= {c.d_rope} is odd, but rotary embedding rotates pairs",
                where=FieldName("d_rope"),
                expected="an even number",
            )


def head_gate(n_heads: Size, x: Data, a: Data, name: str) -> Data:
    return scale(a, activate(linear(x, name, "qkv.gate", (n_heads, 1)), "sigmoid"))
