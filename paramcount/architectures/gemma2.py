"""Gemma 2: pre-norm and post-norm around attention and MLP, every second layer looks back over a window."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.gemma import enlarge, gelu_mlp
from paramcount.flow import Data
from paramcount.parts.decoders import decoder, sandwich, usual_layer
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, Words, full_every, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_divides, check_sliding_or_full


class Gemma2Layers(Sizes):
    """The sizes of a stack of its layers: T5Gemma has two."""

    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(0),)

    vocab_size: Positive = hf(absent=256000)
    d_model: Positive = hf(absent=2304)
    n_layers: Positive = hf(absent=26)
    n_heads: Positive = hf(absent=8)
    n_kv_heads: Positive = hf(absent=4)
    d_head: Positive = hf(absent=256)
    d_ff: Positive = hf(absent=9216)
    layer_types: Words = hf(absent=full_every(2), null=ABSENT)
    window: Positive = hf(absent=4096)  # the reference refuses null even if no layer uses it
    attention_bias: Flag = hf(absent=False)

    def check(c) -> None:
        check_divides(c, "n_heads", "d_model")  # though d_head is given: the reference asks it
        check_sliding_or_full(c)


class Gemma2(Gemma2Layers):
    """Source: arXiv:2408.00118, section 2."""

    reference: ClassVar[str] = "Gemma2ForCausalLM"

    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [(kind, 1) for kind in c.layer_types], enter=enlarge)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, lambda h: gelu_mlp(c, h), arrange=sandwich, bias=c.attention_bias, window=window(c, kind))


def window(c: Any, kind: str) -> Any:
    return c.window if kind == "sliding_attention" else None
