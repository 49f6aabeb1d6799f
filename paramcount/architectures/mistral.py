"""Mistral: the Llama layout without biases, every layer looking back over a window where one is set."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes import Flag, Positive, Sizes, hf


class Mistral(Sizes):
    """Source: arXiv:2310.06825, section 2."""

    reference: ClassVar[str] = "MistralForCausalLM"

    vocab_size: Positive = hf("vocab_size", absent=32000)
    d_model: Positive = hf("hidden_size", absent=4096)
    n_layers: Positive = hf("num_hidden_layers", absent=32)
    n_heads: Positive = hf("num_attention_heads", absent=32)
    n_kv_heads: Positive = hf("num_key_value_heads", absent=8)
    d_head: Positive = hf("head_dim", absent=lambda js, c: c["d_model"] // c["n_heads"], null_is_absent=True)
    d_ff: Positive = hf("intermediate_size", absent=14336)
    window: Positive | None = hf("sliding_window", absent=4096)
    tie_word_embeddings: Flag = hf("tie_word_embeddings", absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)



def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(
        x,
        lambda h: attention(c, h, "self_attn.", window=c.window),
        lambda h: gated_mlp(h, "mlp.", "mlp", c.d_ff),
    )
