"""Qwen 3 MoE: Qwen 3 with a mixture of experts, none of them shared."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import decoder, dense_or_moe, pre_norm
from paramcount.parts.feed_forward import gated_mlp, mixture
from paramcount.sizes import Flag, Indices, Positive, Sizes, hf, scattered_dense_layers


class Qwen3MoE(Sizes):
    """Source: arXiv:2505.09388, section 2."""

    reference: ClassVar[str] = "Qwen3MoeForCausalLM"

    vocab_size: Positive = hf("vocab_size", absent=151936)
    d_model: Positive = hf("hidden_size", absent=2048)
    n_layers: Positive = hf("num_hidden_layers", absent=24)
    n_heads: Positive = hf("num_attention_heads", absent=32)
    n_kv_heads: Positive = hf("num_key_value_heads", absent=4)
    d_head: Positive = hf("head_dim", absent=lambda js, c: c["d_model"] // c["n_heads"], null_is_absent=True)
    d_ff: Positive = hf("intermediate_size", absent=6144)
    dense_layers: Indices = hf(absent=lambda js, c: scattered_dense_layers(js, c["n_layers"]))
    d_expert: Positive = hf("moe_intermediate_size", absent=768)
    n_routed_experts: Positive = hf("num_experts", "num_local_experts", absent=128)
    n_active_experts: Positive = hf("num_experts_per_tok", absent=8)
    attention_bias: Flag = hf("attention_bias", absent=False)
    tie_word_embeddings: Flag = hf("tie_word_embeddings", absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, dense_or_moe(c.dense_layers, c.n_layers))



def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(
        x,
        lambda h: attention(c, h, "self_attn.", bias=c.attention_bias, qk_norm=True),
        lambda h: mixture(c, h, "mlp.") if kind == "moe" else gated_mlp(h, "mlp.", "mlp", c.d_ff),
    )
