"""Inkling: a learned bias by distance instead of rotary positions, and short convolutions.

They follow keys, values and every sublayer. Shared experts take part in the softmax of the router.
"""

from typing import Any, ClassVar, NamedTuple

from paramcount.errors import FieldName, ParamcountError, describe_value
from paramcount.flow import Data, Weight, attend, convolve, experts, is_known, layers, route, split, to_heads
from paramcount.flow.operations.elementwise import activate, rms_norm, scale_by, scale_by_position
from paramcount.flow.operations.linear import fused, linear, linear_by_head, lookup, multiply_vector
from paramcount.parts.attentions import Heads
from paramcount.parts.decoders import typed_layers
from paramcount.parts.feed_forward import gated_mlp, routing_bias
from paramcount.parts.stacked import packed_mlp
from paramcount.sizes import ABSENT, ConfigJson, FieldValues, Sizes, derived, hf, per_layer, setting
from paramcount.sizes.conditions import not_null, padding_in_table, unused_rope_fits_heads
from paramcount.sizes.layer_types import check_no_types, dense_by_type, unused
from paramcount.sizes.rules import check_divides, check_layer_types
from paramcount.sizes.setting_kinds import DIVISOR
from paramcount.sizes.types import Indices, Natural, Positive, Words

KINDS = ("hybrid", "hybrid_sliding")


def words(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    local = js.get("local_layer_ids")
    if local is not None and not (isinstance(local, (list, tuple)) and all(type(i) is int for i in local)):
        raise ParamcountError(f"= {describe_value(local)}", where="local_layer_ids", expected="layer indices")
    return tuple(KINDS[i in local if local is not None else (i + 1) % 6 > 0] for i in per_layer(c))


def widths(js: ConfigJson, c: FieldValues) -> tuple[int, int]:
    """Of a dense layer and of an expert.

    Released files call the second one intermediate_size where they name the first another way.
    """
    if js.get("dense_intermediate_size") is not None:
        return check_no_types(js, "dense_intermediate_size", 0), check_no_types(js, "intermediate_size", 24576)
    return check_no_types(js, "intermediate_size", 24576), check_no_types(js, "moe_intermediate_size", 3072)


class InklingBody(Sizes):
    """What Inkling and Inkling 2 have in common: layers with a window have heads of their own number and width."""

    conditions = (not_null("n_routed_experts"), padding_in_table(None), unused_rope_fits_heads)

    vocab_size: Positive = hf()
    d_model: Positive = hf()
    n_layers: Natural = hf()
    n_heads: Positive = hf()
    n_kv_heads: Positive = hf()
    d_head: Positive = hf()
    n_sliding_heads: Positive = hf("swa_num_attention_heads")
    n_sliding_kv_heads: Positive = hf("swa_num_key_value_heads")
    d_sliding_head: Positive = hf("swa_head_dim")
    layer_types: Words = hf(absent=words, null=ABSENT)
    window: Positive = hf("sliding_window", "sliding_window_size")
    d_relative: Positive = hf("d_rel")
    n_distances: Positive = hf("rel_extent")
    d_conv: Positive = hf("sconv_kernel_size", "conv_kernel_size")

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)
        if KINDS[1] in c.layer_types:
            check_divides(c, "n_sliding_kv_heads", "n_sliding_heads")

    def unused_fields(c) -> tuple[str, ...]:
        return () if KINDS[0] in c.layer_types else ("n_kv_heads",)


class Names(NamedTuple):
    """Of modules in a checkpoint."""

    embedding: str = "embed_tokens"
    embedding_norm: str = "embed_tokens.embed_norm"
    head: str = "lm_head"
    attention: str = "self_attn."
    qkvro: tuple[str, str, str, str, str] = ("q_proj", "k_proj", "v_proj", "r_proj", "o_proj")
    convolution: str = "sconv.conv1d"
    norms: tuple[str, str] = ("input_layernorm", "post_attention_layernorm")
    routing_bias: str = "mlp.gate.e_score_correction_bias"


class InklingText(InklingBody):
    """Source: InklingDecoderLayer and InklingTopkRouter of the reference."""

    reference = "InklingForCausalLM"
    base_model = "InklingTextModel"
    prefix: ClassVar[str] = "model."
    names: ClassVar[Names] = Names()
    float32 = ("attn_sconv", "mlp_sconv", "k_sconv", "v_sconv", "e_score_correction_bias", "gate.global_scale")

    d_ff: Natural = derived(lambda js, c: widths(js, c)[0])
    dense_layers: Indices = derived(
        dense_by_type(lambda js, c: tuple(range(min(check_no_types(js, "dense_mlp_idx", 0), c["n_layers"]))))
    )
    d_expert: Natural = derived(lambda js, c: widths(js, c)[1])
    n_routed_experts: Positive = hf("num_local_experts", "n_routed_experts", null=unused)
    n_active_experts: Natural = hf()
    n_shared_experts: Natural = hf()

    activation = setting("hidden_act", default="silu")
    norm_eps = setting("rms_norm_eps", default=1e-6)
    scaling_floor = setting("log_scaling_n_floor", default=None)
    scaling_alpha = setting("log_scaling_alpha", default=0.1)
    route_scale = setting("route_scale", default=8.0)
    width_multiplier = setting("logits_mup_width_multiplier", "embedding_multiplier", default=24.0, kind=DIVISOR)
    unpadded_vocab_size = setting("unpadded_vocab_size", default=None)

    def forward(c, tokens: Data) -> Data:
        return c.decode(c.embed(tokens))

    def embed(c, tokens: Data) -> Data:
        table = f"{c.prefix}{c.names.embedding}.weight"
        return c.norm(lookup(tokens, table, "embedding", c.vocab_size, c.d_model), c.prefix + c.names.embedding_norm)

    def decode(c, x: Data) -> Data:
        """Embedded tokens to logits."""
        x = layers(x, c.prefix + "layers.{layer}.", typed_layers(c.layer_types, c.dense_layers), c.layer)
        x = c.norm(x, c.prefix + "norm")
        x = scale_by(x, 1 / c.width_multiplier if is_known(c.width_multiplier) else c.width_multiplier)
        logits, n = linear(x, c.names.head, "lm_head", c.vocab_size), c.unpadded_vocab_size
        return split(logits, n, c.vocab_size - n)[0] if isinstance(n, int) and n < c.vocab_size else logits

    def norm(c, x: Data, name: str) -> Data:
        return rms_norm(x, name, c.norm_eps)

    def layer(c, kind: tuple[str, str], x: Data) -> Data:
        word, mlp = kind
        a = c.attention(c.norm(x, c.names.norms[0]), c.names.attention, slides=word == KINDS[1])
        x = x + convolved(a, "attn_" + c.names.convolution, c.d_conv)
        h = c.norm(x, c.names.norms[1])
        y = c.moe(h) if mlp == "moe" else multiply_vector(c.dense(h), "mlp.global_scale", "other", 1)
        return x + convolved(y, "mlp_" + c.names.convolution, c.d_conv)

    def attention(c, x: Data, prefix: str, *, slides: bool) -> Data:
        """Scores are not divided by √d but by d. Every head mixes learned profiles to a bias for each distance."""
        heads = heads_of(c, slides=slides)
        q_name, k_name, v_name, r_name, o_name = (prefix + name for name in c.names.qkvro)

        def kept(name: str, letter: str) -> Data:
            """Keys or values: a short convolution over the last tokens before the reshape to heads."""
            y = linear(x, name, f"qkv.{letter}", heads.n_kv_heads * heads.d_head)
            y = convolved(y, f"{prefix}{letter}_{c.names.convolution}", c.d_conv)
            return to_heads(y, heads.n_kv_heads, heads.d_head)

        q = c.norm(linear(x, q_name, "qkv.q", (heads.n_heads, heads.d_head)), prefix + "q_norm")
        k, v = c.norm(kept(k_name, "k"), prefix + "k_norm"), kept(v_name, "v")
        of_heads = linear(x, r_name, "qkv.relative", (heads.n_heads, c.d_relative))
        bias = mix_profiles(c, of_heads, prefix, slides=slides)
        if not slides:
            floor, alpha = c.scaling_floor, c.scaling_alpha
            q, bias = (scale_by_position(y, "log of ratio", floor, alpha, first=1) for y in (q, bias))
        scale, window = 1 / heads.d_head if isinstance(heads.d_head, int) else None, c.window if slides else None
        a = attend(q, k, v, bias, by_distance="in tokens", scale=scale, window=window)
        return linear(a, o_name, "output_projection", c.d_model)

    def dense(c, x: Data) -> Data:
        return gated_mlp(x, "mlp.", "mlp", c.d_ff, activation=c.activation)

    def moe(c, x: Data) -> Data:
        """The weights of the chosen experts and of the shared ones, which the router scores too, sum to one."""
        n, n_shared = c.n_routed_experts, c.n_shared_experts
        logits = linear(x, "mlp.gate", "router", n + n_shared)
        bias = routing_bias(c, c.names.routing_bias)
        rules = {"normalise": True, "factor": c.route_scale, "n_always": n_shared}
        weights = route(logits, c.n_active_experts, "sigmoid", bias=bias, **rules)
        routed, shared = split(multiply_vector(weights, "mlp.gate.global_scale", "router", 1), n, n_shared)
        y = experts(x, shared, "mlp.shared_experts.", n_shared, n_shared, c.shared_expert, stacked=True)
        return experts(x, routed, "mlp.experts.", n, c.n_active_experts, c.expert, stacked=True) + y

    def expert(c, x: Data) -> Data:
        return packed_mlp(x, "experts", c.d_expert, activation=c.activation)

    def shared_expert(c, x: Data) -> Data:
        gate, up = (
            fused(x, f"{name}_proj", {f"shared_experts.{name}": c.d_expert}, suffixes=("", ""))[0]
            for name in ("gate", "up")
        )
        y = activate(gate, c.activation) * up
        return fused(y, "down_proj", {"shared_experts.down": c.d_model}, suffixes=("", ""))[0]

    def check(c) -> None:
        super().check()
        if not c.n_shared_experts and len(c.dense_layers) < c.n_layers:
            raise ParamcountError(
                "= 0, but the router scores them too",
                where=FieldName("n_shared_experts"),
                expected="a positive integer",
            )


def heads_of(c: Any, *, slides: bool) -> Heads:
    return (
        Heads(c.n_sliding_heads, c.n_sliding_kv_heads, c.d_sliding_head)
        if slides
        else Heads(c.n_heads, c.n_kv_heads, c.d_head)
    )


def mix_profiles(c: Any, of_heads: Data, prefix: str, *, slides: bool) -> Data:
    """A bias for each distance: the mixture of learned profiles that each head asks for, [n, heads, distances]."""
    n_distances = c.window if slides else c.n_distances
    profiles = Weight(prefix + "rel_logits_proj.proj", "position", (c.d_relative, n_distances))
    return linear_by_head(of_heads, n_distances, profiles, transposed=True, of="all heads")


def convolved(x: Data, name: str, d_conv: Any) -> Data:
    """x and a convolution over its last tokens."""
    return x + convolve(x, name, d_conv, bias=False)
