"""GLM-5.3 Flash: four residual streams, three layers of Kimi Delta Attention to one of sparse MLA without positions.

An indexer chooses blocks of tokens. Images go through GLM-OCR's encoder.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

LINEAR, INDEXED, SHARED = "linear_attention", "indexed_attention", "shared"
ATTENTION = ("hc_attn_fn", "hc_attn_base", "hc_attn_scale")
FEED_FORWARD = ("hc_ffn_fn", "hc_ffn_base", "hc_ffn_scale")
KEY_EPS = 1e-6  # of the norm of index keys, whatever rms_norm_eps is


def read_layer_types(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """Every fourth layer looks at chosen tokens, which are also called full attention."""
    words = js.get("layer_types")
    if words is None:
        return tuple(INDEXED if i % 4 == 3 else LINEAR for i in sizes.per_layer(c))
    return tuple(INDEXED if word == "full_attention" else word for word in words)


def read_reusing_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The layers that look at the tokens that the layer before has chosen."""
    indexed = [i for i, word in zip(sizes.per_layer(c), c["layer_types"]) if word == INDEXED]
    words = sizes.read_indexer_types(js, c, indexed[-1] + 1 if indexed else 0)
    return tuple(i for i in indexed if words[i] == SHARED)


def heads_are_whole(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    n = js.get("num_key_value_heads", 64)
    if n != c["n_heads"]:
        raise sizes.make_value_error(n, "num_key_value_heads", f"{c['n_heads']}")


def nothing_is_rotated(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    n = js.get("qk_rope_head_dim", 0)
    if n > 0 or (n < 0 and INDEXED in c["layer_types"]):
        found = f"= {n}, but no part of a head is rotated"
        raise ParamcountError(found, where="qk_rope_head_dim", expected="0, or no such key")


def read_decay_floor(config: Mapping[str, Any], c: Any) -> float | None:
    """The least logarithm of the decay of linear attention, if there is one."""
    given = config.get("linear_attn_config")
    floor: float | None = config.get("linear_lower_bound", -5.0)
    if given is None:
        return floor
    floor = given.get("gate_lower_bound", floor)
    return -5.0 if floor is None and given.get("safe_gate", True) else floor


class Glm5NextText(parts.RoutedLatentDecoder):
    """Source: Glm5NextTextDecoderLayer of the reference. `n_chosen`: tokens of the blocks that a token looks at."""

    reference = "Glm5NextForConditionalGeneration"
    model_types = ("glm5_next_text",)
    is_section_type = False
    rotated = None
    d_rope = sizes.constant(None)
    reference_names = {
        "model.": "",
        ".self_attn.f_a_proj.": ".self_attn.forget_gate.f_a_proj.",
        ".self_attn.f_b_proj.": ".self_attn.forget_gate.f_b_proj.",
        ".hc_attn_": ".attn_hc.",
        ".hc_ffn_": ".ffn_hc.",
    }
    base_model = "Glm5NextTextModel"
    float32 = (
        "e_score_correction_bias", "conv1d", "dt_bias", "A_log", "attn_hc.base", "attn_hc.scale", "ffn_hc.base",
        "ffn_hc.scale", "q_conv1d", "k_conv1d", "v_conv1d", *ATTENTION[1:], *FEED_FORWARD[1:],
    )  # fmt: skip
    linear_routers = (".indexer.weights_proj.weight",)
    unused_keys = ("head_dim", "num_key_value_heads", "qk_rope_head_dim")
    conditions = (sizes.grouped_routing(1, 1), heads_are_whole, nothing_is_rotated, sizes.padding_in_table(154820))

    layer_types: sizes.Words = sizes.derived(read_layer_types)
    n_streams: sizes.Positive = sizes.hf("hc_mult")
    n_linear_heads: sizes.Positive = sizes.hf("linear_attn_config.num_heads", "linear_num_heads")
    d_linear_head: sizes.Positive = sizes.hf("linear_attn_config.head_dim", "linear_head_dim")
    d_conv: sizes.Positive = sizes.hf("linear_attn_config.short_conv_kernel_size", "linear_conv_kernel_dim")
    d_q_lora: sizes.Positive = sizes.hf()
    reusing_layers: sizes.Indices = sizes.derived(read_reusing_layers)
    n_index_heads: sizes.Positive = sizes.hf("index_n_heads")
    d_index: sizes.Positive = sizes.hf("index_head_dim")
    n_chosen: sizes.Natural = sizes.hf("index_topk")
    index_block: sizes.Positive = sizes.hf("index_kpool")
    index_tail: sizes.Flag = sizes.hf("index_kpool_always_select_tail")
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(lambda js, c: tuple(sizes.per_layer(c)[:3])))
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "n_routed_experts", null=sizes.unused, late=True)
    n_shared_experts: sizes.Natural = sizes.hf()

    limit = sizes.setting("swiglu_limit")
    decay_floor = sizes.setting(default=read_decay_floor)
    streams_eps = sizes.setting("hc_eps")
    sinkhorn_iterations = sizes.setting("hc_sinkhorn_iters", kind=sizes.NATURAL)

    def transform(c, x: Data, *reads: Data) -> Data:
        """Embedded tokens, the same in all streams, through the layers."""
        return super().transform(ops.to_every_stream(x, c.n_streams), *reads)

    def kinds(c) -> parts.Kinds:
        reusing = set(c.reusing_layers)
        words = [SHARED if i in reusing else word for i, word in enumerate(c.layer_types)]
        return parts.typed_layers(words, c.dense_layers)

    def carry(c) -> tuple[Any, ...]:
        """The tokens that the last layer with an indexer has chosen."""
        return (c.n_chosen + c.index_block - 1 if c.index_tail else c.n_chosen,) if c.reusing_layers else ()

    def last(c, x: Data) -> Data:
        return super().last(ops.mean_of_streams(x))

    def layer(c, x: Data, *reads: Any) -> Any:
        *chosen, (word, mlp) = reads

        def attention(x: Data) -> Data:
            h = c.norm(x, "input_layernorm")
            if word == LINEAR:
                return parts.kimi_delta_attention(c, h, "self_attn.", floor=c.decay_floor)
            latent = parts.query_latent(c, h, "self_attn.", bias=c.attention_bias, eps=c.norm_eps)
            if word == INDEXED:
                chosen[:] = [c.choose_tokens(h, latent, "self_attn.indexer.")]
            bias = c.attention_bias
            q = parts.queries(c, h, "self_attn.", latent, bias=bias, eps=c.norm_eps)
            latents = parts.cache_latents(c, h, "self_attn.", bias=bias, eps=c.norm_eps)
            k, v = parts.expand_latents(c, latents, "self_attn.")  # [m, n_heads, d_nope + d_rope] and [m, n_heads, d_v]
            a = parts.attend_to_chosen(parts.turn_queries(c, q), k, v, chosen[0])  # [n, n_heads, d_v]
            return parts.project_output(a, "self_attn.o_proj", h.shape[-1], bias=bias)

        def feed_forward(x: Data) -> Data:
            h = c.norm(x, "post_attention_layernorm")
            return c.moe(h, "mlp.") if mlp == "moe" else c.mlp(h, "mlp.", "mlp", c.d_ff)

        x = parts.connect_all(c, parts.connect_all(c, x, ATTENTION, attention), FEED_FORWARD, feed_forward)
        return (x, *chosen) if c.reusing_layers else x

    def choose_tokens(c, x: Data, q_latent: Data, prefix: str) -> Data:
        """The tokens of the best blocks, and those of the last one while it is incomplete: [n, chosen].

        A weighted mean of its keys stands for a block; each channel has weights of its own.
        """
        keys = ops.layer_norm(ops.linear(x, prefix + "wk", "other", c.d_index), prefix + "k_norm", KEY_EPS)
        gate = ops.Weight(prefix + "index_kpool_compress_gate", "other", (c.d_index, c.d_model))
        scores = Data(ops.Linear(), (x,), keys.shape, (gate,))
        keys, scores = ops.cache(keys), ops.cache(scores)  # [m, d_index]
        by_position = ops.Weight(prefix + "index_kpool_compress_ape", "other", (c.index_block, c.d_index))
        blocks = ops.weigh_blocks(keys, scores, by_position, c.d_index, ops.CachedWeightedBlocks(c.index_block))
        q = ops.linear(q_latent, prefix + "wq_b", "other", (c.n_index_heads, c.d_index))
        of_heads = ops.linear(x, prefix + "weights_proj", "other", c.n_index_heads)
        return ops.choose_tokens_of_blocks(q, blocks, of_heads, c.n_chosen, c.index_block, tail=c.index_tail)

    def moe(c, x: Data, prefix: str) -> Data:
        """The activation of the routed experts is always SiLU."""
        weights = c.choose(ops.linear(x, prefix + "gate", "router", c.n_routed_experts))
        routed = ops.experts(
            x, weights, prefix + "experts.{expert}.", c.n_routed_experts, c.n_active_experts,
            lambda x: parts.gated_mlp(x, "", "experts", c.d_expert, activation="silu", limit=c.limit),
        )  # fmt: skip
        return routed + c.mlp(x, prefix + "shared_experts.", "shared_experts", c.n_shared_experts * c.d_expert)

    def mlp(c, x: Data, prefix: str, component: str, d_ff: Any) -> Data:
        return parts.gated_mlp(x, prefix, component, d_ff, activation=c.activation, limit=c.limit)

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", (LINEAR, INDEXED))
        if c.n_chosen % c.index_block:
            found = f"= {c.n_chosen} is not a multiple of " + FieldName("index_block") + f" = {c.index_block}"
            raise ParamcountError(found, where=FieldName("n_chosen"), expected=f"a multiple of {c.index_block}")
        for i in c.reusing_layers:
            if i == 0 or c.layer_types[i - 1] != INDEXED or i - 1 in c.reusing_layers:
                raise ParamcountError(
                    f"contains {i}, but layer {i - 1} has no indexer whose tokens it could reuse"
                    if i
                    else "contains 0, but there is no layer before it",
                    where=FieldName("reusing_layers"),
                    expected="layers that follow one with an indexer",
                )


class Glm5Next(parts.PlacedImages):
    """Source: modeling_glm5_next.py of the reference."""

    reference = "Glm5NextForConditionalGeneration"
    sections = sizes.Sections("glm5_next_text", ignores_model_type=True, is_flat=True)
    reference_names = {
        ".self_attn.f_a_proj.": ".self_attn.forget_gate.f_a_proj.",
        ".self_attn.f_b_proj.": ".self_attn.forget_gate.f_b_proj.",
        ".hc_attn_": ".attn_hc.",
        ".hc_ffn_": ".ffn_hc.",
    }

    vision: parts.Glm5NextVision
