"""Inkling: a learned bias by distance instead of rotary positions, and short convolutions.

They follow keys, values and every sublayer. Shared experts take part in the softmax of the router.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import FieldName, ParamcountError, describe_value
from paramcount.flow import Data, Weight, activate, attend, convolve, elementwise, experts, fused, linear, norm
from paramcount.parts.attentions import Heads, relative
from paramcount.parts.decoders import decoder, pre_norm, typed_layers
from paramcount.parts.feed_forward import correction, gated_mlp
from paramcount.parts.stacked import stacked_experts
from paramcount.sizes import ABSENT, Condition, Indices, Natural, Positive, Sizes, Words, derived, hf, per_layer
from paramcount.sizes.conditions import not_null, padding_in_table
from paramcount.sizes.layer_types import check_no_types, dense_by_type, unused
from paramcount.sizes.rules import check_divides, check_layer_types

KINDS = ("hybrid", "hybrid_sliding")


def words(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    local = js.get("local_layer_ids")
    if local is not None and not (isinstance(local, (list, tuple)) and all(type(i) is int for i in local)):
        raise ParamcountError(f"= {describe_value(local)}", where="local_layer_ids", expected="layer indices")
    return tuple(KINDS[i in local if local is not None else (i + 1) % 6 > 0] for i in per_layer(c))


def widths(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[int, int]:
    """Of a dense layer and of an expert.

    Released files call the second one intermediate_size where they name the first another way.
    """
    if js.get("dense_intermediate_size") is not None:
        return check_no_types(js, "dense_intermediate_size", 0), check_no_types(js, "intermediate_size", 24576)
    return check_no_types(js, "intermediate_size", 24576), check_no_types(js, "moe_intermediate_size", 3072)


class InklingBody(Sizes):
    """What Inkling and Inkling 2 have in common: layers with a window have heads of their own number and width."""

    conditions: ClassVar[tuple[Condition, ...]] = (not_null("n_routed_experts"), padding_in_table(None))

    vocab_size: Positive = hf(absent=201024)
    d_model: Positive = hf(absent=6144)
    n_layers: Positive = hf(absent=66)
    n_heads: Positive = hf(absent=64)
    n_kv_heads: Positive = hf(absent=8)
    d_head: Positive = hf(absent=128)
    n_sliding_heads: Positive = hf("swa_num_attention_heads", absent=64)
    n_sliding_kv_heads: Positive = hf("swa_num_key_value_heads", absent=16)
    d_sliding_head: Positive = hf("swa_head_dim", absent=128)
    layer_types: Words = hf(absent=words, null=ABSENT)
    window: Positive = hf("sliding_window", "sliding_window_size", absent=512)
    d_relative: Positive = hf("d_rel", absent=16)
    n_distances: Positive = hf("rel_extent", absent=1024)
    d_conv: Positive = hf("sconv_kernel_size", "conv_kernel_size", absent=4)

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)
        if KINDS[1] in c.layer_types:
            check_divides(c, "n_sliding_kv_heads", "n_sliding_heads")

    def unused_fields(c) -> tuple[str, ...]:
        return () if KINDS[0] in c.layer_types else ("n_kv_heads",)


class InklingText(InklingBody):
    """Source: modeling_inkling.py of the reference."""

    reference: ClassVar[str] = "InklingForCausalLM"
    base_model: ClassVar[str | None] = "InklingTextModel"
    float32: ClassVar[tuple[str, ...]] = (
        "attn_sconv",
        "mlp_sconv",
        "k_sconv",
        "v_sconv",
        "e_score_correction_bias",
        "gate.global_scale",
    )
    unused_keys: ClassVar[tuple[str, ...]] = ("logits_mup_width_multiplier",)

    d_ff: Positive = derived(lambda js, c: widths(js, c)[0])
    dense_layers: Indices = derived(
        dense_by_type(lambda js, c: tuple(range(min(check_no_types(js, "dense_mlp_idx", 0), c["n_layers"]))))
    )
    d_expert: Positive = derived(lambda js, c: widths(js, c)[1])
    n_routed_experts: Positive = hf("num_local_experts", "n_routed_experts", absent=256, null=unused)
    n_active_experts: Positive = hf(absent=6)
    n_shared_experts: Natural = hf(absent=2)

    def forward(c, tokens: Data) -> Data:
        kinds = typed_layers(c.layer_types, c.dense_layers)
        return decoder(c, tokens, layer, kinds, enter=lambda x: norm(x, "model.embed_tokens.embed_norm"))

    def check(c) -> None:
        super().check()
        if not c.n_shared_experts and len(c.dense_layers) < c.n_layers:
            raise ParamcountError(
                "= 0, but the router scores them too",
                where=FieldName("n_shared_experts"),
                expected="a positive integer",
            )


def layer(c: Any, kind: tuple[str, str], x: Data) -> Data:
    word, mlp = kind

    def feed_forward(h: Data) -> Data:
        y = (
            moe(c, h)
            if mlp == "moe"
            else elementwise(gated_mlp(h, "mlp.", "mlp", c.d_ff), "scale", "mlp.global_scale", "other", 1)
        )
        return convolved(y, "mlp_sconv.conv1d", c.d_conv)

    return pre_norm(
        x, lambda h: convolved(attention(c, h, slides=word == KINDS[1]), "attn_sconv.conv1d", c.d_conv), feed_forward
    )


def attention(c: Any, x: Data, *, slides: bool) -> Data:
    heads = heads_of(c, slides=slides)

    def kept(name: str) -> Data:
        """Keys or values: a short convolution over the last tokens before the heads are told apart."""
        y = linear(x, f"self_attn.{name}_proj", f"qkv.{name}", heads.n_kv_heads * heads.d_head)
        return Data(
            "to heads",
            (convolved(y, f"self_attn.{name}_sconv.conv1d", c.d_conv),),
            (x.shape[0], heads.n_kv_heads, heads.d_head),
        )

    q = norm(linear(x, "self_attn.q_proj", "qkv.q", (heads.n_heads, heads.d_head)), "self_attn.q_norm")
    k, v = norm(kept("k"), "self_attn.k_norm"), kept("v")
    of_heads = linear(x, "self_attn.r_proj", "qkv.relative", (heads.n_heads, c.d_relative))
    q = by_distance(c, q, of_heads, "self_attn.", slides=slides)
    return linear(
        attend(q, k, v, window=c.window if slides else None), "self_attn.o_proj", "output_projection", c.d_model
    )


def heads_of(c: Any, *, slides: bool) -> Heads:
    return (
        Heads(c.n_sliding_heads, c.n_sliding_kv_heads, c.d_sliding_head)
        if slides
        else Heads(c.n_heads, c.n_kv_heads, c.d_head)
    )


def by_distance(c: Any, q: Data, of_heads: Data, prefix: str, *, slides: bool) -> Data:
    """q with a bias for each distance: each head's mixture of learned profiles."""
    n_distances = c.window if slides else c.n_distances
    profiles = Weight(prefix + "rel_logits_proj.proj", "position", (c.d_relative, n_distances))
    return relative(q, Data("mix profiles", (of_heads,), (*of_heads.shape[:2], n_distances), (profiles,)))


def convolved(x: Data, name: str, d_conv: Any) -> Data:
    """x and a convolution over its last tokens."""
    return x + convolve(x, name, d_conv, bias=False)


def moe(c: Any, x: Data) -> Data:
    scores = linear(x, "mlp.gate", "router", c.n_routed_experts + c.n_shared_experts)
    scores = correction(c, "mlp.gate.e_score_correction_bias")(
        elementwise(scores, "scale", "mlp.gate.global_scale", "router", 1)
    )
    shared = experts(
        x,
        scores,
        "mlp.shared_experts.",
        c.n_shared_experts,
        c.n_shared_experts,
        lambda x: shared_expert(c, x),
        stacked=True,
    )
    return stacked_experts(c, x, scores, "mlp.experts.") + shared


def shared_expert(c: Any, x: Data) -> Data:
    gate, up = (
        fused(x, name + "_proj", {"shared_experts." + name: c.d_expert}, suffixes=("", ""))[0]
        for name in ("gate", "up")
    )
    return fused(activate(gate, "silu") * up, "down_proj", {"shared_experts.down": c.d_model}, suffixes=("", ""))[0]
