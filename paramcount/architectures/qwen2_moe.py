"""Qwen 1.5 and 2 MoE: many small experts and one wide shared expert behind a gate of its own."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, act, linear, scale
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import decoder, dense_or_moe, pre_norm
from paramcount.parts.feed_forward import gated_mlp, mixture
from paramcount.sizes import Flag, Indices, Positive, Sizes, hf, scattered_dense_layers


class Qwen2MoE(Sizes):
    """Source: arXiv:2407.10671, section 2.2.2. `d_shared_expert` is a width of its own, not a number of experts."""

    reference: ClassVar[str] = "Qwen2MoeForCausalLM"

    vocab_size: Positive = hf("vocab_size", absent=151936)
    d_model: Positive = hf("hidden_size", absent=2048)
    n_layers: Positive = hf("num_hidden_layers", absent=24)
    n_heads: Positive = hf("num_attention_heads", absent=16)
    n_kv_heads: Positive = hf("num_key_value_heads", absent=16)
    d_head: Positive = hf("head_dim", absent=lambda js, c: c["d_model"] // c["n_heads"], null_is_absent=True)
    d_ff: Positive = hf("intermediate_size", absent=5632)
    dense_layers: Indices = hf(absent=lambda js, c: scattered_dense_layers(js, c["n_layers"]))
    d_expert: Positive = hf("moe_intermediate_size", absent=1408)
    n_routed_experts: Positive = hf("num_experts", absent=60)
    n_active_experts: Positive = hf("num_experts_per_tok", absent=4)
    d_shared_expert: Positive = hf("shared_expert_intermediate_size", absent=5632)
    qkv_bias: Flag = hf("qkv_bias", absent=True)
    tie_word_embeddings: Flag = hf("tie_word_embeddings", absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, dense_or_moe(c.dense_layers, c.n_layers))



def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(
        x,
        lambda h: attention(c, h, "self_attn.", bias=c.qkv_bias, o_bias=False),
        lambda h: moe(c, h) if kind == "moe" else gated_mlp(h, "mlp.", "mlp", c.d_ff),
    )


def moe(c: Any, x: Data) -> Data:
    shared = gated_mlp(x, "mlp.shared_expert.", "shared_experts", c.d_shared_expert)
    gate = act(linear(x, "mlp.shared_expert_gate", "router", 1), "sigmoid")
    return mixture(c, x, "mlp.") + scale(shared, gate)
