"""Derivations of the rotary dimension of each head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcount.errors import ParamcountError, describe_value
from paramcount.sizes import Condition, Derivation, part_of


def in_pairs(width: Any, share: Any) -> int:
    """A share of a size, rounded to pairs."""
    n = part_of(width, share)
    return n + n % 2


def rotary_width(absent: float = 1.0) -> Derivation:
    """What partial_rotary_factor leaves of d_head. `absent`: where there is none."""

    def width(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
        rope = js.get("rope_scaling") or js.get("rope_parameters") or {}
        share = rope.get("partial_rotary_factor", js.get("partial_rotary_factor", absent))
        return in_pairs(c["d_head"], 1.0 if share is None else share)

    return width


def rotary_width_of(word: str, absent: float, otherwise: float) -> Derivation:
    """The same where rope_parameters has a block for each word of layer_types. `absent`: where there is no rope_parameters,
    `otherwise`: where the block does not say."""

    def width(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
        blocks = js.get("rope_parameters")
        if blocks is None:
            return in_pairs(c["d_head"], absent)
        if word not in c["layer_types"]:
            return in_pairs(c["d_head"], otherwise)
        block = blocks.get(word)
        if not isinstance(block, Mapping):
            raise ParamcountError(
                f"= {describe_value(block)}",
                where=f"rope_parameters.{word}",
                expected="a mapping, as layer_types names it",
            )
        return in_pairs(c["d_head"], block.get("partial_rotary_factor", otherwise))

    return width


def sections_fill(*absent: int) -> Condition:
    """Positions of three kinds (time, height, width) share a head's pairs: mrope_section says how many pairs each turns. `absent`:
    where nothing says it."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        rope = js.get("rope_scaling") or js.get("rope_parameters") or {}
        sections, d_rope = rope.get("mrope_section", absent), c.get("d_rope", c["d_head"])
        if 2 * sum(sections) != d_rope + d_rope % 2:
            raise ParamcountError(
                f"= {describe_value(list(sections))} for a width of {d_rope}",
                where="mrope_section",
                expected="numbers of pairs that fill it",
            )

    return condition
