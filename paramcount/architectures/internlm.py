"""InternLM 1: Llama's layers with a bias on q, k, v and the output projection."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import Flag, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.rules import check_heads_fill


class InternLM(Sizes):
    """Source: modeling_internlm.py of internlm/internlm-7b."""

    reference: ClassVar[str] = "InternLMForCausalLM of internlm/internlm-7b"
    rotated: ClassVar[str | None] = "d_head"

    vocab_size: Positive = hf(absent=103168)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=11008)
    attention_bias: Flag = hf("bias", absent=True)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)

    def check(c) -> None:
        check_heads_fill(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, bias=c.attention_bias)
