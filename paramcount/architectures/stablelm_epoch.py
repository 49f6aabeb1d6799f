"""StableLM 3B and Stable Code 3B as first released: StableLM's layers under other keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import Condition, Flag, Natural, Positive, Sizes, d_model_per_head, derived, hf, part_of
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_at_most, check_even, check_heads_fill


def rotary_part(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    return part_of(c["d_head"], js.get("rope_pct", 0.25))


class StableLMEpoch(Sizes):
    """Source: configuration_stablelm_epoch.py and modeling_stablelm_epoch.py of stabilityai/stable-code-3b, and of
    stabilityai/stablelm-2-1_6b for use_qkv_bias."""

    reference: ClassVar[str] = "StableLMEpochForCausalLM of stabilityai/stable-code-3b"
    rotated: ClassVar[str | None] = "d_rope"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None),)

    vocab_size: Positive = hf(absent=50304)
    d_model: Positive = hf(absent=2560)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=32)
    d_head: Positive = derived(d_model_per_head)
    d_rope: Natural = derived(rotary_part)
    d_ff: Positive = hf(absent=6912)
    qkv_bias: Flag = hf("use_qkv_bias", absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, norm_bias=True)

    def check(c) -> None:
        check_heads_fill(c)
        check_at_most(c, "d_rope", "d_head")
        check_even(c, "d_rope")


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, norm_bias=True, bias=c.qkv_bias, o_bias=False, prepare=lambda q, k: prepare(c, q, k))


def prepare(c: Any, q: Data, k: Data) -> tuple[Data, Data]:
    return partial_rope(q, c.d_rope), partial_rope(k, c.d_rope)
