"""Aquila and Aquila2: Llama's layers."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import ABSENT, Flag, Positive, Sizes, d_model_per_head, derived, equal_to, hf
from paramcount.sizes.rules import check_heads_fill


class Aquila(Sizes):
    """Source: modeling_aquila.py of BAAI/Aquila2-7B."""

    reference: ClassVar[str] = "AquilaForCausalLM of BAAI/Aquila2-7B"
    rotated: ClassVar[str | None] = "d_head"

    vocab_size: Positive = hf()
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=11008)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)

    def check(c) -> None:
        check_heads_fill(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, bias=c.attention_bias)
