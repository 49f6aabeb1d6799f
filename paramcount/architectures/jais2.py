"""Jais 2: the layout of AFM with LayerNorms and biases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.arcee import squared_mlp
from paramcount.architectures.llama import Llama
from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer


class Jais2(Llama):
    """Source: modeling_jais2.py of the reference."""

    reference: ClassVar[str] = "Jais2ForCausalLM"
    defaults: ClassVar[Mapping[str, Any]] = {
        "vocab_size": 150272,
        "d_model": 3328,
        "n_heads": 26,
        "d_ff": 26624,
        "attention_bias": True,
        "mlp_bias": True,
    }

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, norm_bias=True)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, lambda h: squared_mlp(c, h), bias=c.attention_bias, norm_bias=True)
