"""Doge: a learned weight on every residual and a learned mask that keeps the highest scores.

In its MoE each expert is one neuron.
"""

from math import isqrt

from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import (
    Data,
    Linear,
    MultiplyVector,
    Weight,
    activate,
    attend,
    experts,
    linear,
    multiply_vector,
    rope,
    route,
)
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes import ABSENT, ConfigJson, FieldValues, Flag, Natural, Positive, derived, equal_to, hf, setting
from paramcount.sizes.conditions import padding_in_table


def keys_of_a_half(js: ConfigJson, c: FieldValues) -> int:
    """An expert stands where a row meets a column, and the router scores rows and columns."""
    return isqrt(c["n_routed_experts"])


class Doge(AttentionDecoder):
    """Source: DogeDecoderLayer of the reference. `n_keys`: side of the square grid of experts."""

    reference = "DogeForCausalLM"
    is_section_type = True
    task_heads = "SCORED"
    linear_routers = (".router_gate.weight",)
    rotated = "d_head"
    conditions = (padding_in_table(None),)

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_ff: Natural = hf()
    window: Positive | None = hf(absent=None)
    moe: Flag = hf("is_moe")
    n_routed_experts: Positive = hf("num_experts")
    n_active_experts: Natural = hf()
    n_keys: Positive = derived(keys_of_a_half)
    attention_bias: Flag = hf()
    mlp_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    n_kept = setting("keep_window_size", default=2048)

    def layer(c, x: Data) -> Data:
        a = c.attention(c.norm(x, "input_layernorm"), "self_attn.")
        x = multiply_vector(x, "input_residual", "other", c.d_model) + a
        y = c.feed_forward(c.norm(x, "post_attention_layernorm"), "mlp.")
        return multiply_vector(x, "post_attention_residual", "other", c.d_model) + y

    def attention(c, x: Data, prefix: str) -> Data:
        """Every value scores itself: what is added to all attention scores of its token, and decides if it is seen.

        Source: DogeAttention of the reference, prepare_dynamic_mask.
        """
        bias = c.attention_bias
        q = linear(x, prefix + "q_proj", "qkv.q", (c.n_heads, c.d_head), bias=bias)
        k = linear(x, prefix + "k_proj", "qkv.k", (c.n_kv_heads, c.d_head), bias=bias)
        v = linear(x, prefix + "v_proj", "qkv.v", (c.n_kv_heads, c.d_head), bias=bias)
        q, k = rope(c.norm(q, prefix + "q_norm"), c.rope), rope(c.norm(k, prefix + "k_norm"), c.rope)
        score = activate(linear(v, prefix + "dt_proj", "other", c.n_kv_heads, bias=bias), "softplus")
        score = activate(multiply_vector(score, prefix + "A", "other", c.n_kv_heads), "exp")
        a = attend(q, k, v, score, by_key=True, n_kept=c.n_kept, window=c.window)
        return linear(a, prefix + "o_proj", "output_projection", c.d_model, bias=bias)

    def feed_forward(c, x: Data, prefix: str) -> Data:
        """A gated MLP; in a mixture also experts that are one row of each of two tables."""
        if not c.moe:
            return c.gated_mlp(x, prefix, bias=c.mlp_bias)
        logits = linear(x, prefix + "router_gate", "router", c.n_keys + c.n_keys)
        chosen = route(logits, c.n_active_experts, "softmax over chosen", grid=c.n_keys)
        y = experts(x, chosen, prefix, c.n_routed_experts, c.n_active_experts, c.expert, stacked=True)
        return gated_mlp(x, prefix, "shared_experts", c.d_ff, activation=c.activation, bias=c.mlp_bias) + y

    def expert(c, x: Data) -> Data:
        h = Data(Linear(), (x,), (*x.shape[:-1], 1), (Weight("down_embed.weight", "experts.up", x.shape[-1:]),))
        up = Weight("up_embed.weight", "experts.down", x.shape[-1:])
        return Data(MultiplyVector(), (activate(h, c.activation),), x.shape, (up,))

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
            limit, sizes = "at most " + FieldName("n_keys") + f"² = {c.n_keys**2}", (c.n_active_experts, c.n_keys**2)
            raise ParamcountError(
                f"= {c.n_active_experts}", where=FieldName("n_active_experts"), expected=limit, sizes=sizes
            )
