"""ZAYA1: attention with convolutions on queries and keys, and experts with an MLP router.

Half of the values are those of the previous token. The router passes its state to the next layer and may choose no
expert at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Weight, activate, attend, convolve, elementwise, join, linear, norm
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoders import decoder
from paramcount.parts.stacked import stacked_experts
from paramcount.sizes import ABSENT, Condition, Flag, Natural, Positive, Sizes, Words, derived, hf, per_layer
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rotary import rotary_width_of
from paramcount.sizes.rules import check_at_most, check_layer_types

KINDS = ("hybrid", "hybrid_sliding")


def one_expert(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    if (n := js.get("num_experts_per_tok", 1)) != 1:
        raise ParamcountError(f"= {describe_value(n)}", where="num_experts_per_tok", expected="1")
    return 1


class Zaya(Sizes):
    """Source: modeling_zaya.py of the reference; attention arXiv:2510.04476."""

    reference: ClassVar[str] = "ZayaForCausalLM"
    linear_by_component: ClassVar[bool] = False
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(0),)

    vocab_size: Positive = hf(absent=262272)
    d_model: Positive = hf(absent=2048)
    n_layers: Positive = hf(absent=40)
    n_heads: Positive = hf(absent=8)
    n_kv_heads: Positive = hf(absent=2)
    d_head: Positive = hf(absent=128)
    d_late: Positive = derived(
        lambda js, c: c["n_kv_heads"] * c["d_head"] // 2
    )  # the half of all values that comes from the token before
    n_before: Positive = hf("cca_time0", absent=2)  # how far each number's convolution reaches, and then each head's
    n_before_in_head: Positive = hf("cca_time1", absent=2)
    layer_types: Words = hf(absent=lambda js, c: tuple(KINDS[0] for _ in per_layer(c)), null=ABSENT)
    window: Positive | None = hf(absent=None)
    d_rope: Natural = derived(rotary_width_of(KINDS[0], 0.5, 1.0))
    d_rope_sliding: Natural = derived(rotary_width_of(KINDS[1], 0.5, 1.0))
    d_router: Positive = hf("router_hidden_size", absent=256)
    d_expert: Positive = hf(absent=2048)
    n_routed_experts: Positive = hf("num_experts", absent=16)
    n_active_experts: Positive = derived(one_expert)  # or none
    attention_bias: Flag = hf(absent=False)
    lm_head_bias: Flag = hf("lm_head_bias", absent=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        kinds = [((word, i == 0), 1) for i, word in enumerate(c.layer_types)]
        return decoder(
            c, tokens, layer, kinds, enter=lambda x: enter(c, x), carry=(c.d_router,), head_bias=c.lm_head_bias
        )

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)
        if 2 * c.d_late != c.n_kv_heads * c.d_head:
            found = f"= {c.d_late} is not half of n_kv_heads × d_head = {c.n_kv_heads} × {c.d_head}"
            raise ParamcountError(
                found,
                where="d_late",
                expected="half of that product, which must be even",
                sizes=(c.d_late, c.n_kv_heads, c.d_head),
            )
        for word, width in zip(KINDS, ("d_rope", "d_rope_sliding")):
            if word in c.layer_types:
                check_at_most(c, width, "d_head")
        if KINDS[1] in c.layer_types and c.window is None:
            raise ParamcountError(
                "= null, but there are sliding attention layers", where="window", expected="an integer"
            )


def enter(c: Any, x: Data) -> Data:
    return elementwise(
        elementwise(x, "add", "model.input_hidden_states_bias", "other", c.d_model),
        "scale",
        "model.input_hidden_states_scale",
        "other",
        c.d_model,
    )


def layer(c: Any, kind: tuple[str, bool], x: Data, router_state: Data) -> tuple[Data, Data]:
    word, first = kind
    x = residual(
        c, attention(c, norm(x, "input_layernorm"), slides=word == KINDS[1]), x, "post_attention_residual_scale."
    )
    h = norm(x, "post_attention_layernorm")
    scores, router_state = route(c, h, None if first else router_state)
    return residual(
        c, stacked_experts(c, h, scores, "mlp.experts.", at_least=0), x, "post_mlp_residual_scale."
    ), router_state


def residual(c: Any, y: Data, x: Data, prefix: str) -> Data:
    """x + y, each moved and scaled element-wise before."""
    y = elementwise(
        elementwise(y, "add", prefix + "hidden_states_bias", "other", c.d_model),
        "scale",
        prefix + "hidden_states_scale",
        "other",
        c.d_model,
    )
    return y + elementwise(
        elementwise(x, "add", prefix + "residual_bias", "other", c.d_model),
        "scale",
        prefix + "residual_scale",
        "other",
        c.d_model,
    )


def attention(c: Any, x: Data, *, slides: bool) -> Data:
    """Compressed convolutional attention. Source: arXiv:2510.04476."""
    prefix, bias = "self_attn.qkv_proj.", c.attention_bias
    q = linear(x, prefix + "q_proj", "qkv.q", (c.n_heads, c.d_head), bias=bias)
    k = linear(x, prefix + "k_proj", "qkv.k", (c.n_kv_heads, c.d_head), bias=bias)
    n = c.n_heads + c.n_kv_heads
    both = convolve(Data("join", (q, k), (x.shape[0], n * c.d_head)), prefix + "conv_qk_depthwise", c.n_before)
    weight = Weight(
        prefix + "conv_qk_grouped.weight", "mixer.convolution", (n * c.d_head, c.d_head, c.n_before_in_head)
    )
    both = Data(
        "convolve",
        (both,),
        both.shape,
        (weight, Weight(prefix + "conv_qk_grouped.bias", "mixer.convolution", (n * c.d_head,))),
    )
    mean_q = Data("mean with its key", (q, k), q.shape)
    mean_k = Data("mean of its queries", (mean_q,), k.shape)
    q, k = Data("split", (both,), q.shape) + mean_q, Data("split", (both,), k.shape) + mean_k
    late = activate(linear(x, prefix + "v_proj_delayed", "qkv.v", c.d_late, bias=bias), "of the token before")
    v = join(linear(x, prefix + "v_proj_current", "qkv.v", c.d_late, bias=bias), late)
    v = Data("to heads", (v,), k.shape)
    d_rope = c.d_rope_sliding if slides else c.d_rope
    q, k = (
        activate(q, "l2 norm"),
        elementwise(activate(k, "l2 norm"), "scale", "self_attn.qk_norm.temp", "other", c.n_kv_heads),
    )
    a = attend(partial_rope(q, d_rope), partial_rope(k, d_rope), v, window=c.window if slides else None)
    return linear(a, "self_attn.o_proj", "output_projection", c.d_model, bias=bias)


def route(c: Any, x: Data, before: Data | None) -> tuple[Data, Data]:
    """Scores for all experts and for none, and the state that the next layer's router adds to its own."""
    prefix, d, n = "mlp.gate.", c.d_router, c.n_routed_experts + 1
    state = linear(x, prefix + "down_proj", "router", d, bias=True)
    if before:
        state = state + elementwise(before, "scale", prefix + "router_states_scale", "router", d)
    h = norm(state, prefix + "router_mlp.norm")
    for name in ("fc1", "fc2"):
        h = activate(linear(h, prefix + "router_mlp." + name, "router", d, bias=True), "gelu")
    scores = activate(linear(h, prefix + "router_mlp.out_proj", "router", n), "softmax")
    return elementwise(scores, "correct", prefix + "balancing_biases", "router", n, role="buffer"), state
