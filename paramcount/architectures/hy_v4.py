"""Hy4: four residual streams and sparse MLA with sinks and a gate.

An indexer chooses the tokens; four layers share its choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.glm_moe_dsa import list_kinds
from paramcount.errors import ParamcountError
from paramcount.flow import Data, linear, norm
from paramcount.parts.attentions import sigmoid_gate
from paramcount.parts.decoders import decoder
from paramcount.parts.feed_forward import correction, gated_mlp
from paramcount.parts.hyper_connections import beside, collapse, mixing, widen
from paramcount.parts.mla import index_tokens, latent_attention, query_latent
from paramcount.parts.stacked import stacked_experts
from paramcount.sizes import Condition, Flag, Indices, Natural, Positive, Sizes, derived, hf, per_layer
from paramcount.sizes.conditions import grouped_routing, not_null, padding_in_table
from paramcount.sizes.layer_types import dense_by_type, unused
from paramcount.sizes.rules import check_at_most, check_layer_indices

# As the reference saves them, which is not quite as the release has them.
ATTENTION = ("hc_pre.hc_attn_layer.hc_fn", "hc_pre.hc_attn_layer.hc_base", "hc_pre.hc_attn_layer.hc_scale")
MLP = ("hc_pre.hc_mlp_layer.hc_fn", "hc_pre.hc_mlp_layer.hc_base", "hc_pre.hc_mlp_layer.hc_scale")
HEAD = ("model.hc_pre.hc_head.hc_head_fn", "model.hc_pre.hc_head.hc_head_base", "model.hc_pre.hc_head.hc_head_scale")
GATED = ("linear_gate", "up_proj", "down_proj")


def reusing(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[int, ...]:
    """The layers without an indexer."""
    words = js.get("indexer_types")
    if words is None:
        return tuple(i for i in per_layer(c) if i > 0 and (i - 1) % 4)
    if (
        not isinstance(words, (list, tuple))
        or len(words) < c["n_layers"]
        or not all(isinstance(word, str) for word in words)
    ):
        raise ParamcountError(
            f"has no word for each of {c['n_layers']} layers",
            where="indexer_types",
            expected='"full" or "shared" for each layer',
        )
    return tuple(i for i in per_layer(c) if words[i] == "shared")


class HYV4(Sizes):
    """Source: modeling_hy_v4.py of the reference."""

    reference: ClassVar[str] = "HYV4ForCausalLM"
    float32: ClassVar[tuple[str, ...]] = (
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
    )
    unused_keys: ClassVar[tuple[str, ...]] = ("num_key_value_heads",)
    rotated: ClassVar[str | None] = "d_rope"
    conditions: ClassVar[tuple[Condition, ...]] = (
        grouped_routing(1, 1),
        not_null("n_routed_experts"),
        padding_in_table(120002),
    )

    vocab_size: Positive = hf(absent=120832)
    d_model: Positive = hf(absent=2816)
    n_streams: Positive = hf("hc_mult", absent=4)
    n_layers: Positive = hf(absent=34)
    n_heads: Positive = hf(absent=32)
    d_q_lora: Positive = hf(absent=1536)
    d_kv_lora: Positive = hf(absent=512)
    d_nope: Positive = hf(absent=192)
    d_rope: Positive = hf(absent=64)
    d_v: Positive = hf(absent=256)
    reusing_layers: Indices = derived(reusing)
    n_index_heads: Positive = hf("index_n_heads", absent=16)
    d_index: Positive = hf("index_head_dim", absent=128)
    n_chosen: Positive = hf("index_topk", absent=2048)
    d_ff: Positive = hf(absent=6912)
    dense_layers: Indices = derived(dense_by_type(lambda js, c: (0,)))
    d_expert: Positive = hf(absent=768)
    n_routed_experts: Positive = hf("num_local_experts", "n_routed_experts", absent=256, null=unused)
    n_active_experts: Positive = hf(absent=8)
    n_shared_experts: Natural = hf(absent=1)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(
            c,
            tokens,
            layer,
            list_kinds(c),
            carry=(c.n_chosen,),
            enter=lambda x: widen(x, c.n_streams),
            leave=lambda x: leave(c, x),
        )

    def check(c) -> None:
        check_at_most(c, "d_rope", "d_index")
        check_layer_indices(c, "reusing_layers", "n_layers")
        if 0 in c.reusing_layers:
            raise ParamcountError(
                "= [0, …], but no layer before it has chosen tokens", where="reusing_layers", expected="layers from 1"
            )


def layer(c: Any, kind: tuple[str, str], x: Data, chosen: Data) -> tuple[Data, Data]:
    """`chosen`: the tokens that the last layer with an indexer chose."""
    indexer, mlp = kind
    made: list[Data] = []

    def attention(x: Data) -> Data:
        h = norm(x, "input_layernorm")
        latent = query_latent(c, h, "self_attn.", bias=c.attention_bias)
        if indexer == "full":
            made.extend(index_tokens(c, h, latent, "self_attn.indexer."))
        return latent_attention(
            c,
            h,
            "self_attn.",
            bias=c.attention_bias,
            q_latent=latent,
            chosen=made[0] if made else chosen,
            index=tuple(made[1:]),
            gate=sigmoid_gate("self_attn.linear_gate"),
            sinks="learnable_sink_param",
        )

    def feed_forward(x: Data) -> Data:
        h = norm(x, "post_attention_layernorm")
        return moe(c, h) if mlp == "moe" else gated_mlp(h, "mlp.", "mlp", c.d_ff, names=GATED)

    x = beside(beside(x, c.n_streams, ATTENTION, attention), c.n_streams, MLP, feed_forward)
    return x, made[0] if made else chosen


def moe(c: Any, x: Data) -> Data:
    scores = correction(c, "mlp.gate.e_score_correction_bias")(linear(x, "mlp.gate", "router", c.n_routed_experts))
    shared = gated_mlp(x, "mlp.shared_experts.", "shared_experts", c.n_shared_experts * c.d_expert, names=GATED)
    return stacked_experts(c, x, scores, "mlp.experts.") + shared


def leave(c: Any, x: Data) -> Data:
    weights = mixing(x, c.n_streams, c.n_streams, 1, HEAD)
    return norm(collapse(x, weights), "model.norm")
