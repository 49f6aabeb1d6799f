"""Qwen 3: the Llama layout with a norm over d_head on every query and key head."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes import Flag, Positive, Sizes, hf


class Qwen3(Sizes):
    """Source: arXiv:2505.09388, section 2."""

    reference: ClassVar[str] = "Qwen3ForCausalLM"

    vocab_size: Positive = hf("vocab_size", absent=151936)
    d_model: Positive = hf("hidden_size", absent=4096)
    n_layers: Positive = hf("num_hidden_layers", absent=32)
    n_heads: Positive = hf("num_attention_heads", absent=32)
    n_kv_heads: Positive = hf("num_key_value_heads", absent=lambda js, c: c["n_heads"], null_is_absent=True)
    d_head: Positive = hf("head_dim", absent=128)
    d_ff: Positive = hf("intermediate_size", absent=22016)
    attention_bias: Flag = hf("attention_bias", absent=False)
    tie_word_embeddings: Flag = hf("tie_word_embeddings", absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)



def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(
        x,
        lambda h: attention(c, h, "self_attn.", bias=c.attention_bias, qk_norm=True),
        lambda h: gated_mlp(h, "mlp.", "mlp", c.d_ff),
    )
