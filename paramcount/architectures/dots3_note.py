"""dots3.note: gated MLA and experts.

Three of four layers attend to a sliding window and have sizes of their own; the fourth uses sparse attention.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.bailing_hybrid import head_gate
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, activate
from paramcount.parts.decoders import decoder, pre_norm, typed_layers
from paramcount.parts.feed_forward import correction, gated_mlp, mixture
from paramcount.parts.mla import Latent, index_tokens, latent_attention, query_latent
from paramcount.sizes import (
    ABSENT,
    Condition,
    Derivation,
    Flag,
    Indices,
    Natural,
    Positive,
    Sizes,
    Words,
    derived,
    hf,
    per_layer,
)
from paramcount.sizes.conditions import grouped_routing, not_null, padding_in_table
from paramcount.sizes.layer_types import check_no_types, dense_by_type
from paramcount.sizes.rules import check_at_most, check_even, check_layer_types, check_rotated_in_pairs
from paramcount.sizes.single_layers import NOTHING, PER_LAYER, Own, of_single_layers

KINDS = ("sliding_attention", "indexed_attention", "full_attention")


def layer_words(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    """The first two layers and every fourth look far, the others over a window.

    Whether they look sparsely, use_dsa says, and, with per_layer_config, layer_types alone.
    """
    sparse = js.get("use_dsa", None if PER_LAYER in js else True)
    words = js.get("layer_types")
    if words is None:
        far = "full_attention" if sparse is False else "indexed_attention"
        words = [
            far if not js.get("use_sliding_window", True) or i < 2 or i % 4 == 1 else "sliding_attention"
            for i in per_layer(c)
        ]
    if sparse is None:
        return tuple(words)
    old, new = ("full_attention", "indexed_attention") if sparse else ("indexed_attention", "full_attention")
    return tuple(new if word == old else word for word in words)


def without_experts(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[int, ...]:
    """The layers in front, and those that moe_layer_freq, a number or a list, leaves out."""
    first, step = check_no_types(js, "first_k_dense_replace", 1), js.get("moe_layer_freq", 1)
    return tuple(i for i in per_layer(c) if i < first or (not step[i] if isinstance(step, (list, tuple)) else i % step))


def of_layer(js: Mapping[str, Any], own: Own, sliding: bool, key: str, absent: int, swa_absent: int) -> tuple[str, Any]:
    """The config key of a size of one layer, and the size.

    It comes from the layer's own entry, from the entry of all layers or, without per_layer_config, from that of its
    layer type.
    """
    if key in own.sizes:
        return f"{own.where}.{key}", own.sizes[key]
    if sliding and PER_LAYER not in js:
        key, absent = f"swa_{key}", swa_absent
    return key, js.get(key, absent)


def sizes_are_consistent(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
    """What the reference asks of the sizes of its two kinds of attention."""
    single = of_single_layers(js, c["n_layers"])
    width = c["d_sliding_nope"] + c["d_sliding_rope"]
    for i, word in enumerate(c["layer_types"]):
        own, sliding = single.get(i, NOTHING), word == "sliding_attention"
        heads = c["n_sliding_heads" if sliding else "n_heads"]
        where, found = of_layer(js, own, sliding, "num_key_value_heads", 128, 64)
        if found != heads:
            raise ParamcountError(f"= {describe_value(found)} for {heads} heads", where=where, expected=f"{heads}")
        where, found = of_layer(js, own, sliding, "head_dim", 256, 256)
        if sliding and found != width:
            raise ParamcountError(f"= {describe_value(found)}", where=where, expected=f"{width}, the sum of its parts")


def sizes_of_attention(heads: str, start: str) -> dict[str, str]:
    """{key: field} of a kind of attention; the keys without a field are the conditions' alone."""
    widths = {
        "q_lora_rank": "q_lora",
        "kv_lora_rank": "kv_lora",
        "qk_nope_head_dim": "nope",
        "qk_rope_head_dim": "rope",
        "v_head_dim": "v",
    }
    return {"num_attention_heads": heads, "num_key_value_heads": "", "head_dim": ""} | {
        key: start + field for key, field in widths.items()
    }


def query_rank_of_no_layer(key: str) -> Derivation:
    """null: only if no layer has that kind of attention."""

    def derivation(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
        if any((word == "sliding_attention") == key.startswith("swa_") for word in c["layer_types"]):
            raise ParamcountError("= null", where=key, expected="a positive integer")
        return 1024

    return derivation


class Dots3Note(Sizes):
    """Source: modeling_dots3_note.py of the reference. Sizes with `sliding` in their names are those of the layers with
    a window, which a config.json gives in keys that begin with swa_, or in per_layer_config, beside which those
    count for nothing.
    """

    reference: ClassVar[str] = "Dots3NoteForCausalLM"
    linear_by_component: ClassVar[bool] = False
    base_model: ClassVar[str | None] = "Dots3NoteTextModel"
    layered: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "sliding_attention": sizes_of_attention("n_sliding_heads", "d_sliding_"),
        "indexed_attention": sizes_of_attention("n_heads", "d_"),
        "full_attention": sizes_of_attention("n_heads", "d_"),
    }
    conditions: ClassVar[tuple[Condition, ...]] = (
        sizes_are_consistent,
        grouped_routing(1, 1),
        padding_in_table(151659),
        not_null("n_group", "topk_group", "num_key_value_heads", "n_routed_experts"),
    )

    vocab_size: Positive = hf(absent=152064)
    d_model: Positive = hf(absent=5120)
    n_layers: Positive = hf(absent=46)
    layer_types: Words = derived(layer_words)
    n_heads: Positive = hf(absent=128)
    d_q_lora: Positive = hf(absent=1024, null=query_rank_of_no_layer("q_lora_rank"))
    d_kv_lora: Positive = hf(absent=512)
    d_nope: Positive = hf(absent=128)
    d_rope: Positive = hf(absent=64)
    d_v: Positive = hf(absent=128)
    n_index_heads: Positive = hf("index_n_heads", absent=64)
    d_index: Positive = hf("index_head_dim", absent=128)
    n_chosen: Positive = hf("index_topk", absent=2048)
    window: Positive = hf("sliding_window", absent=lambda js, c: js.get("sliding_window_size", 512), null=ABSENT)
    n_sliding_heads: Positive = hf("swa_num_attention_heads", absent=64)
    d_sliding_q_lora: Positive = hf("swa_q_lora_rank", absent=1024, null=query_rank_of_no_layer("swa_q_lora_rank"))
    d_sliding_kv_lora: Positive = hf("swa_kv_lora_rank", absent=1024)
    d_sliding_nope: Positive = hf("swa_qk_nope_head_dim", absent=192)
    d_sliding_rope: Positive = hf(
        "swa_qk_rope_head_dim", absent=lambda js, c: js.get("swa_head_dim", 256) - c["d_sliding_nope"]
    )
    d_sliding_v: Positive = hf("swa_v_head_dim", absent=128)
    d_ff: Positive = hf(absent=13824)
    dense_layers: Indices = derived(dense_by_type(without_experts))
    d_expert: Positive = hf(absent=1536)
    d_shared_expert: Natural = hf(
        "moe_shared_expert_intermediate_size", "shared_experts_intermediate_size", absent=1536
    )
    n_routed_experts: Positive = hf("num_local_experts", "n_routed_experts", absent=256)
    n_active_experts: Positive = hf(absent=8)
    n_shared_experts: Positive = hf(absent=1)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, typed_layers(c.layer_types, c.dense_layers))

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)
        words = set(c.layer_types)
        for found, width in (
            (words - {"sliding_attention"}, "d_rope"),
            (words & {"sliding_attention"}, "d_sliding_rope"),
        ):
            if found:
                check_even(c, width)
                check_rotated_in_pairs(c, width)
        if "indexed_attention" in words:
            check_at_most(c, "d_rope", "d_index")


def layer(c: Any, kind: tuple[str, str], x: Data) -> Data:
    word, mlp = kind
    feed_forward = (lambda h: moe(c, h, "mlp.")) if mlp == "moe" else (lambda h: gated_mlp(h, "mlp.", "mlp", c.d_ff))
    return pre_norm(x, lambda h: attention(c, h, "self_attn.", word), feed_forward)


def attention(c: Any, x: Data, prefix: str, word: str) -> Data:
    """Latent attention with a gate for each head, its latents rescaled before they are read."""
    sizes, window = c, None
    if word == "sliding_attention":
        sizes, window = (
            Latent(
                c.n_sliding_heads,
                c.d_sliding_q_lora,
                c.d_sliding_kv_lora,
                c.d_sliding_nope,
                c.d_sliding_rope,
                c.d_sliding_v,
            ),
            c.window,
        )
    latent = activate(query_latent(sizes, x, prefix, bias=c.attention_bias), "times a number")
    chosen, *index = index_tokens(c, x, latent, prefix + "indexer.") if word == "indexed_attention" else (None,)
    return latent_attention(
        sizes,
        x,
        prefix,
        bias=c.attention_bias,
        q_latent=latent,
        rope_norm=True,
        rescaled=True,
        chosen=chosen,
        index=tuple(index),
        window=window,
        gate=lambda x, a: head_gate(sizes.n_heads, x, a, prefix + "g_proj"),
    )


def moe(c: Any, x: Data, prefix: str) -> Data:
    """The shared experts have a width of their own."""
    routed = mixture(c, x, prefix, choose=correction(c, prefix + "gate.e_score_correction_bias"))
    return routed + gated_mlp(x, prefix + "shared_experts.", "shared_experts", c.n_shared_experts * c.d_shared_expert)
