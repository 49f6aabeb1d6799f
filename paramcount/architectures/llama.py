"""Llama 1 to 3 and what shares their layout: RMS norms, rotary positions, a gated MLP."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import decoder, pre_norm
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes import Flag, Positive, Sizes, hf


class Llama(Sizes):
    """Source: arXiv:2302.13971, section 2.2; grouped-query attention arXiv:2307.09288, section 2.2."""

    reference: ClassVar[str] = "LlamaForCausalLM"

    vocab_size: Positive = hf("vocab_size", absent=32000)
    d_model: Positive = hf("hidden_size", absent=4096)
    n_layers: Positive = hf("num_hidden_layers", absent=32)
    n_heads: Positive = hf("num_attention_heads", absent=32)
    n_kv_heads: Positive = hf("num_key_value_heads", absent=lambda js, c: c["n_heads"], null_is_absent=True)
    d_head: Positive = hf("head_dim", absent=lambda js, c: c["d_model"] // c["n_heads"], null_is_absent=True)
    d_ff: Positive = hf("intermediate_size", absent=11008)
    attention_bias: Flag = hf("attention_bias", absent=False)
    mlp_bias: Flag = hf("mlp_bias", absent=False)
    tie_word_embeddings: Flag = hf("tie_word_embeddings", absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)

    def legacy_buffers(c) -> tuple[tuple[str, tuple[int, ...], int], ...]:
        return (("model.layers.{layer}.self_attn.rotary_emb.inv_freq", (c.d_head // 2,), c.n_layers),)


def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(
        x,
        lambda h: attention(c, h, "self_attn.", bias=c.attention_bias),
        lambda h: gated_mlp(h, "mlp.", "mlp", c.d_ff, bias=c.mlp_bias),
    )
