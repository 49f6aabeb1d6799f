"""Weights that are not quantised: F32, BF16 and F16."""

from __future__ import annotations

from math import prod
from types import MappingProxyType

from paramcount.formats.packing import Packing, Pieces, Shape, StoredPiece, WeightFormat, count_blocks
from paramcount.formats.quantization_config import Plan, WeightDtype
from paramcount.formats.tensor_entries import BITS

DTYPES = {
    "f32": "F32", "fp32": "F32", "float32": "F32", "bf16": "BF16", "bfloat16": "BF16",
    "f16": "F16", "fp16": "F16", "float16": "F16",
}  # fmt: skip
LABELS = {"F32": "FP32", "BF16": "BF16", "F16": "FP16"}


class Plain(WeightFormat):
    """One tensor, as the model has it. Its values are read without a format."""

    dtypes = MappingProxyType({name: (LABELS[dtype], {}) for name, dtype in DTYPES.items()})

    def list_pieces(self, shape: Shape, packing: Packing) -> Pieces:
        return (StoredPiece("values", packing.dtype, shape),)

    def count_bytes(self, shape: Shape, packing: Packing) -> int:
        return count_blocks(prod(shape) * BITS[packing.dtype], 8)

    def find_dtype(self, name: str) -> WeightDtype | None:
        if name not in DTYPES:
            return None
        return WeightDtype(name, self.dtypes[name][0], Plan("", DTYPES[name], (), DTYPES[name]))


FORMAT = Plain()
