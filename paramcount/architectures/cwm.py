"""CWM: the Llama layout without attention biases.

The first of each four layers attends to all tokens, the others to a sliding window.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import ABSENT, SLIDING, Condition, Flag, Positive, Sizes, Words, hf, per_layer
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_divides, check_layer_types


def full_first(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    """Words of layer_types where of every four layers the first looks back over all."""
    return tuple(SLIDING[i % 4 == 0] for i in per_layer(c))


class CWM(Sizes):
    """Source: modeling_cwm.py of the reference."""

    reference: ClassVar[str] = "CwmForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=128256)
    d_model: Positive = hf(absent=6144)
    n_layers: Positive = hf(absent=64)
    n_heads: Positive = hf(absent=48)
    n_kv_heads: Positive = hf(absent=8)
    d_head: Positive = hf(absent=128)
    d_ff: Positive = hf(absent=21504)
    layer_types: Words = hf(absent=full_first, null=ABSENT)
    window: Positive = hf(absent=8192)
    mlp_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [(kind, 1) for kind in c.layer_types])

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", SLIDING)
        check_divides(c, "n_heads", "d_model")  # the reference asks it although it cuts no head out of d_model


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, mlp_bias=c.mlp_bias, window=c.window if kind == "sliding_attention" else None)
