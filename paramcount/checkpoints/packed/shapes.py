"""The shape and packing of a packed tensor, inferred from the shapes of its pieces, and the pieces that do not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
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

Shape: TypeAlias = tuple[int, ...]
Block: TypeAlias = tuple[int, int]  # outputs and inputs that share a scale; 0 for all
Pieces: TypeAlias = tuple[Piece, ...]  # stored tensors of one packed tensor, its values first

MOST_BITS = 8
GROUPS = (128, 64, 32, 0)  # supported by AWQ's GEMV layout
FP8_BLOCKS = (FP8_BLOCK, (1, 0), (0, 0), MXFP4_BLOCK)  # MXFP8 has the blocks of MXFP4
SCALES = ("F16", "BF16", "F32", "F8_E8M0", "U8")  # types of scales
MOST_SHAPES = 100  # that suggest blocks of their own


class Fit(NamedTuple):
    """The shape and packing that fit the pieces of a packed tensor best."""

    shape: Shape | None  # [..., outputs, inputs]
    packing: Packing | None
    faults: tuple[tuple[int, str], ...] = ()  # (index of a piece, problem)


def find_misfits(pieces: Pieces, shape: Shape, packing: Packing) -> list[tuple[int, str]]:
    """The pieces with another shape than the packing implies."""
    expected = {piece.what: piece.shape for piece in list_pieces(shape, packing)}
    faults = []
    for i, piece in enumerate(pieces):
        expected_shape = expected.get(piece.what, piece.shape)
        if piece.what != "activation scale" and piece.shape != expected_shape:
            tensor = f"a {format_shape(shape)} tensor in {_describe_packing(packing)}"
            problem = f"shape {format_shape(piece.shape)}, expected {format_shape(expected_shape)} for {tensor}"
            faults.append((i, problem))
    return faults


def _describe_packing(packing: Packing) -> str:
    outputs, inputs = packing.block
    if packing.layout in WORDS:
        return f"{packing.format}{f' with groups of {inputs}' if inputs else ''}"
    return f"{packing.format} with blocks of {outputs or 'all'} × {inputs or 'all'}"


# ---- GPTQ and AWQ


def fit_words(pieces: Pieces, config: QuantizationScheme, majority: Packing | None) -> Fit:
    """The fit of a matrix packed in 32-bit words. `majority`: the most common packing in the file."""
    if exact := match_words(pieces, config, majority):
        return exact
    if majority:
        candidates = [majority]
    else:
        layouts = [config.layout] if config.layout else ["gptq", "awq"]
        bits, group = config.bits or 4, 128 if config.group is None else config.group
        candidates = [Packing(layout, "I32", bits, (1, group), "F16") for layout in layouts]
    return min((_fit_best(pieces, packing) for packing in candidates), key=lambda fit: len(fit.faults))


def match_words(pieces: Pieces, config: QuantizationScheme, majority: Packing | None = None) -> Fit | None:
    """The fit of a matrix packed in 32-bit words if all of its pieces agree; None if they do not."""
    by_role = {piece.what: piece for piece in pieces}
    values, scales = by_role["packed weights"], by_role.get("scale")
    if scales is None or len(values.shape) < 2 or len(scales.shape) != len(values.shape):
        return None
    if 0 in values.shape + scales.shape:
        return None
    hints = [group for group in (config.group, majority.block[1] if majority else None, *GROUPS) if group is not None]
    likely = [layout for layout in (config.layout, majority.layout if majority else None) if layout]
    has_zeros, has_index = "zero point" in by_role, "group index" in by_role
    activation_scales = _list_activation_scales(pieces)
    for layout in dict.fromkeys((*likely, *WORDS)):
        if (layout == "awq fast") != (values.dtype == "I16"):
            continue
        bits = _infer_bits(layout, values.shape, scales.shape, by_role, config)
        shape = _infer_shape(layout, values.shape, bits) if bits else None
        if not bits or not shape:
            continue
        for group in _infer_groups(layout, shape, scales.shape, hints):
            block = (1, group)
            packing = Packing(
                layout, values.dtype, bits, block, scales.dtype, 2, has_zeros, has_index, activation_scales
            )
            if not find_misfits(pieces, shape, packing):
                return Fit(shape, packing, () if has_zeros else ((0, "zero points are missing"),))
    return None


def _infer_bits(
    layout: str, values: Shape, scales: Shape, by_role: Mapping[str, Piece], config: QuantizationScheme
) -> int | None:
    """Bits per value, inferred from the shapes of the scales and zero points."""
    zeros = by_role["zero point"].shape if "zero point" in by_role else ()
    index = by_role["group index"].shape if "group index" in by_role else ()
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
            bits, rest = 4, 0  # these layouts have no other width
    return bits if not rest and 1 <= bits <= MOST_BITS else None


def _infer_shape(layout: str, shape: Shape, bits: int) -> Shape | None:
    """The shape of the matrix whose values fill words of this shape."""
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


def _infer_groups(layout: str, shape: Shape, scales: Shape, hints: Sequence[int]) -> list[int]:
    """Possible numbers of inputs that share a scale."""
    if layout not in ("gptq", "awq"):
        return list(hints)
    n, inputs = scales[-2], shape[-1]
    if n == 1:
        return [0]
    fitting = [group for group in hints if group and count_blocks(inputs, group) == n]
    return fitting[:1] or [inputs // n if inputs % n == 0 else count_blocks(inputs, n)]


def _fit_best(pieces: Pieces, packing: Packing) -> Fit:
    """The shape that agrees with the most pieces if the matrix has this packing."""
    by_role = {piece.what: piece for piece in pieces}
    values, scales, zeros = by_role["packed weights"], by_role.get("scale"), by_role.get("zero point")
    packing = packing._replace(
        dtype=values.dtype,
        scale=scales.dtype if scales else packing.scale,
        indexed="group index" in by_role,
        others=_list_activation_scales(pieces),
    )
    candidates = []
    if len(values.shape) > 1 and 0 not in values.shape:
        candidates.append(_infer_shape(packing.layout, values.shape, packing.bits))
    if packing.layout in ("gptq", "awq"):
        candidates.append(_infer_shape_from_scales(by_role, packing))
    fits = [(shape, find_misfits(pieces, shape, packing)) for shape in candidates if shape]
    missing = [
        (0, f"{role} are missing") for role, piece in (("scales", scales), ("zero points", zeros)) if piece is None
    ]
    if not fits:
        return Fit(None, None, (*missing, (0, f"shape {format_shape(values.shape)} is not a packed matrix")))
    shape, faults = min(fits, key=lambda fit: len(fit[1]))
    return Fit(shape, packing, (*missing, *faults))


def _infer_shape_from_scales(by_role: Mapping[str, Piece], packing: Packing) -> Shape | None:
    """The shape of a matrix with these scales, or with these zero points if it has no scales; None if unknown."""
    scales, zeros, index = (by_role.get(role) for role in ("scale", "zero point", "group index"))
    if scales:
        shape = scales.shape
    elif zeros and zeros.shape:
        shape = (*zeros.shape[:-1], zeros.shape[-1] * WORD // packing.bits)
    else:
        return None
    if len(shape) < 2:
        return None
    *before, groups, outputs = shape
    inputs = index.shape[-1] if index and index.shape else groups * packing.block[1]
    return (*before, outputs, inputs) if inputs else None


def _list_activation_scales(pieces: Pieces) -> Pieces:
    return tuple(piece for piece in pieces if piece.what == "activation scale")


# ---- FP8, and the FP4 and MXFP4 of experts


def find_fp8_block(pairs: Mapping[tuple[Shape, Shape], int], config: Block | None) -> Block | None:
    """The block that fits most matrices. `pairs`: {(shape, shape of the scales): number of matrices}."""
    votes: Counter[Block] = Counter()
    candidates = dict.fromkeys((config, *FP8_BLOCKS) if config else FP8_BLOCKS)
    for shape, scales in islice(pairs, MOST_SHAPES):
        if block := _infer_block(shape, scales):
            candidates[block] = None
    for (shape, scales), n in pairs.items():
        for block in candidates:
            if _has_block(shape, scales, block):
                votes[block] += n
    return max(candidates, key=lambda block: votes[block]) if votes else None


def _infer_block(shape: Shape, scales: Shape) -> Block | None:
    """The block of a matrix with these scales: powers of two if they fit, otherwise the quotients."""
    if len(shape) < 2 or len(scales) < 2 or 0 in shape or 0 in scales:
        return None
    sizes = []
    for size, n in zip(shape[-2:], scales[-2:]):
        quotient = count_blocks(size, n)
        power = 1 << (quotient - 1).bit_length()
        sizes.append(power if count_blocks(size, power) == n else quotient)
    return sizes[0], sizes[1]


def _has_block(shape: Shape, scales: Shape, block: Block) -> bool:
    return list_pieces(shape, Packing("fp8", "F8_E4M3", 8, block, "F32", len(scales)))[1].shape == scales


def fit_fp8(pieces: Pieces, block: Block, *, loose: bool) -> Fit:
    """The fit of an FP8 matrix. `loose`: whether one scale per output or per tensor is also valid."""
    values, scales = pieces[0], pieces[1]
    if len(values.shape) < 2:
        fault = (0, f"shape {format_shape(values.shape)} is not a matrix")
        return Fit(values.shape, Packing("plain", values.dtype), (fault,))
    packing = Packing("fp8", values.dtype, 8, block, scales.dtype, others=_list_activation_scales(pieces))
    for candidate in (block, *FP8_BLOCKS[1:3]) if loose else (block,):
        exact = packing._replace(block=candidate, axes=len(scales.shape))
        if not find_misfits(pieces, values.shape, exact):
            return Fit(values.shape, exact)
    packing = packing._replace(axes=len(values.shape))
    return Fit(values.shape, packing, tuple(find_misfits(pieces, values.shape, packing)))


def fit_fp4(pieces: Pieces) -> Fit:
    """The fit of an FP4 matrix with two values per byte and a scale per 32: the experts of DeepSeek-V4."""
    values, scales = pieces[0], pieces[1]
    if len(values.shape) < 2:
        return Fit(None, None, ((0, f"shape {format_shape(values.shape)} is not a matrix"),))
    *before, outputs, columns = values.shape
    shape = (*before, outputs, columns if values.dtype == "F4" else 2 * columns)
    packing = Packing("fp4", values.dtype, 4, MXFP4_BLOCK, scales.dtype, others=_list_activation_scales(pieces))
    return Fit(shape, packing, tuple(find_misfits(pieces, shape, packing)))


def fit_mxfp4(pieces: Pieces) -> Fit:
    """The fit of MXFP4 matrices, which have 32 values in 16 bytes."""
    values, scales = pieces[0], pieces[1]
    packing = Packing("mxfp4", values.dtype, 4, MXFP4_BLOCK, scales.dtype)
    n, size = packing.block[1], packing.block[1] // 2
    candidates = []
    if len(values.shape) > 2 and values.shape[-1] == size:
        candidates.append((*values.shape[:-2], values.shape[-2] * n))
    if len(scales.shape) > 1:
        candidates.append((*scales.shape[:-1], scales.shape[-1] * n))
    if not candidates:
        return Fit(None, None, ((0, f"shape {format_shape(values.shape)} does not contain blocks of {size} bytes"),))
    shape = min(candidates, key=lambda shape: len(find_misfits(pieces, shape, packing)))
    return Fit(shape, packing, tuple(find_misfits(pieces, shape, packing)))


def is_fp4(values: str, scales: str) -> bool:
    """Whether tensors of these types are an FP4 matrix and its scales."""
    return values in ("I8", "U8", "F4") and scales in ("U8", "F8_E8M0")


def is_fp8(values: str, scales: str) -> bool:
    """Whether tensors of these types are an FP8 matrix and its scales."""
    return values in FP8 and scales in SCALES
