"""Derivations of the rotary dimension of each head."""

from __future__ import annotations

from collections.abc import Mapping

from paramcount.errors import ParamcountError, describe_value
from paramcount.sizes import ConfigJson, FieldValues, options_first, part_of
from paramcount.sizes.derivations import find_share

SHARE = "partial_rotary_factor"


def in_pairs(size: object, share: object) -> int:
    """A share of a size, rounded up to an even number."""
    n = part_of(size, share)
    return n + n % 2


@options_first
def rotary_dimension(
    js: ConfigJson, c: FieldValues, absent: float = 1.0, *, key: str = SHARE, paired: bool = True, head_key: str = ""
) -> int:
    """The rotary dimension of a head: a share of its size.

    Args:
        absent: The default of the share.
        key: The key of the share outside of rope_parameters, which has partial_rotary_factor; "" if there is none.
        paired: Whether heads rotate by as many values as there are angles, an even number, for which a null outside of
            rope_parameters is the whole head, rather than by the truncated part.
        head_key: The key of the head size whose share it is, if heads have another size.
    """
    rope = js.get("rope_scaling") or js.get("rope_parameters") or {}
    outside = js.get(key, absent)
    share = find_share(js, 1.0 if outside is None and paired and key == SHARE else outside)
    n = part_of(js.get(head_key) or c["d_head"], share, key if key in js and SHARE not in rope else SHARE)
    return n + n % 2 if paired else n


@options_first
def rotary_width_of(js: ConfigJson, c: FieldValues, word: str, absent: float, otherwise: float) -> int:
    """The rotary dimension of heads in layers of one kind, if rope_parameters has a block per word of layer_types.

    Args:
        word: The kind of layer.
        absent: The share of the head if rope_parameters is missing.
        otherwise: The share of the head if the block has no partial_rotary_factor, unless its angles are scaled.
    """
    key = "rope_scaling" if "rope_scaling" in js else "rope_parameters"  # which the first replaces, even by null
    blocks = js.get(key)
    if blocks is None:
        return in_pairs(c["d_head"], absent)
    if word not in c["layer_types"]:
        return in_pairs(c["d_head"], otherwise)
    block = blocks.get(word)
    if not isinstance(block, Mapping):
        raise ParamcountError(
            f"= {describe_value(block)}",
            where=f"{key}.{word}",
            expected=f"a JSON object, because layer_types contains {word}",
        )
    is_scaled = block.get("rope_type", block.get("type", "default")) != "default"
    return in_pairs(c["d_head"], find_share({"rope_parameters": block}, 1.0 if is_scaled else otherwise))


@options_first
def sections_fill(js: ConfigJson, c: FieldValues, *absent: int) -> None:
    """The numbers of pairs in mrope_section, which time, height and width rotate, fill the rotary dimension.

    `absent`: the default of mrope_section.
    """
    rope = js.get("rope_scaling") or js.get("rope_parameters") or {}
    sections, d_rope = rope.get("mrope_section", absent), c.get("d_rope", c["d_head"])
    if 2 * sum(sections) != d_rope + d_rope % 2:
        raise ParamcountError(
            f"= {list(sections)} for a rotary dimension of {d_rope}",
            where="mrope_section",
            expected=f"numbers of pairs that sum to {-(-d_rope // 2)}",
        )
