"""The language model of dots3.note: gated MLA and experts.

Three of four layers attend to a sliding window and have sizes of their own; the fourth uses sparse attention.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.architectures.bailing_hybrid import head_gate
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

KINDS = ("sliding_attention", "indexed_attention", "full_attention")


def layer_words(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """The first two layers and every fourth look far, the others over a window.

    Whether they look sparsely, use_dsa says, and, with per_layer_config, layer_types alone.
    """
    sparse = js.get("use_dsa", None if sizes.PER_LAYER in js else True)
    words = js.get("layer_types")
    if words is None:
        far = "full_attention" if sparse is False else "indexed_attention"
        words = [
            far if not js.get("use_sliding_window", True) or i < 2 or i % 4 == 1 else "sliding_attention"
            for i in sizes.per_layer(c)
        ]
    if sparse is None:
        return tuple(words)
    old, new = ("full_attention", "indexed_attention") if sparse else ("indexed_attention", "full_attention")
    return tuple(new if word == old else word for word in words)


def without_experts(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The layers in front, and those that moe_layer_freq, a number or a list, leaves out."""
    first, step = sizes.check_no_types(js, "first_k_dense_replace", 1), js.get("moe_layer_freq", 1)
    return tuple(
        i for i in sizes.per_layer(c) if i < first or (not step[i] if isinstance(step, (list, tuple)) else i % step)
    )


def of_layer(
    js: sizes.ConfigJson, own: sizes.Own, sliding: bool, key: str, absent: int, swa_absent: int
) -> tuple[str, Any]:
    """The config key of a size of one layer, and the size.

    It comes from the layer's own entry, from the entry of all layers or, without per_layer_config, from that of its
    layer type.
    """
    if key in own.sizes:
        return f"{own.where}.{key}", own.sizes[key]
    if sliding and sizes.PER_LAYER not in js:
        key, absent = f"swa_{key}", swa_absent
    return key, js.get(key, absent)


def sizes_are_consistent(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """What the reference asks of the sizes of its two kinds of attention."""
    single = sizes.of_single_layers(js, c["n_layers"])
    width = c["d_sliding_nope"] + c["d_sliding_rope"]
    for i, word in enumerate(c["layer_types"]):
        own, sliding = single.get(i, sizes.NOTHING), word == "sliding_attention"
        heads = c["n_sliding_heads" if sliding else "n_heads"]
        where, found = of_layer(js, own, sliding, "num_key_value_heads", 128, 64)
        if found != heads:
            raise ParamcountError(f"= {describe_value(found)} for {heads} heads", where=where, expected=f"{heads}")
        where, found = of_layer(js, own, sliding, "head_dim", 256, 256)
        if sliding and found != width:
            raise sizes.make_value_error(found, where, f"{width}, the sum of the nope and rope head dimensions")


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


def size_of_no_layer(key: str, otherwise: int) -> sizes.Derivation:
    """null: only if no layer has that kind of attention."""

    def derivation(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
        if any((word == "sliding_attention") == key.startswith("swa_") for word in c["layer_types"]):
            raise ParamcountError("= null", where=key, expected="a positive integer")
        return otherwise

    return derivation


def read_ropes(config: Mapping[str, Any], c: Any) -> dict[str, ops.Rope]:
    """The rotary positions of each kind of layer."""
    given = config.get("rope_parameters") or config.get("rope_scaling") or {}
    ropes = {}
    for word in set(c.layer_types):
        block = given.get(word, given)
        theta = config.get("rope_theta", 80_000_000.0)
        if word == "sliding_attention" and not given:
            theta = config.get("swa_rope_theta", 50_000.0)
        kind = block.get("rope_type", block.get("type", "default"))
        ropes[word] = sizes.make_rope(kind, block.get("rope_theta", theta), block, config, 524288)
    return ropes


class Dots3NoteText(parts.RoutedLatentDecoder):
    """Source: modeling_dots3_note.py of the reference, Dots3NoteTextDecoderLayer.

    Sizes with `sliding` in their names belong to layers with a window. A config.json gives them in keys that begin with
    swa_, or in per_layer_config, which then wins.
    """

    reference = "Dots3NoteForCausalLM"
    rotated = None
    linear_by_component = False
    base_model = "Dots3NoteTextModel"
    layered = {
        "sliding_attention": sizes_of_attention("n_sliding_heads", "d_sliding_"),
        "indexed_attention": sizes_of_attention("n_heads", "d_"),
        "full_attention": sizes_of_attention("n_heads", "d_"),
    }
    conditions = (
        sizes_are_consistent,
        sizes.grouped_routing(1, 1),
        sizes.padding_in_table(151659),
        sizes.not_null("n_group", "topk_group", "num_key_value_heads", "n_routed_experts"),
    )

    layer_types: sizes.Words = sizes.derived(layer_words)
    d_q_lora: sizes.Positive = sizes.hf(null=size_of_no_layer("q_lora_rank", 1024), late=True)
    n_index_heads: sizes.Positive = sizes.hf("index_n_heads")
    d_index: sizes.Positive = sizes.hf("index_head_dim")
    n_chosen: sizes.Positive = sizes.hf("index_topk")
    window: sizes.Positive = sizes.hf(absent=lambda js, c: js.get("sliding_window_size", 512), null=sizes.ABSENT)
    n_sliding_heads: sizes.Positive = sizes.hf(
        "swa_num_attention_heads", absent=64, null=size_of_no_layer("swa_num_attention_heads", 64)
    )
    d_sliding_q_lora: sizes.Positive = sizes.hf(
        "swa_q_lora_rank", absent=1024, null=size_of_no_layer("swa_q_lora_rank", 1024)
    )
    d_sliding_kv_lora: sizes.Positive = sizes.hf(
        "swa_kv_lora_rank", absent=1024, null=size_of_no_layer("swa_kv_lora_rank", 1024)
    )
    d_sliding_nope: sizes.Positive = sizes.hf("swa_qk_nope_head_dim", absent=192)
    d_sliding_rope: sizes.Positive = sizes.hf(
        "swa_qk_rope_head_dim",
        absent=lambda js, c: js.get("swa_head_dim", 256) - c["d_sliding_nope"],
        null=size_of_no_layer("swa_qk_rope_head_dim", 64),
    )
    d_sliding_v: sizes.Positive = sizes.hf("swa_v_head_dim", absent=128, null=size_of_no_layer("swa_v_head_dim", 128))
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(without_experts))
    d_shared_expert: sizes.Natural = sizes.hf("moe_shared_expert_intermediate_size", "shared_experts_intermediate_size")
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "n_routed_experts")
    n_shared_experts: sizes.Positive = sizes.hf()

    ropes = sizes.setting(default=read_ropes)
    kinds = parts.layers_by_type_and_mlp

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, density = kind
        x = x + c.attention(c.norm(x, "input_layernorm"), "self_attn.", word)
        h = c.norm(x, "post_attention_layernorm")
        if density == "dense":
            return x + c.gated_mlp(h)
        d_shared = c.n_shared_experts * c.d_shared_expert
        shared = parts.gated_mlp(h, "mlp.shared_experts.", "shared_experts", d_shared, activation=c.activation)
        return x + (parts.mixture(c, h, "mlp.", choose=c.choose) + shared)

    def attention(c, x: Data, prefix: str, word: str) -> Data:
        """Latent attention with a gate for each head, its latents rescaled before they are read."""
        turned = c.ropes[word] if ops.is_known(c.ropes) else ops.Unknown("rope")
        mask, bias, eps = ops.see_earlier(), c.attention_bias, c.norm_eps

        def turn(y: Data) -> Data:
            return ops.rope(y, turned, "interleaved")

        if word == "sliding_attention":
            ranks = (c.d_sliding_q_lora, c.d_sliding_kv_lora)
            widths = parts.Latent(c.n_sliding_heads, *ranks, c.d_sliding_nope, c.d_sliding_rope, c.d_sliding_v)
            mask = ops.see_earlier(c.window)
        else:
            widths = parts.Latent(c.n_heads, c.d_q_lora, c.d_kv_lora, c.d_nope, c.d_rope, c.d_v)
        latent = parts.rescale(parts.query_latent(widths, x, prefix, bias=bias, eps=eps), c.d_model)
        q = parts.queries(widths, x, prefix, latent, bias=bias, eps=eps)
        down = ops.linear(x, prefix + parts.DOWN, "qkv.kv_down", widths.d_kv_lora + widths.d_rope, bias=bias)
        latent_kv, k_rope = ops.split(down, widths.d_kv_lora, widths.d_rope)
        k_rope = ops.cache(turn(ops.rms_norm(k_rope, prefix + "k_rope_only_layernorm", eps)), mask)  # [m, d_rope]
        latent_kv = parts.rescale(ops.rms_norm(latent_kv, prefix + "kv_a_layernorm", eps), c.d_model)
        k, v = parts.expand_latents(widths, (ops.cache(latent_kv, mask), k_rope), prefix)  # [m, n_heads, …]
        s = ops.scores(parts.turn_queries(widths, q, turn), k)  # [n_heads, n, m]
        if word == "indexed_attention":
            s = ops.hide(s, ops.Chosen(parts.index_tokens(c, x, latent, prefix + "indexer.", turn=turn)))
        a = ops.weighted_sum(ops.softmax(s, mask=mask), v)  # [n, n_heads, d_v]
        a = head_gate(widths.n_heads, x, a, prefix + "g_proj")
        return parts.project_output(a, prefix + "o_proj", c.d_model, bias=bias)

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)
        words = set(c.layer_types)
        for found, width in (
            (words - {"sliding_attention"}, "d_rope"),
            (words & {"sliding_attention"}, "d_sliding_rope"),
        ):
            if found:
                sizes.check_even(c, width)
                sizes.check_rotated_in_pairs(c, width)
        if "indexed_attention" in words:
            sizes.check_at_most(c, "d_rope", "d_index")
