"""Hy4: four residual streams and sparse MLA with sinks and a gate.

An indexer chooses the tokens; four layers share its choice.
"""

from paramcount.architectures.glm_moe_dsa import list_kinds
from paramcount.declare import Data, ops, parts, sizes

# As the reference saves them, which is not quite as the release has them.
ATTENTION = ("hc_pre.hc_attn_layer.hc_fn", "hc_pre.hc_attn_layer.hc_base", "hc_pre.hc_attn_layer.hc_scale")
MLP = ("hc_pre.hc_mlp_layer.hc_fn", "hc_pre.hc_mlp_layer.hc_base", "hc_pre.hc_mlp_layer.hc_scale")
HEAD = ("model.hc_pre.hc_head.hc_head_fn", "model.hc_pre.hc_head.hc_head_base", "model.hc_pre.hc_head.hc_head_scale")
GATED = ("linear_gate", "up_proj", "down_proj")


def reusing(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The layers without an indexer."""
    words = js.get("indexer_types")
    if words is None:
        return tuple(i for i in sizes.per_layer(c) if i > 0 and (i - 1) % 4)
    words = sizes.check_indexer_types(words, "indexer_types", c["n_layers"])
    return tuple(i for i in sizes.per_layer(c) if words[i] == "shared")


class HYV4(parts.RoutedLatentDecoder):
    """Source: modeling_hy_v4.py of the reference, HYV4DecoderLayer."""

    reference = "HYV4ForCausalLM"
    modules = {".linear_gate": (".gate_proj",)}
    float32 = (
        "e_score_correction_bias",
        "fn",
        "scale",
        "base",
        "hc_fn",
        "hc_scale",
        "hc_base",
        "weights_proj",
        "k_norm",
        "sinks",
        "lm_head",
        *("hc_head_fn", "hc_head_scale", "hc_head_base", "learnable_sink_param"),  # as saved
    )
    unused_keys = ("num_key_value_heads",)
    conditions = (sizes.grouped_routing(1, 1), sizes.not_null("n_routed_experts"), sizes.padding_in_table(120002))

    n_streams: sizes.Positive = sizes.hf("hc_mult")
    d_q_lora: sizes.Positive = sizes.hf()
    reusing_layers: sizes.Indices = sizes.derived(reusing)
    n_index_heads: sizes.Positive = sizes.hf("index_n_heads")
    d_index: sizes.Positive = sizes.hf("index_head_dim")
    n_chosen: sizes.Positive = sizes.hf("index_topk")
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(lambda js, c: (0,)))
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "n_routed_experts", null=sizes.unused, late=True)
    n_shared_experts: sizes.Natural = sizes.hf()

    rope = sizes.rotary()
    pairing = sizes.setting(default="halves")
    limit = sizes.setting("swiglu_limit")
    streams_eps = sizes.setting("hc_eps")
    streams_magnitude = sizes.setting("hc_magnitude")

    def decode(c, x: Data) -> Data:
        kinds, width = list_kinds(c), (c.n_chosen,)
        x = ops.to_every_stream(x, c.n_streams)
        x = ops.layers(x, "model.layers.{layer}.", kinds, lambda kind, x, chosen: c.share(x, kind, chosen), carry=width)
        return c.head(c.norm(parts.collapse_streams(c, x, HEAD), "model.norm"))

    def share(c, x: Data, kind: tuple[str, str], chosen: Data) -> tuple[Data, Data]:
        """A layer and the tokens that it attends to. `chosen`: those of the last layer with an indexer."""
        indexer, mlp = kind
        tokens = [chosen]

        def attention(x: Data) -> Data:
            h = c.norm(x, "input_layernorm")
            latent = parts.query_latent(c, h, "self_attn.", bias=c.attention_bias)
            if indexer == "full":
                tokens[:] = [parts.index_tokens(c, h, latent, "self_attn.indexer.", rotates_end=True, eps=c.norm_eps)]
            bias, sinks = c.attention_bias, parts.add_sinks(c, "self_attn.learnable_sink_param")
            q = parts.turn_queries(c, parts.queries(c, h, "self_attn.", latent, bias=bias))  # [n, n_heads, …]
            latents = parts.cache_latents(c, h, "self_attn.", bias=bias)
            k, v = parts.expand_latents(c, latents, "self_attn.")  # [m, n_heads, d_nope + d_rope] and [m, n_heads, d_v]
            s = ops.hide(ops.scores(q, k, c.attention_scale), ops.Chosen(tokens[0]))  # [n_heads, n, m]
            a = ops.weighted_sum(ops.softmax(s, mask=ops.Causal(), sinks=sinks), v)  # [n, n_heads, d_v]
            a = parts.sigmoid_gate("self_attn.linear_gate")(h, a)
            return parts.project_output(a, "self_attn.o_proj", h.shape[-1], bias=bias)

        def feed_forward(x: Data) -> Data:
            h = c.norm(x, "post_attention_layernorm")
            if mlp == "moe":
                return c.moe(h)
            return c.gated_mlp(h, names=GATED)

        x = parts.connect_apart(c, parts.connect_apart(c, x, ATTENTION, attention), MLP, feed_forward)
        return x, tokens[0]

    def moe(c, x: Data) -> Data:
        """The routed experts limit gate and up; their activation is always SiLU."""
        weights = c.choose(ops.linear(x, "mlp.gate", "router", c.n_routed_experts))  # [n, experts], 0 if not chosen
        n, n_active = c.n_routed_experts, c.n_active_experts
        routed = ops.experts(x, weights, "mlp.experts.", n, n_active, c.expert, stored="stacked")  # [n, d_model]
        d_shared = c.n_shared_experts * c.d_expert
        return routed + parts.gated_mlp(
            x, "mlp.shared_experts.", "shared_experts", d_shared, names=GATED, activation=c.activation
        )

    def expert(c, x: Data) -> Data:
        halves = {"experts.gate": c.d_expert, "experts.up": c.d_expert}
        gate, up = ops.fused(x, "gate_up_proj", halves, suffixes=("", ""))  # [n, d_expert]
        h = ops.activate(ops.clip(gate, None, c.limit), "silu") * ops.clip(up, -c.limit, c.limit)  # [n, d_expert]
        return ops.fused(h, "down_proj", {"experts.down": c.d_model}, suffixes=("", ""))[0]  # [n, d_model]

    def check(c) -> None:
        sizes.check_at_most(c, "d_rope", "d_index")
        sizes.check_reused_choices(c)
