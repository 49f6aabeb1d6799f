"""ERNIE 4.5, dense: the Llama layout, neighbours rotated together, one flag for all biases."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import Condition, Flag, Positive, Sizes, d_model_per_head, equal_to, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_rotated_in_pairs


class Ernie45(Sizes):
    """Source: modeling_ernie4_5.py of the reference."""

    reference: ClassVar[str] = "Ernie4_5ForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(0),)

    vocab_size: Positive = hf(absent=103424)
    d_model: Positive = hf(absent=1024)
    n_layers: Positive = hf(absent=18)
    n_heads: Positive = hf(absent=16)
    n_kv_heads: Positive = hf(absent=2, null=equal_to("n_heads"))
    d_head: Positive = hf(absent=128, null=d_model_per_head)
    d_ff: Positive = hf(absent=3072)
    bias: Flag = hf("use_bias", absent=False, null=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer)

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_head")


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, bias=c.bias, mlp_bias=c.bias)
