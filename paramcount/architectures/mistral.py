"""Mistral: the Llama layout without biases, every layer looking back over a window where one is set."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, d_model_per_head, hf
from paramcount.sizes.conditions import padding_in_table


class Mistral(Sizes):
    """Source: arXiv:2310.06825, section 2."""

    reference: ClassVar[str] = "MistralForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=32000)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=8)
    d_head: Positive = hf(absent=d_model_per_head, null=ABSENT)
    d_ff: Positive = hf(absent=14336)
    window: Positive | None = hf(absent=4096)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, window=c.window)
