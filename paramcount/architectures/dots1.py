"""dots.llm1: Qwen 3's attention and DeepSeek-V3's experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, typed_layers, usual_layer
from paramcount.parts.feed_forward import corrected_mixture
from paramcount.sizes import (
    ABSENT,
    SLIDING,
    Condition,
    Flag,
    Indices,
    Natural,
    Positive,
    Sizes,
    Words,
    d_model_per_head,
    derived,
    equal_to,
    hf,
    per_layer,
)
from paramcount.sizes.conditions import grouped_routing, padding_in_table
from paramcount.sizes.layer_types import check_no_types, first_dense, needed
from paramcount.sizes.rules import check_experts_exist, check_sliding_or_full


def late_sliding(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    """From the layer max_window_layers on over a window, if there is one."""
    first = check_no_types(js, "max_window_layers", 62) if c["window"] is not None else c["n_layers"]
    return tuple(SLIDING[i < first] for i in per_layer(c))


class Dots1(Sizes):
    """Source: modeling_dots1.py of the reference."""

    reference: ClassVar[str] = "Dots1ForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (grouped_routing(1, 1), padding_in_table(None))

    vocab_size: Positive = hf(absent=152064)
    d_model: Positive = hf(absent=4608)
    n_layers: Positive = hf(absent=62)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=32, null=equal_to("n_heads"))
    d_head: Positive = hf(absent=d_model_per_head)
    window: Positive | None = hf(absent=4096)
    layer_types: Words = hf(absent=late_sliding, null=ABSENT)
    d_ff: Positive = hf(absent=10944)
    dense_layers: Indices = derived(first_dense(0))
    d_expert: Positive = hf(absent=1408)
    n_routed_experts: Natural = hf(
        "num_local_experts", "n_routed_experts", absent=needed("n_routed_experts"), null=needed("n_routed_experts")
    )
    n_active_experts: Natural = hf(absent=needed("num_experts_per_tok"), null=ABSENT)
    n_shared_experts: Natural = hf(absent=needed("n_shared_experts"), null=ABSENT)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, typed_layers(c.layer_types, c.dense_layers))

    def check(c) -> None:
        check_sliding_or_full(c)
        check_experts_exist(c)


def layer(c: Any, kind: tuple[str, str], x: Data) -> Data:
    word, mlp = kind
    mixture = (lambda h: corrected_mixture(c, h, "mlp.")) if mlp == "moe" else None
    window = c.window if word == "sliding_attention" else None
    return usual_layer(c, x, mixture, bias=c.attention_bias, qk_norm=True, window=window)
