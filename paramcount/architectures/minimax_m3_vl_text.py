"""MiniMax-M3's language model: sparse attention over blocks and clamped SwiGLU.

A small indexer chooses for each KV head which blocks of keys its queries attend to.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes

KINDS = ("full_attention", "minimax_m3_sparse", "attention")  # the last is the older word for the first
OLDER = "sparse_attention_config."  # the block that released files have, whose keys stand before the others


def truths(js: sizes.ConfigJson, c: sizes.FieldValues, key: str, found: Any) -> tuple[bool, ...]:
    """One number or flag per layer."""
    if not isinstance(found, (list, tuple)) or len(found) != c["n_layers"]:
        raise sizes.make_value_error(found, key, "one number per layer")
    return tuple(bool(found[i]) for i in sizes.per_layer(c))


def words(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    older = js.get("sparse_attention_config") or {}
    if "sparse_attention_freq" not in older:
        return tuple(KINDS[0] for _ in sizes.per_layer(c))
    return tuple(KINDS[sparse] for sparse in truths(js, c, "sparse_attention_freq", older["sparse_attention_freq"]))


def dense(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    found = js.get("moe_layer_freq")
    return () if found is None else tuple(i for i, moe in enumerate(truths(js, c, "moe_layer_freq", found)) if not moe)


def read_n_local_blocks(config: Mapping[str, Any], c: Any) -> int:
    older = config.get("sparse_attention_config") or {}
    found: int = older.get("sparse_local_block", config.get("index_local_blocks", 1))
    return found


class MiniMaxM3Text(parts.AttentionDecoder):
    """Source: MiniMaxM3VLDecoderLayer and MiniMaxM3VLIndexer of the reference."""

    reference = "MiniMaxM3VLForCausalLM"
    rotated = None
    base_model = "MiniMaxM3VLTextModel"
    indexer: ClassVar[str] = "indexer."  # in front of the names of its matrices
    unused_keys: ClassVar[tuple[str, ...]] = ("rotary_dim",)
    conditions = (sizes.not_null("num_local_experts"), sizes.padding_in_table(None))
    defaults = {"d_head": 128}

    d_rope: sizes.Natural = sizes.derived(sizes.rotary_dimension())
    layer_types: sizes.Words = sizes.hf(absent=words, null=sizes.ABSENT)
    n_index_heads: sizes.Positive = sizes.hf(OLDER + "sparse_num_index_heads", "index_n_heads")
    d_index: sizes.Positive = sizes.hf(OLDER + "sparse_index_dim", "index_head_dim")
    d_index_rope: sizes.Natural = sizes.derived(lambda js, c: min(c["d_rope"], c["d_index"]))
    block_size: sizes.Positive = sizes.hf(OLDER + "sparse_block_size", "index_block_size")
    n_chosen_blocks: sizes.Positive = sizes.hf(OLDER + "sparse_topk_blocks", "index_topk_blocks")
    d_ff: sizes.Natural = sizes.hf("dense_intermediate_size")
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(dense))
    d_expert: sizes.Natural = sizes.hf("intermediate_size")
    n_routed_experts: sizes.Positive = sizes.hf("num_experts", "num_local_experts", null=sizes.unused)
    n_active_experts: sizes.Natural = sizes.hf()
    d_shared_expert: sizes.Natural = sizes.hf("shared_intermediate_size")

    rope = sizes.rotary(share=1.0)
    activation = "silu"  # whatever hidden_act says, which is swigluoai in released files
    alpha = sizes.setting("swiglu_alpha")
    limit = sizes.setting("swiglu_limit")
    routed_scale = sizes.setting("routed_scaling_factor")
    n_local_blocks = sizes.setting(default=read_n_local_blocks)
    kinds = parts.layers_by_type_and_mlp

    def layer(c, x: Data, kind: tuple[str, str]) -> Data:
        word, mlp = kind
        x = x + c.attention(c.norm(x, "input_layernorm"), "self_attn.", sparse=word == KINDS[1])
        h = c.norm(x, "post_attention_layernorm")
        return x + (c.moe(h) if mlp == "moe" else c.mlp(h, "mlp.", "mlp", c.d_ff))

    def norm(c, x: Data, name: str) -> Data:
        return ops.rms_norm(x, name, c.norm_eps, offset=1)

    def attention(c, x: Data, prefix: str, *, sparse: bool) -> Data:
        """An indexer with as many heads as there are KV heads may choose the blocks of keys that queries attend to."""

        def rotated(name: str, component: str, n: ops.Size, d: ops.Size, d_rope: ops.Size) -> Data:
            y = ops.linear(x, f"{prefix}{name}_proj", component, (n, d))
            turned, kept = ops.split(c.norm(y, f"{prefix}{name}_norm"), d_rope, d - d_rope)
            return ops.join(ops.rope_cut(turned, c.rope, c.d_rope), kept)

        q = rotated("q", "qkv.q", c.n_heads, c.d_head, c.d_rope)
        k = rotated("k", "qkv.k", c.n_kv_heads, c.d_head, c.d_rope)
        v = ops.linear(x, prefix + "v_proj", "qkv.v", (c.n_kv_heads, c.d_head))  # [n, n_kv_heads, d_head]
        k, v = ops.cache(k), ops.cache(v)  # [m, n_kv_heads, d_head]
        s = ops.scores(q, k)  # [n_heads, n, m]
        if sparse:
            index_q = rotated(c.indexer + "q", "other", c.n_index_heads, c.d_index, c.d_index_rope)
            index_k = ops.cache(rotated(c.indexer + "k", "other", 1, c.d_index, c.d_index_rope))
            chosen = ops.choose_blocks_of_keys(index_q, index_k, c.n_chosen_blocks, c.block_size, c.n_local_blocks)
            s = ops.hide(s, ops.Chosen(chosen, c.block_size))
        a = ops.weighted_sum(ops.softmax(s, mask=ops.Causal()), v)  # [n, n_heads, d_head]
        return ops.linear(a, prefix + "o_proj", "output_projection", c.d_model)

    def moe(c, x: Data) -> Data:
        logits = ops.linear(x, "mlp.gate", "router", c.n_routed_experts)  # [n, experts]
        bias = parts.routing_bias(c, "mlp.gate.e_score_correction_bias")
        chosen = ops.route(logits, c.n_active_experts, "sigmoid", bias=bias, normalise=True, factor=c.routed_scale)
        n, active = c.n_routed_experts, c.n_active_experts
        routed = ops.experts(x, chosen, "mlp.experts.", n, active, c.expert, stored="stacked")  # [n, d_model]
        return routed + c.mlp(x, "mlp.shared_experts.", "shared_experts", c.d_shared_expert)

    def expert(c, x: Data) -> Data:
        halves, names = {"experts.gate": c.d_expert, "experts.up": c.d_expert}, ("", "")
        gate, up = ops.fused(x, "gate_up_proj", halves, suffixes=names)  # [n, d_expert]
        return ops.fused(c.gated(gate, up), "down_proj", {"experts.down": c.d_model}, suffixes=names)[0]  # [n, d_model]

    def mlp(c, x: Data, prefix: str, component: str, d_ff: ops.Size) -> Data:
        gate, up = ops.fused(x, prefix + "gate_up_proj", {component + ".gate": d_ff, component + ".up": d_ff})
        return ops.linear(c.gated(gate, up), prefix + "down_proj", component + ".down", c.d_model)

    def gated(c, gate: Data, up: Data) -> Data:
        """gate · sigmoid(α · gate) · (up + 1), both limited."""
        gate = ops.activate(ops.clip(gate, None, c.limit), "silu", alpha=c.alpha)
        return gate * ops.scale_by(ops.clip(up, -c.limit, c.limit), 1.0, "add 1", shift=1.0)

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)
        sizes.check_at_most(c, "d_rope", "d_head")
        if KINDS[1] in c.layer_types:
            sizes.check_divides(c, "n_index_heads", "n_heads")


class MiniMaxM3Alone(MiniMaxM3Text):
    """The language model with its sizes at the top level, as inference engines name it. Source:
    modeling_minimaxm3.py of NVIDIA/TensorRT-LLM, whose class loads the tensors of the release.
    """

    reference = "MiniMaxM3ForCausalLM of NVIDIA/TensorRT-LLM"
    model_types = ("minimax_m3",)
    base_model = "MiniMaxM3Model"
