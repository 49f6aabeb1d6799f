"""Qwen3-Next: three layers of gated delta net to one of gated attention, many experts beside a gated shared one."""

from typing import Any, ClassVar

from paramcount.flow import Data, activate, attend, fused, join, linear, rms_norm, rope_at, route, scale, split
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoder import Decoder
from paramcount.parts.decoders import layers_by_type_and_mlp
from paramcount.parts.feed_forward import gated_mlp, mixture
from paramcount.parts.linear_attention import gated_delta_net
from paramcount.sizes import (
    Condition,
    Flag,
    Indices,
    Natural,
    Positive,
    Words,
    per_layer,
    rotary,
    scattered_dense_layers,
    setting,
)
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.fields import ABSENT, ConfigJson, FieldValues, derived, hf
from paramcount.sizes.layer_types import check_no_types
from paramcount.sizes.mixers import list_unused_fields, rotated_share
from paramcount.sizes.rules import check_layer_types

KINDS = ("linear_attention", "full_attention", "mamba", "attention")  # the last two are the older words


def every_fourth(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    """Or as often as full_attention_interval says."""
    period = check_no_types(js, "full_attention_interval", 4)
    return tuple(KINDS[(i + 1) % period == 0] for i in per_layer(c))


def dense(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    return scattered_dense_layers(js, c) if c["n_routed_experts"] else tuple(per_layer(c))


class GatedDeltaHybrid(Decoder):
    """What Qwen3-Next and Qwen3.5 have in common.

    Source: for the delta net arXiv:2412.06464; for the gate of the attention arXiv:2505.06708.
    """

    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)
    linear_routers = (".shared_expert_gate.weight",)
    stores_together: ClassVar[bool] = False  # the delta net's gate with q, k and v, its beta with the step

    layer_types: Words = hf(absent=every_fourth, null=ABSENT)
    n_heads: Positive = hf()
    n_kv_heads: Positive = hf()
    d_head: Positive = hf()
    d_rope: Natural = derived(rotated_share(0.25))
    n_linear_k_heads: Positive = hf("linear_num_key_heads")
    d_linear_k: Positive = hf("linear_key_head_dim")
    n_linear_v_heads: Positive = hf("linear_num_value_heads")
    d_linear_v: Positive = hf("linear_value_head_dim")
    d_conv: Positive = hf("linear_conv_kernel_dim")
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary(positions=32768, share=0.25)
    norm_topk_prob: ClassVar = setting("norm_topk_prob", default=True)

    def norm(c, x: Data, name: str) -> Data:
        return rms_norm(x, name, c.norm_eps, offset=1.0)

    def layer(c, x: Data, *reads: Any) -> Data:
        """`reads`: the places of the tokens, if there may be images, and the kind of layer."""
        *places, (word, density) = reads
        h = c.norm(x, "input_layernorm")
        if word in ("linear_attention", "mamba"):
            x = x + gated_delta_net(c, h, "linear_attn.", together=c.stores_together)
        else:
            x = x + c.attention(h, "self_attn.", *places)
        h = c.norm(x, "post_attention_layernorm")
        return x + (c.experts(h, "mlp.") if density == "moe" else c.mlp(h, "mlp."))

    def attention(c, x: Data, prefix: str, *places: Data) -> Data:
        """Each head of q_proj is twice as wide: the query, and the gate of what that head attends to."""
        heads, bias = (c.n_heads, c.d_head), c.attention_bias
        q, gate = fused(x, prefix + "q_proj", {"qkv.q": heads, "qkv.gate": heads}, bias=bias, groups=c.n_heads)
        k = linear(x, prefix + "k_proj", "qkv.k", (c.n_kv_heads, c.d_head), bias=bias)
        v = linear(x, prefix + "v_proj", "qkv.v", (c.n_kv_heads, c.d_head), bias=bias)
        q, k = (c.rotate(c.norm(y, f"{prefix}{name}_norm"), *places) for y, name in ((q, "q"), (k, "k")))
        a = c.attend(x, q, k, v, prefix, *places) * activate(gate, "sigmoid")
        return linear(a, prefix + "o_proj", "output_projection", x.shape[-1], bias=bias)

    def attend(c, x: Data, q: Data, k: Data, v: Data, prefix: str, *places: Data) -> Data:
        """Values attended to. `x`, `prefix`, `places`: for layers that choose tokens by them."""
        return attend(q, k, v)

    def rotate(c: Any, x: Data, *places: Data) -> Data:
        """The first d_rope of every head; `places`: of tokens in time, row and column, in a text with an image."""
        if not places:
            return partial_rope(x, c.d_rope, c.rope)
        turned, kept = split(x, c.d_rope, x.shape[-1] - c.d_rope)
        return join(rope_at(turned, places[0], c.rope, c.axes), kept)

    def mlp(c, x: Data, prefix: str) -> Data:
        return c.gated_mlp(x, prefix)

    def experts(c: Any, x: Data, prefix: str) -> Data:
        """Many small experts, and one behind a gate of its own."""
        shared = gated_mlp(x, prefix + "shared_expert.", "shared_experts", c.d_shared_expert, activation=c.activation)
        gate = activate(linear(x, prefix + "shared_expert_gate", "router", 1), "sigmoid")
        return mixture(c, x, prefix, choose=c.choose) + scale(shared, gate)

    def choose(c: Any, logits: Data) -> Data:
        return route(logits, c.n_active_experts, "softmax", normalise=c.norm_topk_prob)

    def unused_fields(c) -> tuple[str, ...]:
        return list_unused_fields(c.layer_types)

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)


class Qwen3Next(GatedDeltaHybrid):
    """Source: Qwen3NextDecoderLayer of the reference."""

    reference = "Qwen3NextForCausalLM"
    gguf = "qwen3next"
    is_section_type = True
    task_heads = "GENERIC_MOVED"
    adapts_experts = True
    stores_together = True

    d_ff: Natural = hf()
    n_routed_experts: Natural = hf("num_experts")
    n_active_experts: Natural = hf()
    dense_layers: Indices = derived(dense)
    d_expert: Natural = hf()
    d_shared_expert: Natural = hf("shared_expert_intermediate_size")

    kinds = layers_by_type_and_mlp

    def unused_fields(c) -> tuple[str, ...]:
        experts = ("n_active_experts",) if len(c.dense_layers) == len(c.layer_types) else ()
        return (*list_unused_fields(c.layer_types), *experts)
