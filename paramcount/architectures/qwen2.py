"""Qwen 1.5, 2 and 2.5: the Llama layout with a bias on q, k and v, always."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import Condition, Flag, Positive, Sizes, d_model_per_head, equal_to, hf
from paramcount.sizes.conditions import attention_words, padding_in_table, sliding_layers_have_a_window


class Qwen2(Sizes):
    """Source: arXiv:2407.10671, section 2.2.1."""

    reference: ClassVar[str] = "Qwen2ForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (
        attention_words("full_attention", "sliding_attention"),
        sliding_layers_have_a_window,
        padding_in_table(None),
    )

    vocab_size: Positive = hf(absent=151936)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=32, null=equal_to("n_heads"))
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Positive = hf(absent=22016)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, bias=True, o_bias=False)
