"""INT8: integers of eight bits with a scale per output or tensor, as compressed-tensors stores them.

Source: compressed-tensors 0.20, compressors/naive_quantized.
"""

from __future__ import annotations

from paramcount.formats.packing import Packing, ScaledFormat
from paramcount.formats.quantization_config import CompressedGroup, PackedGroup, Plan, WeightDtype, select_linear


class Int8(ScaledFormat):
    name = "INT8"
    dtypes = ("int8",)

    def read_compressed(self, group: CompressedGroup, dtype: str) -> tuple[str, Packing] | None:
        if group.form not in ("int-quantized", "float-quantized", "naive-quantized"):
            return None
        if (group.kind, group.bits) != ("int", 8):
            return None
        return self.name, group.packing._replace(layout="int8", dtype="I8", bits=8)

    def find_dtype(self, name: str) -> WeightDtype | None:
        if name != "int8":
            return None
        group = PackedGroup(select_linear(), Packing("int8", "I8", 8, (1, 0), "BF16"))
        return WeightDtype(name, "INT8 (per row)", Plan("", self.name, (group,), "BF16", scope="linear"))


FORMAT = Int8()
