"""Qwen 3: the Llama layout with a norm over d_head on every query and key head."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import Condition, Flag, Positive, Sizes, equal_to, hf
from paramcount.sizes.conditions import attention_words, padding_in_table, sliding_layers_have_a_window


class Qwen3(Sizes):
    """Source: arXiv:2505.09388, section 2."""

    reference: ClassVar[str] = "Qwen3ForCausalLM"
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
    d_head: Positive = hf(absent=128)
    d_ff: Positive = hf(absent=22016)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, bias=c.attention_bias, qk_norm=True)
