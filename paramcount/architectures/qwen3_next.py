"""Qwen3-Next: three layers of gated delta net to one of gated attention, many experts beside a gated shared one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.qwen2_moe import moe
from paramcount.flow import Data, activate, attend, fused, linear, norm
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoders import decoder, pre_norm, typed_layers
from paramcount.parts.feed_forward import gated_mlp
from paramcount.parts.linear_attention import gated_delta_net
from paramcount.sizes import (
    ABSENT,
    Condition,
    Flag,
    Indices,
    Natural,
    Positive,
    Sizes,
    Words,
    derived,
    hf,
    per_layer,
    scattered_dense_layers,
)
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.layer_types import check_no_types
from paramcount.sizes.mixers import list_unused_fields, rotated_share
from paramcount.sizes.rules import check_layer_types

KINDS = ("linear_attention", "full_attention", "mamba", "attention")  # the last two are the older words


def every_fourth(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    """Or as often as full_attention_interval says."""
    period = check_no_types(js, "full_attention_interval", 4)
    return tuple(KINDS[(i + 1) % period == 0] for i in per_layer(c))


def dense(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[int, ...]:
    return scattered_dense_layers(js, c) if c["n_routed_experts"] else tuple(per_layer(c))


class GatedDeltaHybrid(Sizes):
    """What Qwen3-Next and Qwen3.5 have in common.

    Source: for the delta net arXiv:2412.06464; for the gate of the attention arXiv:2505.06708.
    """

    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)
    linear_routers: ClassVar[tuple[str, ...]] = (".shared_expert_gate.weight",)

    vocab_size: Positive = hf(absent=248320)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    layer_types: Words = hf(absent=every_fourth, null=ABSENT)
    n_heads: Positive = hf(absent=16)
    n_kv_heads: Positive = hf(absent=4)
    d_head: Positive = hf(absent=256)
    d_rope: Natural = derived(rotated_share(0.25))
    n_linear_k_heads: Positive = hf("linear_num_key_heads", absent=16)
    d_linear_k: Positive = hf("linear_key_head_dim", absent=128)
    n_linear_v_heads: Positive = hf("linear_num_value_heads", absent=32)
    d_linear_v: Positive = hf("linear_value_head_dim", absent=128)
    d_conv: Positive = hf("linear_conv_kernel_dim", absent=4)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def unused_fields(c) -> tuple[str, ...]:
        return list_unused_fields(c.layer_types)

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)


class Qwen3Next(GatedDeltaHybrid):
    """Source: modeling_qwen3_next.py of the reference."""

    reference: ClassVar[str] = "Qwen3NextForCausalLM"
    defaults: ClassVar[Mapping[str, Any]] = {"vocab_size": 151936, "d_model": 2048, "n_layers": 48, "n_kv_heads": 2}

    d_ff: Positive = hf(absent=5632)
    n_routed_experts: Natural = hf("num_experts", absent=512)
    n_active_experts: Natural = hf(absent=10)
    dense_layers: Indices = derived(dense)
    d_expert: Positive = hf(absent=512)
    d_shared_expert: Positive = hf("shared_expert_intermediate_size", absent=512)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, typed_layers(c.layer_types, c.dense_layers))

    def unused_fields(c) -> tuple[str, ...]:
        return (
            *list_unused_fields(c.layer_types),
            *(("n_active_experts",) if len(c.dense_layers) == len(c.layer_types) else ()),
        )


def layer(c: Any, kind: tuple[str, str], x: Data) -> Data:
    word, density = kind
    feed_forward = (lambda h: moe(c, h)) if density == "moe" else lambda h: gated_mlp(h, "mlp.", "mlp", c.d_ff)
    return pre_norm(x, lambda h: mixer(c, word, h, together=True), feed_forward)


def mixer(c: Any, word: str, x: Data, *, together: bool) -> Data:
    if word in ("linear_attention", "mamba"):
        return gated_delta_net(c, x, "linear_attn.", together=together)
    return doubled_attention(c, x, "self_attn.")


def doubled_attention(c: Any, x: Data, prefix: str) -> Data:
    """Each head of q_proj is twice as wide: the query and the gate of what that head attends to."""
    heads = (c.n_heads, c.d_head)
    q, gate = fused(x, prefix + "q_proj", {"qkv.q": heads, "qkv.gate": heads}, bias=c.attention_bias)
    k = linear(x, prefix + "k_proj", "qkv.k", (c.n_kv_heads, c.d_head), bias=c.attention_bias)
    v = linear(x, prefix + "v_proj", "qkv.v", (c.n_kv_heads, c.d_head), bias=c.attention_bias)
    q, k = partial_rope(norm(q, prefix + "q_norm"), c.d_rope), partial_rope(norm(k, prefix + "k_norm"), c.d_rope)
    return linear(
        attend(q, k, v) * activate(gate, "sigmoid"),
        prefix + "o_proj",
        "output_projection",
        x.shape[-1],
        bias=c.attention_bias,
    )
