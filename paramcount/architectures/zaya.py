"""ZAYA1: attention with convolutions on queries and keys, and experts with an MLP router.

Half of the values are those of the previous token. The router passes its state to the next layer and may choose no
expert at all.
"""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

KINDS = ("hybrid", "hybrid_sliding")
LEAST_NORM = 1e-14  # about the square of the smallest length that the reference divides by


ROPES = {  # the reference's default of rope_parameters
    KINDS[0]: {"rope_type": "default", "rope_theta": 5_000_000.0, "partial_rotary_factor": 0.5},
    KINDS[1]: {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.5},
}


def one_expert(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    if (n := js.get("num_experts_per_tok", 1)) != 1:
        raise sizes.make_value_error(n, "num_experts_per_tok", "1")
    return 1


class Zaya(parts.AttentionBias, parts.RoutedExperts, parts.AttentionDecoder):
    """Source: ZayaDecoderLayer of the reference; attention arXiv:2510.04476."""

    reference = "ZayaForCausalLM"
    rotated = None
    d_ff = sizes.constant(None)
    linear_routers = (".gate.down_proj.weight", *(f".router_mlp.{name}.weight" for name in ("fc1", "fc2", "out_proj")))
    linear_by_component = False
    conditions = (sizes.padding_in_table(0),)
    defaults = {"d_head": 128}

    d_late: sizes.Positive = sizes.derived(
        lambda js, c: c["n_kv_heads"] * c["d_head"] // 2
    )  # the half of all values that comes from the token before
    n_before: sizes.Positive = sizes.hf("cca_time0")  # how far each number's convolution reaches, and then each head's
    n_before_in_head: sizes.Positive = sizes.hf("cca_time1")
    layer_types: sizes.Words = sizes.hf(absent=sizes.words_by(lambda i, n: 0, KINDS), null=sizes.ABSENT)
    window: sizes.Positive | None = sizes.hf(absent=None)
    d_rope: sizes.Natural = sizes.derived(sizes.rotary_width_of(KINDS[0], 0.5, 1.0))
    d_rope_sliding: sizes.Natural = sizes.derived(sizes.rotary_width_of(KINDS[1], 0.5, 1.0))
    d_router: sizes.Positive = sizes.hf("router_hidden_size")
    n_active_experts: sizes.Natural = sizes.derived(one_expert)  # or none
    lm_head_bias: sizes.Flag = sizes.hf("lm_head_bias")

    rope = sizes.rotary_of(KINDS[0], ROPES, 131_072, share=1.0)
    sliding_rope = sizes.rotary_of(KINDS[1], ROPES, 131_072, share=1.0)

    def decode(c, x: Data) -> Data:
        kinds = [((word, i == 0), 1) for i, word in enumerate(c.layer_types)]
        return c.head(c.last(ops.layers(x, "model.layers.{layer}.", kinds, c.layer_and_router, carry=(c.d_router,))))

    def embed(c, tokens: Data) -> Data:
        return move_and_scale(super().embed(tokens), "model.input_hidden_states")

    def head(c, x: Data) -> Data:
        return parts.head(c, x, "model.embed_tokens.weight", bias=c.lm_head_bias)

    def layer_and_router(c, kind: tuple[str, bool], x: Data, router_state: Data) -> tuple[Data, Data]:
        word, first = kind
        a = c.attention(c.norm(x, "input_layernorm"), slides=word == KINDS[1])
        x = add_residual(x, a, "post_attention_residual_scale.")
        h = c.norm(x, "post_attention_layernorm")
        chosen, router_state = c.choose(h, "mlp.gate.", None if first else router_state)
        y = ops.use_at_least(parts.stacked_experts(c, h, chosen, "mlp.experts."), 0)
        return add_residual(x, y, "post_mlp_residual_scale."), router_state

    def attention(c, x: Data, *, slides: bool) -> Data:
        """Compressed convolutional attention. Source: arXiv:2510.04476; ZayaCCAProjection of the reference."""
        prefix, bias = "self_attn.qkv_proj.", c.attention_bias
        q = ops.linear(x, prefix + "q_proj", "qkv.q", (c.n_heads, c.d_head), bias=bias)  # [n, n_heads, d_head]
        k = ops.linear(x, prefix + "k_proj", "qkv.k", (c.n_kv_heads, c.d_head), bias=bias)  # [n, n_kv_heads, d_head]
        d_q, d_k = c.n_heads * c.d_head, c.n_kv_heads * c.d_head
        both = ops.join(ops.reshape(q, d_q), ops.reshape(k, d_k))
        both = ops.convolve(both, prefix + "conv_qk_depthwise", c.n_before, n_zeros=c.n_before + c.n_before_in_head - 2)
        both = ops.convolve(both, prefix + "conv_qk_grouped", c.n_before_in_head, group=c.d_head, n_zeros=0)
        mean_q = ops.scale_by(q + ops.to_every_head(k, c.n_heads), 0.5, "half")
        mean_k = ops.means_of_heads(mean_q, c.n_kv_heads)
        q, k = ops.split(both, d_q, d_k)
        q, k = ops.to_heads(q, c.n_heads, c.d_head) + mean_q, ops.to_heads(k, c.n_kv_heads, c.d_head) + mean_k
        late = ops.token_before(ops.linear(x, prefix + "v_proj_delayed", "qkv.v", c.d_late))
        if bias:
            late = ops.add_vector(late, prefix + "v_proj_delayed.bias", "qkv.v", c.d_late)
        v = ops.join(ops.linear(x, prefix + "v_proj_current", "qkv.v", c.d_late, bias=bias), late)
        q, k = ops.plain_norm(q, "rms", LEAST_NORM), ops.plain_norm(k, "rms", LEAST_NORM)
        k = ops.multiply_per_head(k, "self_attn.qk_norm.temp", "other")
        d_rope, angles = (c.d_rope_sliding, c.sliding_rope) if slides else (c.d_rope, c.rope)
        q, k = parts.partial_rope(q, d_rope, angles), parts.partial_rope(k, d_rope, angles)
        a = ops.attend_causally(q, k, ops.to_heads(v, c.n_kv_heads, c.d_head), window=c.window if slides else None)
        return ops.linear(a, "self_attn.o_proj", "output_projection", c.d_model, bias=bias)

    def choose(c, x: Data, prefix: str, before: Data | None) -> tuple[Data, Data]:
        """The weights of the experts, one of which may be to use none, and what the next layer's router adds to its
        state.
        """
        state = ops.linear(x, prefix + "down_proj", "router", c.d_router, bias=True)
        if before:
            state = state + ops.multiply_vector(before, prefix + "router_states_scale", "router", c.d_router)
        h = c.norm(state, prefix + "router_mlp.norm")
        for name in ("fc1", "fc2"):
            h = ops.activate(ops.linear(h, prefix + "router_mlp." + name, "router", c.d_router, bias=True), "gelu")
        logits = ops.linear(h, prefix + "router_mlp.out_proj", "router", c.n_routed_experts + 1)
        bias = ops.Weight(prefix + "balancing_biases", "router", (c.n_routed_experts + 1,), role="buffer")
        return ops.split(ops.route(logits, 1, "softmax", bias=bias), c.n_routed_experts, 1)[0], state

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)
        if 2 * c.d_late != c.n_kv_heads * c.d_head:
            found = (
                f"= {c.d_late} is not half of "
                + FieldName("n_kv_heads")
                + " × "
                + FieldName("d_head")
                + f" = {c.n_kv_heads} × {c.d_head}"
            )
            raise ParamcountError(
                found,
                where=FieldName("d_late"),
                expected="half of that product, which must be even",
                sizes=(c.d_late, c.n_kv_heads, c.d_head),
            )
        for word, width in zip(KINDS, ("d_rope", "d_rope_sliding")):
            if word in c.layer_types:
                sizes.check_at_most(c, width, "d_head")
        if KINDS[1] in c.layer_types and c.window is None:
            raise ParamcountError(
                "= null, but there are sliding attention layers", where=FieldName("window"), expected="an integer"
            )


def move_and_scale(x: Data, name: str) -> Data:
    """(x + learned vector) · learned vector."""
    x = ops.add_vector(x, name + "_bias", "other", x.shape[-1])
    return ops.multiply_vector(x, name + "_scale", "other", x.shape[-1])


def add_residual(x: Data, y: Data, prefix: str) -> Data:
    """x + y, each moved and scaled element-wise before."""
    return move_and_scale(y, prefix + "hidden_states") + move_and_scale(x, prefix + "residual")
