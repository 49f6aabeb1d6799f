"""Inkling: a learned bias by distance instead of rotary positions, and short convolutions.

They follow keys, values and every sublayer. Shared experts take part in the softmax of the router.
"""

from typing import Any, ClassVar, NamedTuple

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

KINDS = ("hybrid", "hybrid_sliding")


def words(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    local = js.get("local_layer_ids")
    if local is not None and not (isinstance(local, (list, tuple)) and all(type(i) is int for i in local)):
        raise sizes.make_value_error(local, "local_layer_ids", "layer indices")
    return tuple(KINDS[i in local if local is not None else (i + 1) % 6 > 0] for i in sizes.per_layer(c))


def widths(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, int]:
    """Of a dense layer and of an expert.

    Released files call the second one intermediate_size where they name the first another way.
    """
    if js.get("dense_intermediate_size") is not None:
        return sizes.check_no_types(js, "dense_intermediate_size", 0), sizes.check_no_types(
            js, "intermediate_size", 24576
        )
    return sizes.check_no_types(js, "intermediate_size", 24576), sizes.check_no_types(js, "moe_intermediate_size", 3072)


class InklingBody(sizes.Sizes):
    """What Inkling and Inkling 2 have in common: layers with a window have heads of their own number and width."""

    conditions = (sizes.not_null("n_routed_experts"), sizes.padding_in_table(None), sizes.unused_rope_fits_heads)

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf()
    n_sliding_heads: sizes.Positive = sizes.hf("swa_num_attention_heads")
    n_sliding_kv_heads: sizes.Positive = sizes.hf("swa_num_key_value_heads")
    d_sliding_head: sizes.Positive = sizes.hf("swa_head_dim")
    layer_types: sizes.Words = sizes.hf(absent=words, null=sizes.ABSENT)
    window: sizes.Positive = sizes.hf("sliding_window", "sliding_window_size")
    d_relative: sizes.Positive = sizes.hf("d_rel")
    n_distances: sizes.Positive = sizes.hf("rel_extent")
    d_conv: sizes.Positive = sizes.hf("sconv_kernel_size", "conv_kernel_size")

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)
        if KINDS[1] in c.layer_types:
            sizes.check_divides(c, "n_sliding_kv_heads", "n_sliding_heads")

    def unused_fields(c) -> tuple[str, ...]:
        return () if KINDS[0] in c.layer_types else ("n_kv_heads",)


class InklingNames(NamedTuple):
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
    names: ClassVar[InklingNames] = InklingNames()
    float32 = ("attn_sconv", "mlp_sconv", "k_sconv", "v_sconv", "e_score_correction_bias", "gate.global_scale")

    d_ff: sizes.Natural = sizes.derived(lambda js, c: widths(js, c)[0])
    dense_layers: sizes.Indices = sizes.derived(
        sizes.dense_by_type(
            lambda js, c: tuple(range(min(sizes.check_no_types(js, "dense_mlp_idx", 0), c["n_layers"])))
        )
    )
    d_expert: sizes.Natural = sizes.derived(lambda js, c: widths(js, c)[1])
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "n_routed_experts", null=sizes.unused)
    n_active_experts: sizes.Natural = sizes.hf()
    n_shared_experts: sizes.Natural = sizes.hf()

    activation = sizes.setting("hidden_act")
    norm_eps = sizes.setting("rms_norm_eps")
    scaling_floor = sizes.setting("log_scaling_n_floor", default=None)
    scaling_alpha = sizes.setting("log_scaling_alpha")
    route_scale = sizes.setting("route_scale")
    width_multiplier = sizes.setting("logits_mup_width_multiplier", "embedding_multiplier", kind=sizes.DIVISOR)
    unpadded_vocab_size = sizes.setting("unpadded_vocab_size", default=None)

    def forward(c, tokens: Data) -> Data:
        return c.decode(c.embed(tokens))

    def embed(c, tokens: Data) -> Data:
        table = f"{c.prefix}{c.names.embedding}.weight"
        return c.norm(
            ops.lookup(tokens, table, "embedding", c.vocab_size, c.d_model), c.prefix + c.names.embedding_norm
        )

    def decode(c, x: Data) -> Data:
        """Embedded tokens to logits."""
        x = ops.layers(x, c.prefix + "layers.{layer}.", parts.typed_layers(c.layer_types, c.dense_layers), c.layer)
        x = c.norm(x, c.prefix + "norm")
        x = ops.scale_by(x, 1 / c.width_multiplier if ops.is_known(c.width_multiplier) else c.width_multiplier)
        logits, n = ops.linear(x, c.names.head, "lm_head", c.vocab_size), c.unpadded_vocab_size
        return ops.split(logits, n, c.vocab_size - n)[0] if isinstance(n, int) and n < c.vocab_size else logits

    def norm(c, x: Data, name: str) -> Data:
        return ops.rms_norm(x, name, c.norm_eps)

    def layer(c, kind: tuple[str, str], x: Data) -> Data:
        word, mlp = kind
        a = c.attention(c.norm(x, c.names.norms[0]), c.names.attention, slides=word == KINDS[1])
        x = x + convolved(a, "attn_" + c.names.convolution, c.d_conv)
        h = c.norm(x, c.names.norms[1])
        y = c.moe(h) if mlp == "moe" else ops.multiply_vector(c.dense(h), "mlp.global_scale", "other", 1)
        return x + convolved(y, "mlp_" + c.names.convolution, c.d_conv)

    def attention(c, x: Data, prefix: str, *, slides: bool) -> Data:
        """Scores are not divided by √d but by d. Every head mixes learned profiles to a bias for each distance."""
        heads = heads_of(c, slides=slides)
        q_name, k_name, v_name, r_name, o_name = (prefix + name for name in c.names.qkvro)

        def kept(name: str, letter: str) -> Data:
            """Keys or values: a short convolution over the last tokens before the reshape to heads."""
            y = ops.linear(x, name, f"qkv.{letter}", heads.n_kv_heads * heads.d_head)
            y = convolved(y, f"{prefix}{letter}_{c.names.convolution}", c.d_conv)
            return ops.to_heads(y, heads.n_kv_heads, heads.d_head)

        q = c.norm(ops.linear(x, q_name, "qkv.q", (heads.n_heads, heads.d_head)), prefix + "q_norm")
        k, v = c.norm(kept(k_name, "k"), prefix + "k_norm"), kept(v_name, "v")
        of_heads = ops.linear(x, r_name, "qkv.relative", (heads.n_heads, c.d_relative))  # [n, n_heads, d_relative]
        bias = mix_profiles(c, of_heads, prefix, slides=slides)
        if not slides:
            floor, alpha = c.scaling_floor, c.scaling_alpha
            q, bias = (ops.scale_by_log_of_ratio(y, floor, alpha, first=1) for y in (q, bias))
        scale = 1 / heads.d_head if isinstance(heads.d_head, int) else None
        mask = ops.see_earlier(c.window if slides else None)
        k, v = ops.cache(k, mask), ops.cache(v, mask)  # [m, n_kv_heads, d_head]
        a = ops.attend(q, k, v, ops.bias_by_distance(bias, k), mask=mask, scale=scale)  # [n, n_heads, d_head]
        return ops.linear(a, o_name, "output_projection", c.d_model)

    def dense(c, x: Data) -> Data:
        return parts.gated_mlp(x, "mlp.", "mlp", c.d_ff, activation=c.activation)

    def moe(c, x: Data) -> Data:
        """The weights of the chosen experts and of the shared ones, which the router scores too, sum to one."""
        n, n_shared = c.n_routed_experts, c.n_shared_experts
        logits = ops.linear(x, "mlp.gate", "router", n + n_shared)  # [n, experts + shared]
        routed, shared = ops.split(ops.activate(logits, "sigmoid"), n, n_shared)  # [n, experts], [n, shared]
        merit = ops.add_routing_bias(routed, parts.routing_bias(c, c.names.routing_bias))
        weights = ops.join(ops.top_k(routed, c.n_active_experts, merit), shared)  # [n, experts + shared]
        weights = ops.scale_by(ops.normalise_weights(weights), c.route_scale)
        routed, shared = ops.split(ops.multiply_vector(weights, "mlp.gate.global_scale", "router", 1), n, n_shared)
        y = ops.experts(x, shared, "mlp.shared_experts.", n_shared, n_shared, c.shared_expert, stored="stacked")
        return ops.experts(x, routed, "mlp.experts.", n, c.n_active_experts, c.expert, stored="stacked") + y

    def expert(c, x: Data) -> Data:
        return parts.packed_mlp(x, "experts", c.d_expert, activation=c.activation)

    def shared_expert(c, x: Data) -> Data:
        gate, up = (
            ops.fused(x, f"{name}_proj", {f"shared_experts.{name}": c.d_expert}, suffixes=("", ""))[0]
            for name in ("gate", "up")
        )
        y = ops.activate(gate, c.activation) * up
        return ops.fused(y, "down_proj", {"shared_experts.down": c.d_model}, suffixes=("", ""))[0]

    def check(c) -> None:
        super().check()
        if not c.n_shared_experts and len(c.dense_layers) < c.n_layers:
            raise ParamcountError(
                "= 0, but the router scores them too",
                where=FieldName("n_shared_experts"),
                expected="a positive integer",
            )


def heads_of(c: Any, *, slides: bool) -> parts.Heads:
    return (
        parts.Heads(c.n_sliding_heads, c.n_sliding_kv_heads, c.d_sliding_head)
        if slides
        else parts.Heads(c.n_heads, c.n_kv_heads, c.d_head)
    )


def mix_profiles(c: Any, of_heads: Data, prefix: str, *, slides: bool) -> Data:
    """A bias for each distance: the mixture of learned profiles that each head asks for, [n, heads, distances]."""
    n_distances = c.window if slides else c.n_distances
    profiles = ops.Weight(prefix + "rel_logits_proj.proj", "position", (c.d_relative, n_distances))
    return ops.linear_by_head(of_heads, n_distances, profiles, transposed=True, of="all heads")


def convolved(x: Data, name: str, d_conv: Any) -> Data:
    """x and a convolution over its last tokens."""
    return x + ops.convolve(x, name, d_conv, bias=False)
