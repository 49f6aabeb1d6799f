"""Hunyuan-A13B: Hunyuan's dense layers with routed experts and a shared one.

The number of experts may differ by layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.hunyuan_v1_dense import rotate_and_norm
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.parts.feed_forward import gated_mlp, mixture
from paramcount.sizes import ABSENT, Condition, Flag, Indices, Positive, Sizes, derived, equal_to, hf, per_layer
from paramcount.sizes.conditions import padding_in_table


def visited(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[int, ...]:
    """How many experts a token visits: one number for all layers, or one for each."""
    key = "num_experts_per_tok" if "num_experts_per_tok" in js else "moe_topk"
    found = js.get(key, 1)
    if type(found) is int and found > 0:
        return (found,)
    if (
        not isinstance(found, (list, tuple))
        or len(found) < c["n_layers"]
        or not all(type(n) is int and n > 0 for n in found)
    ):
        raise ParamcountError(
            f"= {describe_value(found)}", where=key, expected="an integer of at least 1, or one for each layer"
        )
    return tuple(found[i] for i in per_layer(c))


class HunYuanMoEV1(Sizes):
    """Source: modeling_hunyuan_v1_moe.py of the reference."""

    reference: ClassVar[str] = "HunYuanMoEV1ForCausalLM"
    linear_routers: ClassVar[tuple[str, ...]] = (".gate.wg.weight",)
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(0),)

    vocab_size: Positive = hf(absent=290943)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_head: Positive = hf()  # the reference has no default and derives none
    d_expert: Positive = hf("intermediate_size", absent=11008)
    n_routed_experts: Positive = hf("num_local_experts", "num_experts", absent=1)
    n_active_experts: Positive = derived(lambda js, c: max(visited(js, c)))  # in the layer with the most
    active_by_layer: Indices = derived(lambda js, c: () if len(set(visited(js, c))) == 1 else visited(js, c))
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, [(n, 1) for n in c.active_by_layer] or None)

    def check(c) -> None:
        if c.active_by_layer and (len(c.active_by_layer) != c.n_layers or max(c.active_by_layer) != c.n_active_experts):
            expected = f"one number a layer, n_active_experts = {c.n_active_experts} the most"
            raise ParamcountError(f"names {len(c.active_by_layer)} layers", where="active_by_layer", expected=expected)


def layer(c: Any, kind: Any, x: Data) -> Data:
    return usual_layer(
        c, x, lambda h: moe(c, h, None if kind == "layer" else kind), bias=c.attention_bias, prepare=rotate_and_norm
    )


def moe(c: Any, x: Data, n_active: Any) -> Data:
    routed = mixture(c, x, "mlp.", router="gate.wg", n_active=n_active)
    return routed + gated_mlp(x, "mlp.shared_mlp.", "shared_experts", c.d_expert)
