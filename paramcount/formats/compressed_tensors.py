"""compressed-tensors: groups of modules, each in a format of its own.

Source: compressed_tensors 0.20, quantization/quant_config.py, utils/match.py and compressors/.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError, quote
from paramcount.formats.packing import Block, Packing, StoredPiece
from paramcount.formats.quantization_config import (
    COMPRESSED,
    LARGEST_BLOCK,
    PackedGroup,
    Plan,
    read_block,
    read_names,
    select_linear,
)
from paramcount.formats.weights import load_formats


class CompressedGroup(NamedTuple):
    """A group of compressed-tensors."""

    form: str  # its format: "pack-quantized"
    kind: str  # int | float
    bits: int
    size: int | None  # inputs per scale
    has_inputs: bool  # whether activations are quantised
    packing: Packing  # without layout, types and bits


def plan_compressed(config: Mapping[str, Any], dtype: str) -> Plan:
    blocks = config.get("config_groups")
    if (
        not isinstance(blocks, Mapping)
        or not blocks
        or not all(isinstance(block, Mapping) for block in blocks.values())
    ):
        raise ParamcountError("config_groups has no groups")
    ignored = read_names(config, "ignore")
    groups, texts = [], []
    for block in blocks.values():
        text, packing = read_compressed(block, str(block.get("format") or config.get("format")), dtype)
        groups.append(PackedGroup(select_linear(read_names(block, "targets"), ignored), packing))
        texts.append(f"{text} by {COMPRESSED}")
    if config.get("version") is None:  # Kimi's own writer, as the index of Kimi-K2.6 shows
        groups = [group._replace(packing=shorten_shapes(group.packing)) for group in groups]
    exact = not config.get("kv_cache_scheme")
    return Plan(COMPRESSED, " and ".join(dict.fromkeys(texts)), tuple(groups), dtype, exact, scope="linear")


def shorten_shapes(packing: Packing) -> Packing:
    """The same packing with the shapes of packed weights in 32 bits."""
    others = tuple(piece._replace(dtype="I32") if piece.what == "description" else piece for piece in packing.others)
    return packing._replace(others=others)


def read_compressed(block: Mapping[str, Any], form: str, dtype: str) -> tuple[str, Packing]:
    """(name, packing) of one group."""
    weights, inputs = block.get("weights"), block.get("input_activations")
    if not isinstance(weights, Mapping):
        raise ParamcountError("has a group without weights")
    bits, kind, strategy, size = (weights.get(key) for key in ("num_bits", "type", "strategy", "group_size"))
    has_static_scale = isinstance(inputs, Mapping) and not inputs.get("dynamic")
    others = (StoredPiece("activation scale", dtype, (1,)),) if has_static_scale else ()
    zeros, indices = weights.get("symmetric") is False, weights.get("actorder") == "group"
    extras = ("zero point",) * zeros + ("group index",) * indices
    packing = Packing(
        "",
        "",
        0,
        find_block(strategy, size, weights.get("block_structure")),
        dtype,
        1 if strategy == "tensor" else 2,
        extras,
        others,
    )
    group = CompressedGroup(
        form, str(kind), bits if type(bits) is int else 0, size if type(size) is int else None, bool(inputs), packing
    )
    for format in load_formats():
        if found := format.read_compressed(group, dtype):
            return found
    raise ParamcountError(
        f"has a group in the format {quote(form)} with {quote(str(bits))}-bit {quote(str(kind))} weights"
    )


def find_block(strategy: object, size: object, structure: object) -> Block:
    """Outputs and inputs per scale; 0 for all."""
    match strategy:
        case "tensor":
            return (0, 0)
        case "channel":
            return (1, 0)
        case "group" | "tensor_group" if type(size) is int and 0 < size <= LARGEST_BLOCK:
            return (1, size)
        case "block":
            if block := read_block(structure):
                return block
    raise ParamcountError(
        f"has weights with the strategy {quote(str(strategy))}",
        expected="tensor, channel, group or block, with its size",
    )
