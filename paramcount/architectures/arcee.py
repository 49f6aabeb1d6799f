"""AFM: the Llama layout with an MLP that has no gate and squares its ReLU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.llama import Llama
from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.parts.feed_forward import plain_mlp


class Arcee(Llama):
    """Source: modeling_arcee.py of the reference."""

    reference: ClassVar[str] = "ArceeForCausalLM"
    defaults: ClassVar[Mapping[str, Any]] = {"d_model": 2560, "d_ff": 18432}

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, lambda h: squared_mlp(c, h), bias=c.attention_bias)


def squared_mlp(c: Any, x: Data) -> Data:
    return plain_mlp(x, ("mlp.up_proj", "mlp.down_proj"), "mlp", c.d_ff, activation="relu²", bias=c.mlp_bias)
