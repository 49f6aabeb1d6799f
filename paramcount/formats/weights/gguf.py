"""GGUF: the block types of llama.cpp, and the mixes of them that llama-quantize writes.

Source: github ggml-org/llama.cpp, ggml/include/ggml.h and ggml/src/ggml-common.h; for the mixes commit 0c1e57098,
src/llama-quant.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType
from typing import NamedTuple

from paramcount.formats.packing import Packing, Pieces, Shape, StoredPiece, WeightFormat, count_blocks
from paramcount.formats.quantization_config import Plan, WeightDtype


class GgufBlock(NamedTuple):
    """A quantisation block."""

    values: int
    size: int  # bytes
    number: int  # of the type in files


# The block of each tensor type. Blocks are packed along the innermost axis.
BLOCKS = {name: GgufBlock(*block) for name, block in {
    "F32": (1, 4, 0), "F16": (1, 2, 1), "BF16": (1, 2, 30), "F64": (1, 8, 28),
    "I8": (1, 1, 24), "I16": (1, 2, 25), "I32": (1, 4, 26), "I64": (1, 8, 27),
    "Q4_0": (32, 18, 2), "Q4_1": (32, 20, 3), "Q5_0": (32, 22, 6), "Q5_1": (32, 24, 7),
    "Q8_0": (32, 34, 8), "Q8_1": (32, 36, 9),
    "Q2_K": (256, 84, 10), "Q3_K": (256, 110, 11), "Q4_K": (256, 144, 12), "Q5_K": (256, 176, 13),
    "Q6_K": (256, 210, 14), "Q8_K": (256, 292, 15),
    "IQ1_S": (256, 50, 19), "IQ1_M": (256, 56, 29), "IQ2_XXS": (256, 66, 16),
    "IQ2_XS": (256, 74, 17), "IQ2_S": (256, 82, 22), "IQ3_XXS": (256, 98, 18),
    "IQ3_S": (256, 110, 21), "IQ4_NL": (32, 18, 20), "IQ4_XS": (256, 136, 23),
    "TQ1_0": (256, 54, 34), "TQ2_0": (256, 66, 35), "MXFP4": (32, 17, 39),
    "NVFP4": (64, 36, 40), "Q1_0": (128, 18, 41), "Q2_0": (64, 18, 42),
}.items()}  # fmt: skip
TYPES = {block.number: name for name, block in BLOCKS.items()}
IMATRIX = "-IMATRIX"  # ends the name of a mix
# {mix of llama.cpp: the type of a tensor that no rule names}
MIXES: Mapping[str, str] = {
    "Q4_0": "Q4_0", "Q4_1": "Q4_1", "Q5_0": "Q5_0", "Q5_1": "Q5_1", "Q8_0": "Q8_0", "Q2_K": "Q2_K", "Q2_K_S": "Q2_K",
    "Q3_K_S": "Q3_K", "Q3_K_M": "Q3_K", "Q3_K_L": "Q3_K", "Q4_K_S": "Q4_K", "Q4_K_M": "Q4_K", "Q5_K_S": "Q5_K",
    "Q5_K_M": "Q5_K", "Q6_K": "Q6_K", "IQ1_S": "IQ1_S", "IQ1_M": "IQ1_M", "IQ2_XXS": "IQ2_XXS", "IQ2_XS": "IQ2_XS",
    "IQ2_S": "IQ2_XS", "IQ2_M": "IQ2_S", "IQ3_XXS": "IQ3_XXS", "IQ3_XS": "IQ3_S", "IQ3_S": "IQ3_S", "IQ3_M": "IQ3_S",
    "IQ4_NL": "IQ4_NL", "IQ4_XS": "IQ4_XS", "TQ1_0": "TQ1_0", "TQ2_0": "TQ2_0", "MXFP4_MOE": "MXFP4",
}  # fmt: skip
MIX_ALIASES = {"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M"}
# {mix that packs experts alone: the type of all other matrices}
EXPERT_MIXES = {"MXFP4_MOE": "Q8_0"}


class Gguf(WeightFormat):
    """Blocks along the innermost axis; a file states the type of each tensor."""

    name = "GGUF"
    methods = ("gguf",)
    has_own_files = True
    dtypes = MappingProxyType({name.lower(): (name, {}) for name in (*MIXES, *MIX_ALIASES)})

    def list_pieces(self, shape: Shape, packing: Packing) -> Pieces:
        return (StoredPiece("values", packing.dtype, shape),)

    def count_bytes(self, shape: Shape, packing: Packing) -> int:
        block = BLOCKS[packing.dtype]
        return count_blocks(prod(shape), block.values) * block.size

    def find_dtype(self, name: str) -> WeightDtype | None:
        mix = name.upper().removesuffix(IMATRIX)
        if (mix := MIX_ALIASES.get(mix, mix)) not in MIXES:
            return None
        imatrix = name.upper().endswith(IMATRIX)
        label = f"{mix} (imatrix)" if imatrix else mix
        return WeightDtype(name, label, Plan("", mix, (), "F16"), mix=mix, imatrix=imatrix)


FORMAT = Gguf()
