"""Qwen3-Next: three layers of gated delta net to one of gated attention, many experts beside a gated shared one."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes

KINDS = ("linear_attention", "full_attention", "mamba", "attention")  # the last two are the older words


def every_fourth(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """Or as often as full_attention_interval says."""
    period = sizes.check_no_types(js, "full_attention_interval", 4)
    return tuple(KINDS[(i + 1) % period == 0] for i in sizes.per_layer(c))


def dense(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    return sizes.scattered_dense_layers(js, c) if c["n_routed_experts"] else tuple(sizes.per_layer(c))


class GatedDeltaHybrid(parts.AttentionBias, parts.Decoder):
    """What Qwen3-Next and Qwen3.5 have in common.

    Source: for the delta net arXiv:2412.06464; for the gate of the attention arXiv:2505.06708.
    """

    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_in_table(None),)
    linear_routers = (".shared_expert_gate.weight",)
    stores_together: ClassVar[bool] = False  # the delta net's gate with q, k and v, its beta with the step

    layer_types: sizes.Words = sizes.hf(absent=every_fourth, null=sizes.ABSENT)
    n_heads: sizes.Positive = sizes.hf()
    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf()
    d_rope: sizes.Natural = sizes.derived(sizes.rotary_dimension(0.25))
    n_linear_k_heads: sizes.Positive = sizes.hf("linear_num_key_heads")
    d_linear_k: sizes.Positive = sizes.hf("linear_key_head_dim")
    n_linear_v_heads: sizes.Positive = sizes.hf("linear_num_value_heads")
    d_linear_v: sizes.Positive = sizes.hf("linear_value_head_dim")
    d_conv: sizes.Positive = sizes.hf("linear_conv_kernel_dim")

    rope = sizes.rotary(share=0.25)
    norm_topk_prob: ClassVar = sizes.setting("norm_topk_prob", default=True)

    def norm(c, x: Data, name: str) -> Data:
        return ops.rms_norm(x, name, c.norm_eps, offset=1.0)

    def layer(c, x: Data, *reads: Any) -> Data:
        """`reads`: the places of the tokens, if there may be images, and the kind of layer."""
        *places, (word, density) = reads
        h = c.norm(x, "input_layernorm")
        if word in ("linear_attention", "mamba"):
            x = x + parts.gated_delta_net(c, h, "linear_attn.", together=c.stores_together)
        else:
            x = x + c.attention(h, "self_attn.", *places)
        h = c.norm(x, "post_attention_layernorm")
        return x + (c.experts(h, "mlp.") if density == "moe" else c.mlp(h, "mlp."))

    def attention(c, x: Data, prefix: str, *places: Data) -> Data:
        """Each head of q_proj is twice as wide: the query, and the gate of what that head attends to."""
        heads, bias = (c.n_heads, c.d_head), c.attention_bias
        q, gate = ops.fused(x, prefix + "q_proj", {"qkv.q": heads, "qkv.gate": heads}, bias=bias, groups=c.n_heads)
        k = ops.linear(x, prefix + "k_proj", "qkv.k", (c.n_kv_heads, c.d_head), bias=bias)  # [n, n_kv_heads, d_head]
        v = ops.linear(x, prefix + "v_proj", "qkv.v", (c.n_kv_heads, c.d_head), bias=bias)  # [n, n_kv_heads, d_head]
        q, k = (c.rotate(c.norm(y, f"{prefix}{name}_norm"), *places) for y, name in ((q, "q"), (k, "k")))
        a = c.attend(x, q, k, v, prefix, *places) * ops.activate(gate, "sigmoid")
        return ops.linear(a, prefix + "o_proj", "output_projection", x.shape[-1], bias=bias)

    def attend(c, x: Data, q: Data, k: Data, v: Data, prefix: str, *places: Data) -> Data:
        """Values attended to. `x`, `prefix`, `places`: for layers that choose tokens by them."""
        return ops.attend_causally(q, k, v)  # [n, n_heads, d_head]

    def rotate(c: Any, x: Data, *places: Data) -> Data:
        """The first d_rope of every head; `places`: of tokens in time, row and column, in a text with an image."""
        if not places:
            return parts.partial_rope(x, c.d_rope, c.rope)
        turned, kept = ops.split(x, c.d_rope, x.shape[-1] - c.d_rope)
        return ops.join(ops.rope_at(turned, places[0], c.rope, c.axes), kept)

    def mlp(c, x: Data, prefix: str) -> Data:
        return c.gated_mlp(x, prefix)

    def experts(c: Any, x: Data, prefix: str) -> Data:
        """Many small experts, and one behind a gate of its own."""
        shared = parts.gated_mlp(
            x, prefix + "shared_expert.", "shared_experts", c.d_shared_expert, activation=c.activation
        )
        gate = ops.activate(ops.linear(x, prefix + "shared_expert_gate", "router", 1), "sigmoid")
        return parts.mixture(c, x, prefix, choose=c.choose) + ops.scale(shared, gate)

    def choose(c: Any, logits: Data) -> Data:
        return ops.route(logits, c.n_active_experts, "softmax", normalise=c.norm_topk_prob)

    def unused_fields(c) -> tuple[str, ...]:
        return sizes.list_unused_fields(c.layer_types)

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)


class Qwen3Next(parts.RoutedExperts, GatedDeltaHybrid):
    """Source: Qwen3NextDecoderLayer of the reference."""

    reference = "Qwen3NextForCausalLM"
    gguf = "qwen3next"
    gguf_names = {"post_attention_layernorm": "post_attention_norm"}
    is_section_type = True
    task_heads = "GENERIC_MOVED"
    adapts_experts = True
    stores_together = True

    d_ff: sizes.Natural = sizes.hf()
    n_routed_experts: sizes.Natural = sizes.hf("num_experts")
    dense_layers: sizes.Indices = sizes.derived(dense)
    d_shared_expert: sizes.Natural = sizes.hf("shared_expert_intermediate_size")

    kinds = parts.layers_by_type_and_mlp

    def unused_fields(c) -> tuple[str, ...]:
        experts = ("n_active_experts",) if len(c.dense_layers) == len(c.layer_types) else ()
        return (*sizes.list_unused_fields(c.layer_types), *experts)
