"""Emu3's language model: the Llama layout over one table of words and image tokens."""

from __future__ import annotations

from typing import ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import Condition, Flag, Positive, Sizes, d_model_per_head, hf
from paramcount.sizes.conditions import not_null, padding_in_table


class Emu3Text(Sizes):
    """Source: modeling_emu3.py of the reference; arXiv:2409.18869."""

    reference: ClassVar[str] = "Emu3ForCausalLM"
    base_model: ClassVar[str | None] = "Emu3TextModel"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(151643), not_null("pad_token_id"))

    vocab_size: Positive = hf(absent=184622)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=8)
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Positive = hf(absent=14336)
    attention_bias: Flag = hf(absent=False, null=False)
    mlp_bias: Flag = hf(absent=False, null=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, lambda c, kind, x: usual_layer(c, x, bias=c.attention_bias, mlp_bias=c.mlp_bias))


class Emu3TextOf(Emu3Text):
    """The language model of a config that says how images become tokens too."""

    base_model: ClassVar[str | None] = ""
    section: ClassVar[str | None] = "text_config"
    unused_keys: ClassVar[tuple[str, ...]] = ("/vq_config",)
