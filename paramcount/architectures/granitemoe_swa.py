"""Granite MoE with sliding windows in three of four layers.

Each head has an attention sink; some layers have no positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.granitemoe import GraniteMoeShared, shared_moe
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data
from paramcount.parts.decoders import decoder, usual_layer
from paramcount.sizes import ABSENT, Indices, Positive, Words, derived, hf, per_layer
from paramcount.sizes.rules import check_layer_indices, check_layer_types

KINDS = ("full_attention", "sliding_attention", "attention")  # the last is the older word for the first
NAMES = (
    "router",
    "experts.gate_up_proj",
    "experts.down_proj",
)  # the older names of Granite MoE are not saved for this type


def without_positions(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[int, ...]:
    """Layers whose base of rotation is 0 rotate nothing."""
    bases = js.get("layer_rope_theta")
    if bases is None:
        return ()
    if (
        not isinstance(bases, (list, tuple))
        or len(bases) < c["n_layers"]
        or not all(type(base) in (int, float) for base in bases)
    ):
        raise ParamcountError(f"= {describe_value(bases)}", where="layer_rope_theta", expected="one number a layer")
    return tuple(i for i in per_layer(c) if not bases[i])


class GraniteMoeSWA(GraniteMoeShared):
    """Source: modeling_granitemoe_swa.py of the reference."""

    reference: ClassVar[str] = "GraniteMoeSWAForCausalLM"

    layer_types: Words = hf(absent=lambda js, c: tuple(KINDS[i % 4 > 0] for i in per_layer(c)), null=ABSENT)
    unrotated_layers: Indices = derived(without_positions)
    window: Positive = hf(absent=128)

    def forward(c, tokens: Data) -> Data:
        unrotated = set(c.unrotated_layers)
        return decoder(c, tokens, layer, [((kind, i not in unrotated), 1) for i, kind in enumerate(c.layer_types)])

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)
        check_layer_indices(c, "unrotated_layers", "n_layers")


def layer(c: Any, kind: tuple[str, bool], x: Data) -> Data:
    word, rotated = kind
    as_they_are = None if rotated else lambda q, k: (q, k)
    window = c.window if word == "sliding_attention" else None
    return usual_layer(
        c, x, lambda h: shared_moe(c, h, NAMES), bias=c.attention_bias, sinks=True, window=window, prepare=as_they_are
    )
