"""MiniMax-M3's language model: sparse attention over blocks and clamped SwiGLU.

A small indexer chooses for each KV head which blocks of keys its queries attend to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, attend, linear, norm
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoders import decoder, typed_layers, usual_layer
from paramcount.parts.feed_forward import correction, fused_gated_mlp
from paramcount.parts.stacked import stacked_experts
from paramcount.sizes import ABSENT, Condition, Flag, Indices, Natural, Positive, Sizes, Words, derived, hf, per_layer
from paramcount.sizes.conditions import not_null, padding_in_table
from paramcount.sizes.layer_types import dense_by_type, unused
from paramcount.sizes.rotary import rotary_width
from paramcount.sizes.rules import check_at_most, check_divides, check_layer_types

KINDS = ("full_attention", "minimax_m3_sparse", "attention")  # the last is the older word for the first
OLDER = "sparse_attention_config."  # the block that released files have, whose keys stand before the others


def truths(js: Mapping[str, Any], c: Mapping[str, Any], key: str, found: Any) -> tuple[bool, ...]:
    """One number or flag per layer."""
    if not isinstance(found, (list, tuple)) or len(found) != c["n_layers"]:
        raise ParamcountError(f"= {describe_value(found)}", where=key, expected="one number per layer")
    return tuple(bool(found[i]) for i in per_layer(c))


def words(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    older = js.get("sparse_attention_config") or {}
    if "sparse_attention_freq" not in older:
        return tuple(KINDS[0] for _ in per_layer(c))
    return tuple(KINDS[sparse] for sparse in truths(js, c, "sparse_attention_freq", older["sparse_attention_freq"]))


def dense(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[int, ...]:
    found = js.get("moe_layer_freq")
    return () if found is None else tuple(i for i, moe in enumerate(truths(js, c, "moe_layer_freq", found)) if not moe)


class MiniMaxM3Text(Sizes):
    """Source: modeling_minimax_m3_vl.py of the reference."""

    reference: ClassVar[str] = "MiniMaxM3VLForCausalLM"
    base_model: ClassVar[str | None] = "MiniMaxM3VLTextModel"
    unused_keys: ClassVar[tuple[str, ...]] = ("rotary_dim",)
    conditions: ClassVar[tuple[Condition, ...]] = (not_null("num_local_experts"), padding_in_table(None))

    vocab_size: Positive = hf(absent=200064)
    d_model: Positive = hf(absent=6144)
    n_layers: Positive = hf(absent=60)
    n_heads: Positive = hf(absent=64)
    n_kv_heads: Positive = hf(absent=4)
    d_head: Positive = hf(absent=128)
    d_rope: Natural = derived(rotary_width())
    layer_types: Words = hf(absent=words, null=ABSENT)
    n_index_heads: Positive = hf(OLDER + "sparse_num_index_heads", "index_n_heads", absent=4)
    d_index: Positive = hf(OLDER + "sparse_index_dim", "index_head_dim", absent=128)
    d_index_rope: Natural = derived(lambda js, c: min(c["d_rope"], c["d_index"]))
    block_size: Positive = hf(OLDER + "sparse_block_size", "index_block_size", absent=128)
    n_chosen_blocks: Positive = hf(OLDER + "sparse_topk_blocks", "index_topk_blocks", absent=16)
    d_ff: Positive = hf("dense_intermediate_size", absent=12288)
    dense_layers: Indices = derived(dense_by_type(dense))
    d_expert: Positive = hf("intermediate_size", absent=3072)
    n_routed_experts: Positive = hf("num_experts", "num_local_experts", absent=128, null=unused)
    n_active_experts: Positive = hf(absent=4)
    d_shared_expert: Positive = hf("shared_intermediate_size", absent=3072)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, typed_layers(c.layer_types, c.dense_layers))

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)
        check_at_most(c, "d_rope", "d_head")
        if KINDS[1] in c.layer_types:
            check_divides(c, "n_index_heads", "n_heads")


def layer(c: Any, kind: tuple[str, str], x: Data) -> Data:
    word, mlp = kind
    feed_forward = (
        (lambda h: moe(c, h))
        if mlp == "moe"
        else (lambda h: fused_gated_mlp(h, "mlp.", "mlp", c.d_ff, activation="swiglu-oai"))
    )
    return usual_layer(c, x, feed_forward, attend=look, sparse=word == KINDS[1])


def look(c: Any, x: Data, prefix: str, *, sparse: bool) -> Data:
    def normed(name: str, component: str, n: Any, width: Any, d_rope: Any) -> Data:
        y = linear(x, f"{prefix}{name}_proj", component, (n, width))
        return partial_rope(norm(y, f"{prefix}{name}_norm"), d_rope)

    q, k = normed("q", "qkv.q", c.n_heads, c.d_head, c.d_rope), normed("k", "qkv.k", c.n_kv_heads, c.d_head, c.d_rope)
    v = linear(x, prefix + "v_proj", "qkv.v", (c.n_kv_heads, c.d_head))
    kept: tuple[Data, ...] = (k, v)
    if sparse:
        index_q = normed("indexer.q", "other", c.n_index_heads, c.d_index, c.d_index_rope)
        index_k = normed("indexer.k", "other", 1, c.d_index, c.d_index_rope)
        chosen = Data(
            "choose blocks", (index_q, index_k), (x.shape[0], c.n_index_heads, c.n_chosen_blocks, c.block_size)
        )
        k, v, kept = Data("choose", (k, chosen), k.shape), Data("choose", (v, chosen), v.shape), (k, v, index_k)
    return linear(attend(q, k, v, cached=kept), prefix + "o_proj", "output_projection", c.d_model)


def moe(c: Any, x: Data) -> Data:
    scores = correction(c, "mlp.gate.e_score_correction_bias")(linear(x, "mlp.gate", "router", c.n_routed_experts))
    shared = fused_gated_mlp(x, "mlp.shared_experts.", "shared_experts", c.d_shared_expert, activation="swiglu-oai")
    return stacked_experts(c, x, scores, "mlp.experts.") + shared
