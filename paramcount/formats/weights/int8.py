"""INT8: integers of eight bits with a scale per output or tensor, as compressed-tensors stores them.

Source: compressed-tensors 0.20, compressors/naive_quantized.
"""

from __future__ import annotations

from types import MappingProxyType

from paramcount.formats.packing import Packing, ScaledFormat


class Int8(ScaledFormat):
    name = "INT8"
    dtypes = MappingProxyType({"int8": ("INT8 (per row)", Packing("int8", "I8", 8, (1, 0), "BF16"))})
    compressed = (("int-quantized", "float-quantized", "naive-quantized"), "int", (8,), "I8")


FORMAT = Int8()
