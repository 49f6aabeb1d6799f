"""SmolLM3: the Llama layout, every fourth layer without positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
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
    flag,
    hf,
    per_layer,
)
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_sliding_or_full


def without_positions(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[int, ...]:
    """Layers for which no_rope_layers has a 0, in spite of its name; without it one of no_rope_layer_interval."""
    rotates = js.get("no_rope_layers")
    if rotates is None:
        return tuple(i for i in per_layer(c) if (i + 1) % js.get("no_rope_layer_interval", 4) == 0)
    if (
        not isinstance(rotates, (list, tuple))
        or len(rotates) < c["n_layers"]
        or not all(type(n) is int for n in rotates)
    ):
        raise ParamcountError(f"= {describe_value(rotates)}", where="no_rope_layers", expected="one integer per layer")
    return tuple(i for i in per_layer(c) if not rotates[i])


def windows(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    """Where windows are asked for, the layers without positions have them."""
    sliding = flag(js, "use_sliding_window", False) and c["window"] is not None
    return tuple(SLIDING[not (sliding and i in c["unrotated_layers"])] for i in per_layer(c))


class SmolLM3(Sizes):
    """Source: modeling_smollm3.py of the reference; layers without positions arXiv:2501.18795."""

    reference: ClassVar[str] = "SmolLM3ForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(128004),)

    vocab_size: Positive = hf(absent=128256)
    d_model: Positive = hf(absent=2048)
    n_layers: Positive = hf(absent=36)
    n_heads: Positive = hf(absent=16)
    n_kv_heads: Positive = hf(absent=4, null=equal_to("n_heads"))
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Positive = hf(absent=11008)
    unrotated_layers: Indices = derived(without_positions)
    window: Positive | None = hf(absent=None)
    layer_types: Words = hf(absent=windows, null=ABSENT)
    attention_bias: Flag = hf(absent=False)
    mlp_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        as_they_are = set(c.unrotated_layers)
        return decoder(c, tokens, layer, [((kind, i not in as_they_are), 1) for i, kind in enumerate(c.layer_types)])

    def check(c) -> None:
        check_sliding_or_full(c)


def layer(c: Any, kind: tuple[str, bool], x: Data) -> Data:
    word, rotated = kind
    window = c.window if word == "sliding_attention" else None
    return usual_layer(
        c, x, bias=c.attention_bias, mlp_bias=c.mlp_bias, window=window, prepare=None if rotated else unrotated
    )
