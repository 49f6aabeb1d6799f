"""Doge: a learned weight on every residual and a learned mask that keeps the highest scores.

In its MoE each expert is one neuron.
"""

from math import isqrt

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


class Doge(parts.AttentionBias, parts.RoutedExperts, parts.AttentionDecoder):
    """Source: DogeDecoderLayer of the reference. `n_keys`: side of the square grid of experts."""

    reference = "DogeForCausalLM"
    task_heads = "SCORED"
    d_expert = sizes.constant(None)
    linear_routers = (".router_gate.weight",)
    conditions = (sizes.padding_in_table(None),)

    window: sizes.Positive | None = sizes.hf(absent=None)
    moe: sizes.Flag = sizes.hf("is_moe")
    # An expert stands where a row meets a column, and the router scores rows and columns.
    n_keys: sizes.Positive = sizes.derived(lambda js, c: isqrt(c["n_routed_experts"]))
    mlp_bias: sizes.Flag = sizes.hf()

    n_kept = sizes.setting("keep_window_size")

    def layer(c, x: Data) -> Data:
        a = c.attention(c.norm(x, "input_layernorm"), "self_attn.")
        x = ops.multiply_vector(x, "input_residual", "other", c.d_model) + a
        y = c.feed_forward(c.norm(x, "post_attention_layernorm"), "mlp.")
        return ops.multiply_vector(x, "post_attention_residual", "other", c.d_model) + y

    def attention(c, x: Data, prefix: str) -> Data:
        """Every value scores itself: what is added to all attention scores of its token, and decides if it is seen.

        Source: DogeAttention of the reference, prepare_dynamic_mask.
        """
        bias = c.attention_bias
        q = ops.linear(x, prefix + "q_proj", "qkv.q", (c.n_heads, c.d_head), bias=bias)
        k = ops.linear(x, prefix + "k_proj", "qkv.k", (c.n_kv_heads, c.d_head), bias=bias)
        v = ops.linear(x, prefix + "v_proj", "qkv.v", (c.n_kv_heads, c.d_head), bias=bias)
        q, k = ops.rope(c.norm(q, prefix + "q_norm"), c.rope), ops.rope(c.norm(k, prefix + "k_norm"), c.rope)
        mask = ops.see_earlier(c.window)
        k, v = ops.cache(k, mask), ops.cache(v, mask)  # [m, n_kv_heads, d_head]
        score = ops.activate(ops.linear(v, prefix + "dt_proj", "other", c.n_kv_heads, bias=bias), "softplus")
        score = ops.activate(ops.multiply_vector(score, prefix + "A", "other", c.n_kv_heads), "exp")
        s = ops.add_bias(ops.scores(q, k), score, by_key=True)  # [n_heads, n, m]
        a = ops.weighted_sum(ops.softmax(s, mask=mask & ops.Largest(score, c.n_kept)), v)  # [n, n_heads, d_head]
        return ops.linear(a, prefix + "o_proj", "output_projection", c.d_model, bias=bias)

    def feed_forward(c, x: Data, prefix: str) -> Data:
        """A gated MLP; in a mixture also experts that are one row of each of two tables."""
        if not c.moe:
            return c.gated_mlp(x, prefix, bias=c.mlp_bias)
        logits = ops.linear(x, prefix + "router_gate", "router", c.n_keys + c.n_keys)  # [n, 2 · n_keys]
        chosen = ops.softmax_of_top(ops.product_keys(logits, c.n_keys), c.n_active_experts)
        y = ops.experts(x, chosen, prefix, c.n_routed_experts, c.n_active_experts, c.expert, stored="stacked")
        return parts.gated_mlp(x, prefix, "shared_experts", c.d_ff, activation=c.activation, bias=c.mlp_bias) + y

    def expert(c, x: Data) -> Data:
        h = Data(ops.Linear(), (x,), (*x.shape[:-1], 1), (ops.Weight("down_embed.weight", "experts.up", x.shape[-1:]),))
        up = ops.Weight("up_embed.weight", "experts.down", x.shape[-1:])  # [d_model]
        return Data(ops.MultiplyVector(), (ops.activate(h, c.activation),), x.shape, (up,))

    def unused_fields(c) -> tuple[str, ...]:
        return () if c.moe else ("n_routed_experts", "n_active_experts", "n_keys")

    def check(c) -> None:
        if c.n_keys != isqrt(c.n_routed_experts):
            root = isqrt(c.n_routed_experts)
            found, expected = f"= {c.n_keys} for {c.n_routed_experts} experts", f"{root}, the integer square root"
            raise ParamcountError(
                found, where=FieldName("n_keys"), expected=expected, sizes=(c.n_keys, c.n_routed_experts, root)
            )
        if c.moe and c.n_active_experts > c.n_keys**2:
            limit, widths = "at most " + FieldName("n_keys") + f"² = {c.n_keys**2}", (c.n_active_experts, c.n_keys**2)
            raise ParamcountError(
                f"= {c.n_active_experts}", where=FieldName("n_active_experts"), expected=limit, sizes=widths
            )
