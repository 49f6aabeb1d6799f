"""The types of tensors in files and their sizes: plain ones of safetensors, blocks of GGUF."""

from __future__ import annotations

from typing import NamedTuple

# Bits per value in safetensors.
BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
    "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32,
    "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip


class Block(NamedTuple):
    """A quantisation block."""

    values: int
    size: int  # bytes
    number: int  # of the type in files


# The block of each tensor type. Blocks are packed along the innermost axis.
BLOCKS = {
    "F32": Block(1, 4, 0), "F16": Block(1, 2, 1), "BF16": Block(1, 2, 30), "F64": Block(1, 8, 28),
    "I8": Block(1, 1, 24), "I16": Block(1, 2, 25), "I32": Block(1, 4, 26), "I64": Block(1, 8, 27),
    "Q4_0": Block(32, 18, 2), "Q4_1": Block(32, 20, 3), "Q5_0": Block(32, 22, 6), "Q5_1": Block(32, 24, 7),
    "Q8_0": Block(32, 34, 8), "Q8_1": Block(32, 36, 9),
    "Q2_K": Block(256, 84, 10), "Q3_K": Block(256, 110, 11), "Q4_K": Block(256, 144, 12), "Q5_K": Block(256, 176, 13),
    "Q6_K": Block(256, 210, 14), "Q8_K": Block(256, 292, 15),
    "IQ1_S": Block(256, 50, 19), "IQ1_M": Block(256, 56, 29), "IQ2_XXS": Block(256, 66, 16),
    "IQ2_XS": Block(256, 74, 17), "IQ2_S": Block(256, 82, 22), "IQ3_XXS": Block(256, 98, 18),
    "IQ3_S": Block(256, 110, 21), "IQ4_NL": Block(32, 18, 20), "IQ4_XS": Block(256, 136, 23),
    "TQ1_0": Block(256, 54, 34), "TQ2_0": Block(256, 66, 35), "MXFP4": Block(32, 17, 39),
    "NVFP4": Block(64, 36, 40), "Q1_0": Block(128, 18, 41), "Q2_0": Block(64, 18, 42),
}  # fmt: skip
TYPES = {block.number: name for name, block in BLOCKS.items()}
