"""bitsandbytes: INT8 with a scale per output; NF4 and FP4 with a scale per 64 values, which may be quantised too.

Sources: bitsandbytes 0.50, nn/modules.py, Linear8bitLt._save_to_state_dict, and functional.py, QuantState.as_dict;
transformers 5.23, BitsAndBytesConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from paramcount.errors import ParamcountError, describe_value
from paramcount.formats.packing import Packing, Pieces, Shape, StoredPiece, WeightFormat, count_blocks
from paramcount.formats.quantization_config import DTYPES, UNQUANTISED, PackedGroup, Plan, Selection, Stated, read_names

GROUP = 64  # values per scale
NF4 = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}


class BitsAndBytes(WeightFormat):
    name = "bitsandbytes"
    methods = ("bitsandbytes",)
    dtypes = MappingProxyType(
        {
            "bnb-int8": ("bitsandbytes INT8", {"load_in_8bit": True}),
            "nf4": ("NF4", NF4),
            "nf4-double": ("NF4 (double quantisation)", {**NF4, "bnb_4bit_use_double_quant": True}),
        }
    )
    signatures = (
        ("bitsandbytes", (("absmax", ()), ("quant_map", ()))),
        ("bitsandbytes", (("SCB", ()), ("weight", ()))),
    )

    def list_pieces(self, shape: Shape, packing: Packing) -> Pieces:
        """Values, scales and a description; of four bits also the code book."""
        *before, outputs, inputs = shape
        if packing.layout == "bitsandbytes int8":
            scale = StoredPiece("scale", packing.scale, (*before, outputs))
            return (StoredPiece("values", packing.dtype, shape), scale, StoredPiece("description", "U8", ()))
        n = count_blocks(outputs * inputs, GROUP)
        kind, dtype = packing.scale.split()  # "nf4 bfloat16"
        description = (
            f'{{"quant_type": "{kind}", "blocksize": {GROUP}, "dtype": "{dtype}", "shape": [{outputs}, {inputs}]}}'
        )
        values = StoredPiece("packed weights", "U8", (count_blocks(outputs * inputs, 2), 1))
        pieces = (values, StoredPiece("code book", "F32", (16,)))
        if packing.layout == "bitsandbytes":
            return (
                *pieces,
                StoredPiece("scale", "F32", (n,)),
                StoredPiece("description", "U8", (len(description),)),
            )
        # Scales are bytes with a scale per 256, and the description has a float, so its length varies.
        description += ', "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.01234567890123456'
        return (
            *pieces,
            StoredPiece("scale", "U8", (n,)),
            StoredPiece("scale of scales", "F32", (count_blocks(n, 256),)),
            StoredPiece("code book", "F32", (256,)),
            StoredPiece("description", "U8", (len(description),)),
        )

    def read(self, method: str, config: Mapping[str, Any]) -> Stated | None:
        return Stated(self.name, self.name) if method.startswith(self.name) else None

    def plan(self, stated: Stated, config: Mapping[str, Any], dtype: str) -> Plan | None:
        eight, four = config.get("load_in_8bit"), config.get("load_in_4bit")
        if bool(eight) == bool(four):
            raise ParamcountError(
                "sets both load_in_8bit and load_in_4bit" if eight else "sets neither load_in_8bit nor load_in_4bit"
            )
        excluded = read_names(config, "llm_int8_skip_modules")
        # The reference's experts are not linear layers. A list of modules replaces the default, the LM head.
        unquantised = tuple(name for name in UNQUANTISED if name != "lm_head" or not excluded)
        selection = Selection(excluded, unquantised=(*unquantised, "experts"))
        if eight:
            packing = Packing("bitsandbytes int8", "I8", 8, (1, 0), "F32")
            text = "bitsandbytes 8-bit"
            return Plan(self.name, text, (PackedGroup(selection, packing),), dtype, scope="linear")
        kind, nested = config.get("bnb_4bit_quant_type", "fp4"), config.get("bnb_4bit_use_double_quant", False)
        if kind not in ("fp4", "nf4"):
            raise ParamcountError(f"bnb_4bit_quant_type = {describe_value(kind)}", expected="fp4 or nf4")
        torch_dtype = next(name for name, short in DTYPES.items() if short == dtype)
        layout = "bitsandbytes nested" if nested else "bitsandbytes"
        packing = Packing(layout, "U8", 4, (1, 0), f"{kind} {torch_dtype}")
        text = f"bitsandbytes {kind.upper()}{' with double quantisation' if nested else ''}"
        group = PackedGroup(selection, packing)
        return Plan(self.name, text, (group,), dtype, exact=not nested, scope="linear")


FORMAT = BitsAndBytes()
