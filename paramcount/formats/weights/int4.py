"""Integers in 32-bit words as compressed-tensors packs them: INT4, or INT8 in words.

Source: compressed-tensors 0.20, compressors/pack_quantized.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import MappingProxyType
from typing import TYPE_CHECKING

from paramcount.formats.packing import INPUTS, OUTPUTS, WORD, Axis, Packing, Stored, StoredPiece, WeightFormat
from paramcount.formats.quantization_config import WeightDtype, make_linear_dtype

if TYPE_CHECKING:
    from paramcount.formats.compressed_tensors import CompressedGroup

NAME = re.compile(r"int4(?:-4bit)?(?:-g([1-9][0-9]{0,5}))?")
DEFAULT_GROUP = 128  # inputs per scale
SHAPE = StoredPiece("description", "I64", (2,))


class Int4(WeightFormat):
    name = "INT4"
    dtypes = MappingProxyType({"int4": ("INT4", {})})

    def lay_out(self, packing: Packing) -> Iterable[Stored]:
        per_word = WORD // packing.bits
        scales = (Axis(OUTPUTS, packing.block[0]), Axis(INPUTS, packing.block[1]))
        yield Stored("packed weights", packing.dtype, (Axis(OUTPUTS), Axis(INPUTS, per_word)))
        yield Stored("scale", packing.scale, scales, packing.axes if 0 in packing.block else None)
        if "zero point" in packing.extras:
            yield Stored("zero point", packing.dtype, (Axis(OUTPUTS, per_word), Axis(INPUTS, packing.block[1])))
        if "group index" in packing.extras:
            yield Stored("group index", "I32", (Axis(INPUTS),))

    def read_compressed(self, group: CompressedGroup, dtype: str) -> tuple[str, Packing] | None:
        if group.form != "pack-quantized" or group.kind != "int" or group.bits not in (4, 8):
            return None
        others = (SHAPE, *group.packing.others)
        return f"INT{group.bits}", group.packing._replace(layout="int4", dtype="I32", bits=group.bits, others=others)

    def find_dtype(self, name: str) -> WeightDtype | None:
        match = NAME.fullmatch(name)
        if match is None:
            return None
        size = int(match[1] or DEFAULT_GROUP)
        packing = Packing("int4", "I32", 4, (1, size), "BF16", others=(SHAPE,))
        return make_linear_dtype(name, f"INT4 (group {size})", packing)


FORMAT = Int4()
