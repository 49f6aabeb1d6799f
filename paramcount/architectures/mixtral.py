"""Mixtral: Mistral with a mixture of experts in every layer."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import mixture
from paramcount.sizes import Flag, Positive, Sizes, hf


class Mixtral(Sizes):
    """Source: arXiv:2401.04088, section 2. In the released files w1 is the gate, w3 up and w2 down."""

    reference: ClassVar[str] = "MixtralForCausalLM"

    vocab_size: Positive = hf("vocab_size", absent=32000)
    d_model: Positive = hf("hidden_size", absent=4096)
    n_layers: Positive = hf("num_hidden_layers", absent=32)
    n_heads: Positive = hf("num_attention_heads", absent=32)
    n_kv_heads: Positive = hf("num_key_value_heads", absent=8)
    d_head: Positive = hf("head_dim", absent=lambda js, c: c["d_model"] // c["n_heads"], null_is_absent=True)
    d_expert: Positive = hf("intermediate_size", absent=14336)
    n_routed_experts: Positive = hf("num_local_experts", "num_experts", absent=8)
    n_active_experts: Positive = hf("num_experts_per_tok", absent=2)
    window: Positive | None = hf("sliding_window", absent=None)
    tie_word_embeddings: Flag = hf("tie_word_embeddings", absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)



def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(
        x,
        lambda h: attention(c, h, "self_attn.", window=c.window),
        lambda h: mixture(c, h, "block_sparse_moe.", names=("w1", "w3", "w2")),
    )
