"""Ministral 3: Mistral with heads of a width of their own and queries that grow with their position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.mistral import Mistral
from paramcount.flow import Data, activate, rope
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import Condition, Positive, hf
from paramcount.sizes.conditions import padding_in_table


class Ministral3(Mistral):
    """Source: modeling_ministral3.py of the reference."""

    reference: ClassVar[str] = "Ministral3ForCausalLM"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(11),)
    defaults: ClassVar[Mapping[str, Any]] = {"vocab_size": 131072, "n_layers": 34, "window": None}

    d_head: Positive = hf(absent=128)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(
        c, x, window=c.window, prepare=lambda q, k: (activate(rope(q), "times a number for each position"), rope(k))
    )
