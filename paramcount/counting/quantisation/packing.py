"""Packing of one tensor: the tensors that a file stores for a matrix, scales included, and their bytes.

Sources:
- GPTQ: github AutoGPTQ/AutoGPTQ, auto_gptq/nn_modules/qlinear/qlinear_cuda.py; ModelCloud/GPTQModel, GPTQQuantLinear.
- AWQ: github casper-hansen/AutoAWQ, awq/modules/linear/gemm.py, gemv.py and gemv_fast.py.
- FP8 and the FP4 of DeepSeek-V4's experts: transformers 5.23, integrations/finegrained_fp8.py, FP8Linear and
  _alloc_expert_proj.
- MXFP4: integrations/mxfp4.py, _convert_moe_packed_tensors.
- bitsandbytes 0.50: nn/modules.py, Linear8bitLt._save_to_state_dict, and functional.py, QuantState.as_dict.
- compressed-tensors 0.20: compressors/.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from paramcount.counting.quantisation.scales import SCHEMES, compute_scales_shape, count_blocks
from paramcount.formats.value_types import BITS, BLOCKS

BNB_BLOCK = 64  # values per scale
WORD = 32  # bits of the words that GPTQ and AWQ fill
FP8_BLOCK, MXFP4_BLOCK = SCHEMES["fp8"].block, SCHEMES["mxfp4"].block  # outputs and inputs that share a scale
INTERLEAVED = 4  # rows that AWQ's fast layout interleaves
WORDS = {"gptq": "GPTQ", "awq": "AWQ", "awq gemv": "AWQ", "awq fast": "AWQ"}  # {layout that fills words: its method}
FP8 = ("F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ")


class Piece(NamedTuple):
    """One of the stored tensors of a packed matrix."""

    what: str  # packed weights | scale | zero point | group index | activation scale | code book | description
    dtype: str
    shape: tuple[int, ...]


class Packing(NamedTuple):
    """How a tensor is stored."""

    layout: (
        str  # plain, ggml, fp8, fp4, mxfp4, nvfp4, bnb int8, bnb 4-bit (nested), ct words, ct bytes, or one of WORDS
    )
    dtype: str  # of its values
    bits: int = 0  # of one value in a word
    block: tuple[int, int] = (0, 0)  # outputs and inputs per scale; 0 for all
    scale: str = ""  # type of the scales
    axes: int = 2  # of the scales; one scale for all may have none
    zeros: bool = True  # whether zero points are stored
    indexed: bool = False  # whether group indices are stored
    others: tuple[Piece, ...] = ()  # further stored tensors

    @property
    def format(self) -> str:
        """The name of the format.

        >>> Packing("gptq", "I32", 4, (1, 128), "F16").format, Packing("fp8", "F8_E4M3", 8, (128, 128), "F32").format
        ('GPTQ 4-bit', 'F8_E4M3')
        """
        if self.layout in WORDS:
            return f"{WORDS[self.layout]} {self.bits}-bit"
        return {"mxfp4": "MXFP4", "fp4": "FP4"}.get(self.layout, self.dtype)


def list_pieces(shape: tuple[int, ...], packing: Packing) -> tuple[Piece, ...]:
    """The stored tensors of a matrix [..., outputs, inputs], its values first.

    >>> [piece.shape for piece in list_pieces((11008, 4096), Packing("gptq", "I32", 4, (1, 128), "F16", indexed=True))]
    [(512, 11008), (32, 11008), (32, 1376), (4096,)]
    """
    layout, dtype, bits, block, scale = packing[:5]
    if layout in ("plain", "ggml"):
        return (Piece("values", dtype, shape),)
    *before, outputs, inputs = shape
    groups = count_blocks(inputs, block[1] or inputs or 1)
    match layout:
        case "fp8":
            pieces = [
                Piece("values", dtype, shape),
                Piece("scale", scale, _trim_scales_shape(shape, block, packing.axes)),
            ]
        case "fp4":
            columns = inputs if dtype == "F4" else inputs // 2  # F4 shapes count values, byte shapes count pairs
            pieces = [
                Piece("values", dtype, (*before, outputs, columns)),
                Piece("scale", scale, compute_scales_shape(shape, block)),
            ]
        case "mxfp4":
            scales = compute_scales_shape(shape, MXFP4_BLOCK)
            pieces = [Piece("packed weights", dtype, (*scales, MXFP4_BLOCK[1] // 2)), Piece("scale", scale, scales)]
        case "gptq":
            pieces = [
                Piece("packed weights", dtype, (*before, count_words(inputs, bits), outputs)),
                Piece("scale", scale, (*before, groups, outputs)),
            ]
            pieces += [Piece("zero point", dtype, (*before, groups, count_words(outputs, bits)))] * packing.zeros
            pieces += [Piece("group index", "I32", (*before, inputs))] * packing.indexed
        case "awq":
            pieces = [
                Piece("packed weights", dtype, (*before, inputs, count_words(outputs, bits))),
                Piece("scale", scale, (*before, groups, outputs)),
            ]
            pieces += [Piece("zero point", dtype, (*before, groups, count_words(outputs, bits)))] * packing.zeros
        case "awq gemv":
            n_words = pad_words(inputs, block[1], bits)
            pieces = [
                Piece("packed weights", dtype, (*before, outputs, count_words(inputs, bits))),
                Piece("scale", scale, (*before, outputs, n_words * WORD // bits)),
            ]
            pieces += [Piece("zero point", dtype, (*before, outputs, n_words))] * packing.zeros
        case "bnb int8":
            pieces = [
                Piece("values", dtype, shape),
                Piece("scale", scale, (*before, outputs)),
                Piece("description", "U8", ()),
            ]
        case "bnb 4-bit" | "bnb 4-bit nested":
            pieces = _list_4bit_bitsandbytes_pieces(shape, packing)
        case "ct words":
            pieces = [
                Piece("packed weights", dtype, (*before, outputs, count_blocks(inputs, WORD // bits))),
                Piece("scale", scale, _trim_scales_shape(shape, block, packing.axes)),
            ]
            zero_point = Piece("zero point", dtype, (*before, count_blocks(outputs, WORD // bits), groups))
            pieces += [zero_point] * packing.zeros
            pieces += [Piece("group index", "I32", (*before, inputs))] * packing.indexed
            pieces.append(Piece("description", "I64", (2,)))
        case "ct bytes":
            scales = _trim_scales_shape(shape, block, packing.axes)
            pieces = [Piece("values", dtype, shape), Piece("scale", scale, scales)]
            pieces += [Piece("zero point", dtype, scales)] * packing.zeros
        case "nvfp4":
            pieces = [
                Piece("packed weights", dtype, (*before, outputs, count_blocks(inputs, 2))),
                Piece("scale", scale, (*before, outputs, groups)),
            ]
        case _:  # awq fast
            n_scales = pad_words(inputs, block[1], bits) * WORD // bits
            pieces = [
                Piece("packed weights", dtype, (*before, outputs // INTERLEAVED, inputs)),
                Piece("scale", scale, (*before, n_scales, outputs)),
            ]
            pieces += [Piece("zero point", scale, (*before, n_scales, outputs))] * packing.zeros
    return (*pieces, *packing.others)


def _list_4bit_bitsandbytes_pieces(shape: tuple[int, ...], packing: Packing) -> list[Piece]:
    """The tensors that bitsandbytes stores for a 4-bit matrix: values, block scales, code book, JSON description.

    Nested scales are bytes with a scale per 256, and their description has a float, so its length varies.
    """
    outputs, inputs = shape
    n = count_blocks(outputs * inputs, BNB_BLOCK)
    kind, dtype = packing.scale.split()  # "nf4 bfloat16"
    description = (
        f'{{"quant_type": "{kind}", "blocksize": {BNB_BLOCK}, "dtype": "{dtype}", "shape": [{outputs}, {inputs}]}}'
    )
    pieces = [Piece("packed weights", "U8", (count_blocks(outputs * inputs, 2), 1)), Piece("code book", "F32", (16,))]
    if packing.layout == "bnb 4-bit":
        return [*pieces, Piece("scale", "F32", (n,)), Piece("description", "U8", (len(description),))]
    nested = ', "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.01234567890123456'
    pieces += [
        Piece("scale", "U8", (n,)),
        Piece("scale of scales", "F32", (count_blocks(n, 256),)),
        Piece("code book", "F32", (256,)),
    ]
    return [*pieces, Piece("description", "U8", (len(description) + len(nested),))]


def count_words(values: int, bits: int) -> int:
    """The number of words that the values fill."""
    return values * bits // WORD


def pad_words(inputs: int, group: int, bits: int) -> int:
    """The number of words for the zero points of a row in AWQ's GEMV layout.

    >>> pad_words(4096, 128, 4), pad_words(11008, 64, 4)
    (4, 22)
    """
    group = group or inputs or 1
    words_per_read = {64: 2, 32: 4}.get(group, 1)
    return count_blocks(count_blocks(inputs // group, WORD // bits), words_per_read) * words_per_read


def _trim_scales_shape(shape: tuple[int, ...], block: tuple[int, int], axes: int) -> tuple[int, ...]:
    """The shape of a matrix's scales; axes of size 1 may be omitted."""
    scales = compute_scales_shape(shape, (block[0] or shape[-2] or 1, block[1] or shape[-1] or 1))
    if 0 not in block:
        return scales
    while len(scales) > axes and scales[-1] == 1:
        scales = scales[:-1]
    while len(scales) > axes and scales[0] == 1:
        scales = scales[1:]
    return scales


def compute_bytes(shape: tuple[int, ...], packing: Packing) -> int:
    """Bytes of a packed tensor, scales and other stored tensors included.

    >>> compute_bytes((11008, 4096), Packing("plain", "BF16"))
    90177536
    >>> compute_bytes((11008, 4096), Packing("gptq", "I32", 4, (1, 128), "F16", indexed=True))
    23441408
    """
    if packing.layout == "ggml":
        block = BLOCKS[packing.dtype]
        return count_blocks(prod(shape), block.values) * block.size
    return sum(count_blocks(prod(piece.shape) * BITS[piece.dtype], 8) for piece in list_pieces(shape, packing))
