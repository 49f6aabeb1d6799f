"""Granite 3: the Llama layout with four fixed multipliers.

In its later form most layers attend to a sliding window, with attention sinks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.cwm import full_first
from paramcount.architectures.granitemoe_swa import without_positions
from paramcount.flow import Data
from paramcount.parts.attentions import unrotated
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import (
    ABSENT,
    SLIDING,
    Condition,
    Flag,
    Indices,
    Positive,
    Sizes,
    Words,
    d_model_per_head,
    derived,
    equal_to,
    hf,
)
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_layer_types


class Granite(Sizes):
    """Source: modeling_granite.py of the reference."""

    reference: ClassVar[str] = "GraniteForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=32000)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Positive = hf(absent=11008)
    attention_bias: Flag = hf(absent=False)
    mlp_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, lambda c, kind, x: usual_layer(c, x, bias=c.attention_bias, mlp_bias=c.mlp_bias))


class GraniteSWA(Granite):
    """Source: modeling_granite_swa.py of the reference."""

    reference: ClassVar[str] = "GraniteSWAForCausalLM"
    defaults: ClassVar[Mapping[str, Any]] = {
        "vocab_size": 100352,
        "d_model": 2560,
        "n_layers": 24,
        "n_heads": 20,
        "d_ff": 8192,
        "tie_word_embeddings": True,
    }

    n_kv_heads: Positive = hf(absent=4, null=equal_to("n_heads"))
    layer_types: Words = hf(absent=full_first, null=ABSENT)
    unrotated_layers: Indices = derived(without_positions)
    window: Positive = hf(absent=128)

    def forward(c, tokens: Data) -> Data:
        as_they_are = set(c.unrotated_layers)
        return decoder(
            c, tokens, windowed_layer, [((kind, i not in as_they_are), 1) for i, kind in enumerate(c.layer_types)]
        )

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", SLIDING)


def windowed_layer(c: Any, kind: tuple[str, bool], x: Data) -> Data:
    word, rotated = kind
    window = c.window if word == "sliding_attention" else None
    prepare = None if rotated else unrotated
    return usual_layer(c, x, bias=c.attention_bias, mlp_bias=c.mlp_bias, sinks=True, window=window, prepare=prepare)
