"""ERNIE 4.5 MoE: a mixture of experts beside shared ones, whose router's correction is a parameter and not a buffer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, elementwise
from paramcount.parts.decoders import decoder, dense_or_moe, usual_layer
from paramcount.parts.feed_forward import mixture, shared_experts
from paramcount.sizes import (
    Condition,
    Flag,
    Indices,
    Natural,
    Positive,
    Sizes,
    d_model_per_head,
    derived,
    hf,
    per_layer,
)
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.layer_types import needed
from paramcount.sizes.rules import check_experts_exist, check_rotated_in_pairs


def outside(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[int, ...]:
    """Indices of the layers without experts.

    These are the layers before the first and after the last MoE layer, and those between two multiples of the step.
    """
    keys = {"moe_layer_start_index": 1, "moe_layer_end_index": -1, "moe_layer_interval": 1}
    first, last, step = (js.get(key, absent) for key, absent in keys.items())
    for key, value in zip(keys, (first, last, step)):
        if type(value) is not int:
            raise ParamcountError(f"= {describe_value(value)}", where=key, expected="an integer")
    last = c["n_layers"] - 1 if last == -1 else last
    return tuple(i for i in per_layer(c) if (i + 1) % step or not first <= i <= last)


class Ernie45Moe(Sizes):
    """Source: modeling_ernie4_5_moe.py of the reference."""

    reference: ClassVar[str] = "Ernie4_5_MoeForCausalLM"
    float32: ClassVar[tuple[str, ...]] = ("gate.weight", "moe_statics")
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(0),)

    vocab_size: Positive = hf(absent=103424)
    d_model: Positive = hf(absent=2560)
    n_layers: Positive = hf(absent=28)
    n_heads: Positive = hf(absent=20)
    n_kv_heads: Positive = hf(absent=4)
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Positive = hf(absent=12288)
    dense_layers: Indices = derived(outside)
    d_expert: Positive = hf(absent=1536)
    n_routed_experts: Natural = hf("num_experts", "moe_num_experts", absent=64, null=needed("moe_num_experts"))
    n_active_experts: Natural = hf("num_experts_per_tok", "moe_k", absent=6, null=needed("moe_k"))
    n_shared_experts: Natural = hf("moe_num_shared_experts", absent=2, null=needed("moe_num_shared_experts"))
    shared: Flag = derived(lambda js, c: c["n_shared_experts"] > 0)
    bias: Flag = hf("use_bias", absent=False, null=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, dense_or_moe(c.dense_layers, c.n_layers), head_bias=c.bias)

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_head")
        check_experts_exist(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    return usual_layer(c, x, (lambda h: moe(c, h)) if kind == "moe" else None, bias=c.bias, mlp_bias=c.bias)


def moe(c: Any, x: Data) -> Data:
    y = mixture(c, x, "mlp.", choose=lambda scores: correct(c, scores))
    return y + shared_experts(c, x, "mlp.", bias=c.bias) if c.shared else y


def correct(c: Any, scores: Data) -> Data:
    return elementwise(scores, "correct", "mlp.moe_statics.e_score_correction_bias", "router", 1, c.n_routed_experts)
