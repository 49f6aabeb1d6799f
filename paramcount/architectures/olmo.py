"""OLMo: the Llama layout with LayerNorms that have no parameters.

Queries, keys and values are clipped if the config sets clip_qkv.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, d_model_per_head, equal_to, hf
from paramcount.sizes.conditions import padding_in_table


class Olmo(Sizes):
    """Source: arXiv:2402.00838, section 2.1."""

    reference: ClassVar[str] = "OlmoForCausalLM"
    linear_by_component: ClassVar[bool] = False
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(1),)

    vocab_size: Positive = hf(absent=50304)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Positive = hf(absent=11008)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, leave=bare_norm)


def bare_norm(x: Data) -> Data:
    return Data("norm", (x,), x.shape)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, arrange=bare_pre_norm, bias=c.attention_bias)


def bare_pre_norm(
    x: Data, attention: Callable[[Data], Data], feed_forward: Callable[[Data], Data], *, bias: bool
) -> Data:
    x = x + attention(bare_norm(x))
    return x + feed_forward(bare_norm(x))
