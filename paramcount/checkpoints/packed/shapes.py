"""What a packed tensor holds, read off the shapes of all that stands for it; and what of it has another shape than the rest says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from paramcount.counting.quantisation.configs import QuantizationScheme
from paramcount.counting.quantisation.packing import (
    FP8,
    FP8_BLOCK,
    INTERLEAVED,
    MXFP4_BLOCK,
    WORD,
    WORDS,
    Packing,
    Piece,
    list_pieces,
)
from paramcount.counting.quantisation.scales import count_blocks
from paramcount.errors import format_shape

Shape: TypeAlias = "tuple[int, ...]"
Found: TypeAlias = "tuple[Piece, ...]"  # what stands for a tensor, its values first

MOST_BITS = 8
GROUPS = (128, 64, 32, 0)  # those that AWQ's layout for products with vectors knows
FP8_BLOCKS = (FP8_BLOCK, (1, 0), (0, 0), MXFP4_BLOCK)  # MXFP8 shares scales as MXFP4 does
SCALES = ("F16", "BF16", "F32", "F8_E8M0", "U8")  # types of scales


class Fit(NamedTuple):
    """A packed tensor, as it is understood."""

    shape: Shape | None  # [..., outputs, inputs]
    packing: Packing | None
    faults: tuple[tuple[int, str], ...] = ()  # which of its pieces is wrong, and how


def misfits(found: Found, shape: Shape, packing: Packing) -> list[tuple[int, str]]:
    """The pieces that have another shape or type than they should."""
    expected = {piece.what: piece for piece in list_pieces(shape, packing)}
    faults = []
    for i, piece in enumerate(found):
        if piece.what == "activation scale":
            continue
        wanted = expected.get(piece.what, piece)
        if piece.shape != wanted.shape:
            faults.append(
                (
                    i,
                    f"shape {format_shape(piece.shape)}, but {_describe_packing(packing)} of {format_shape(shape)} needs {format_shape(wanted.shape)}",
                )
            )
    return faults


def _describe_packing(packing: Packing) -> str:
    outputs, inputs = packing.block
    if packing.layout in WORDS:
        return f"{packing.format}{f' in groups of {inputs}' if inputs else ''}"
    return f"{packing.format} in blocks of {outputs or 'all'} × {inputs or 'all'}"


# ---- GPTQ and AWQ


def words_fit(found: Found, config: QuantizationScheme, usual: Packing | None) -> Fit:
    """A matrix in words of 32 bits. `usual`: how others of the file are packed."""
    if whole := words_read(found, config, usual):
        return whole
    layouts = [config.layout] if config.layout else ["gptq", "awq"]
    likely = (
        [usual]
        if usual
        else [
            Packing(layout, "I32", config.bits or 4, (1, 128 if config.group is None else config.group), "F16")
            for layout in layouts
        ]
    )
    return min((_least_wrong(found, packing) for packing in likely), key=lambda fit: len(fit.faults))


def words_read(found: Found, config: QuantizationScheme, usual: Packing | None = None) -> Fit | None:
    """A matrix all of whose pieces fit each other; None where they do not."""
    held = {piece.what: piece for piece in found}
    values, scales = held["packed weights"], held.get("scale")
    if (
        scales is None
        or len(values.shape) < 2
        or len(scales.shape) != len(values.shape)
        or 0 in values.shape + scales.shape
    ):
        return None
    hints = [group for group in (config.group, usual.block[1] if usual else None, *GROUPS) if group is not None]
    likely = [layout for layout in (config.layout, usual.layout if usual else None) if layout]
    for layout in dict.fromkeys((*likely, *WORDS)):
        if (layout == "awq fast") != (values.dtype == "I16"):
            continue
        bits = _bits(layout, values.shape, scales.shape, held, config)
        shape = _from_values(layout, values.shape, bits) if bits else None
        if not bits or not shape:
            continue
        for group in _groups(layout, shape, scales.shape, hints):
            packing = Packing(
                layout,
                values.dtype,
                bits,
                (1, group),
                scales.dtype,
                2,
                "zero point" in held,
                "group index" in held,
                _activation_scales(found),
            )
            if not misfits(found, shape, packing):
                missing = ((0, "zero points are missing"),) if "zero point" not in held else ()
                return Fit(shape, packing, missing)
    return None


def _bits(
    layout: str, values: Shape, scales: Shape, held: Mapping[str, Piece], config: QuantizationScheme
) -> int | None:
    """Bits of a value, from the shapes of its scales and zero points."""
    zeros, index = (
        held[what].shape if what in held and held[what].shape else None for what in ("zero point", "group index")
    )
    match layout:
        case "gptq" if zeros:
            bits, rest = divmod(zeros[-1] * WORD, scales[-1])
        case "gptq" if index:
            bits, rest = divmod(values[-2] * WORD, index[-1] or 1)
        case "gptq":
            bits, rest = config.bits or 4, 0
        case "awq":
            bits, rest = divmod(values[-1] * WORD, scales[-1])
        case _:
            bits, rest = 4, 0  # as only these are written
    return bits if not rest and 1 <= bits <= MOST_BITS else None


def _from_values(layout: str, shape: Shape, bits: int) -> Shape | None:
    """The matrix whose values fill words of this shape."""
    *before, rows, columns = shape
    match layout:
        case "gptq":
            outputs, inputs, rest = columns, rows * WORD // bits, rows * WORD % bits
        case "awq":
            outputs, inputs, rest = columns * WORD // bits, rows, columns * WORD % bits
        case "awq gemv":
            outputs, inputs, rest = rows, columns * WORD // bits, columns * WORD % bits
        case _:
            outputs, inputs, rest = rows * INTERLEAVED, columns, 0
    return None if rest else (*before, outputs, inputs)


def _groups(layout: str, shape: Shape, scales: Shape, hints: Sequence[int]) -> list[int]:
    """How many inputs may share a scale."""
    if layout not in ("gptq", "awq"):
        return list(hints)
    n, inputs = scales[-2], shape[-1]
    if n == 1:
        return [0]
    fitting = [group for group in hints if group and count_blocks(inputs, group) == n]
    return fitting[:1] or [inputs // n if inputs % n == 0 else count_blocks(inputs, n)]


def _least_wrong(found: Found, usual: Packing) -> Fit:
    """The matrix that most pieces speak for, packed as usual in this file."""
    held = {piece.what: piece for piece in found}
    values, scales, zeros, index = (
        held["packed weights"],
        held.get("scale"),
        held.get("zero point"),
        held.get("group index"),
    )
    packing = usual._replace(
        dtype=values.dtype,
        scale=scales.dtype if scales else usual.scale,
        indexed=index is not None,
        others=_activation_scales(found),
    )
    shapes: list[Shape | None] = [
        _from_values(packing.layout, values.shape, packing.bits)
        if len(values.shape) > 1 and 0 not in values.shape
        else None
    ]
    if packing.layout in ("gptq", "awq"):
        beside = (
            scales.shape
            if scales
            else zeros and (*zeros.shape[:-1], zeros.shape[-1] * WORD // packing.bits)
            if zeros and zeros.shape
            else None
        )
        if beside and len(beside) > 1:
            inputs = index.shape[-1] if index and index.shape else beside[-2] * packing.block[1]
            shapes.append((*beside[:-2], beside[-1], inputs) if inputs else None)
    wrong = [(shape, misfits(found, shape, packing)) for shape in shapes if shape]
    missing = [
        (0, f"{what} are missing") for what, piece in (("scales", scales), ("zero points", zeros)) if piece is None
    ]
    if not wrong:
        return Fit(None, None, (*missing, (0, f"shape {format_shape(values.shape)} is not a packed matrix")))
    shape, faults = min(wrong, key=lambda item: len(item[1]))
    return Fit(shape, packing, (*missing, *faults))


def _activation_scales(found: Found) -> tuple[Piece, ...]:
    return tuple(piece for piece in found if piece.what == "activation scale")


# ---- FP8, and the FP4 and MXFP4 of experts


def float_block(pairs: Mapping[tuple[Shape, Shape], int], config: tuple[int, int] | None) -> tuple[int, int] | None:
    """The block that most of the matrices with these scales share. `pairs`: how many have a shape and scales of a shape."""
    votes: Counter[tuple[int, int]] = Counter()
    candidates = dict.fromkeys((config, *FP8_BLOCKS) if config else FP8_BLOCKS)
    for (shape, scales), _ in zip(pairs, range(100)):
        candidates |= dict.fromkeys(_possible(shape, scales))
    for (shape, scales), n in pairs.items():
        for block in candidates:
            if _fits(shape, scales, block):
                votes[block] += n
    return max(candidates, key=lambda block: votes[block]) if votes else None


def _possible(shape: Shape, scales: Shape) -> Iterable[tuple[int, int]]:
    """The block of a matrix with these scales: a power of two where one may be, else as they divide."""
    if len(shape) < 2 or len(scales) < 2 or 0 in shape or 0 in scales:
        return ()
    found = []
    for size, n in zip(shape[-2:], scales[-2:]):
        power = 1 << (count_blocks(size, n) - 1).bit_length()
        found.append(power if count_blocks(size, power) == n else count_blocks(size, n))
    return ((found[0], found[1]),)


def _fits(shape: Shape, scales: Shape, block: tuple[int, int]) -> bool:
    return list_pieces(shape, Packing("fp8", "F8_E4M3", 8, block, "F32", len(scales)))[1].shape == scales


def float_fit(found: Found, block: tuple[int, int], loose: bool) -> Fit:
    """A matrix of FP8. `loose`: one scale for each output or for all is right, too."""
    values, scales = found[0], found[1]
    if len(values.shape) < 2:
        return Fit(
            values.shape, Packing("plain", values.dtype), ((0, f"shape {format_shape(values.shape)} is not a matrix"),)
        )
    for candidate in (block, *FP8_BLOCKS[1:3]) if loose else (block,):
        packing = Packing(
            "fp8", values.dtype, 8, candidate, scales.dtype, len(scales.shape), others=_activation_scales(found)
        )
        if not misfits(found, values.shape, packing):
            return Fit(values.shape, packing)
    packing = Packing("fp8", values.dtype, 8, block, scales.dtype, len(values.shape), others=_activation_scales(found))
    return Fit(values.shape, packing, tuple(misfits(found, values.shape, packing)))


def four_bit_fit(found: Found) -> Fit:
    """A matrix of FP4 whose bytes hold two values each, with a scale of 32: the experts of DeepSeek-V4."""
    values, scales = found[0], found[1]
    if len(values.shape) < 2:
        return Fit(None, None, ((0, f"shape {format_shape(values.shape)} is not a matrix"),))
    *before, outputs, held = values.shape
    shape = (*before, outputs, held if values.dtype == "F4" else 2 * held)
    packing = Packing("fp4", values.dtype, 4, MXFP4_BLOCK, scales.dtype, others=_activation_scales(found))
    return Fit(shape, packing, tuple(misfits(found, shape, packing)))


def blocks_fit(found: Found) -> Fit:
    """Matrices of MXFP4, 32 values in 16 bytes."""
    values, scales = found[0], found[1]
    packing = Packing("mxfp4", values.dtype, 4, MXFP4_BLOCK, scales.dtype)
    n, size = packing.block[1], packing.block[1] // 2
    shapes = [(*values.shape[:-2], values.shape[-2] * n)] if len(values.shape) > 2 and values.shape[-1] == size else []
    shapes += [(*scales.shape[:-1], scales.shape[-1] * n)] if len(scales.shape) > 1 else []
    if not shapes:
        return Fit(None, None, ((0, f"shape {format_shape(values.shape)} does not hold blocks of {size} bytes"),))
    shape = min(shapes, key=lambda shape: len(misfits(found, shape, packing)))
    return Fit(shape, packing, tuple(misfits(found, shape, packing)))


def is_four_bit(values: str, scales: str) -> bool:
    """Whether tensors of these types are a matrix of FP4 and its scales."""
    return values in ("I8", "U8", "F4") and scales in ("U8", "F8_E8M0")


def is_float(values: str, scales: str) -> bool:
    """Whether tensors of these types are a matrix of FP8 and its scales."""
    return values in FP8 and scales in SCALES
