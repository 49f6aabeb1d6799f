"""MXFP4: values of four bits (E2M1) with a scale of eight (E8M0) per 32 inputs.

gpt-oss stores its experts as blocks of 16 bytes, [experts, outputs, blocks, 16] for a tensor [experts, inputs,
outputs]; DeepSeek-V4 stores each matrix of its experts as pairs of values, [outputs, inputs / 2].

Sources: OCP Microscaling Formats 1.0, section 5; gpt-oss, arXiv:2508.10925, section 2.1; transformers 5.23,
integrations/mxfp4.py (_convert_moe_packed_tensors) and finegrained_fp8.py (_alloc_expert_proj);
compressed-tensors 0.20, compressors/mxfp4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from paramcount.formats.compressed_tensors import CompressedGroup
from paramcount.formats.packing import (
    INPUTS,
    OUTPUTS,
    Array,
    Axis,
    Companion,
    Packing,
    Pattern,
    Pieces,
    Stored,
    WeightFormat,
    list_unshaped,
)
from paramcount.formats.quantization_config import (
    PackedGroup,
    Plan,
    Selection,
    Stated,
    WeightDtype,
    list_weights,
    read_excluded,
)
from paramcount.formats.small_floats import widen_float4
from paramcount.formats.weights.fp8 import list_patterns

GROUP = 32
BYTES = GROUP // 2  # of a block
BYTES_OF_SCALES = ("U8", "F8_E8M0")
STACKED = PackedGroup(Selection(experts="stacked"), Packing("mxfp4", "U8", 4, (1, GROUP), "U8"))


class Mxfp4(WeightFormat):
    name = "MXFP4"
    methods = ("mxfp4",)
    dtypes = MappingProxyType({"mxfp4": ("MXFP4", {})})
    released = MappingProxyType({})
    is_padded = True
    gguf_mix = "MXFP4_MOE"
    unfit = f"does not contain blocks of {BYTES} bytes"
    patterns = (
        *(
            Pattern(
                "mxfp4", f"{dot}blocks", ("U8",), (Companion(f"{dot}scales", "scale", ("U8",), "used"),),
                transposed=dot == "_", family="mxfp4",
            )
            for dot in "_."
        ),
        *list_patterns("mxfp4 pairs", ("I8", "U8", "F4"), BYTES_OF_SCALES),
        Pattern(
            "mxfp4 pairs", "weight_packed", ("U8",), (Companion("weight_scale", "scale", BYTES_OF_SCALES),),
            "weight", family="mxfp4",
        ),
    )  # fmt: skip

    def lay_out(self, packing: Packing) -> Iterable[Stored]:
        scales = (Axis(OUTPUTS), Axis(INPUTS, GROUP))
        if packing.layout == "mxfp4":
            yield Stored("packed weights", packing.dtype, (*scales, BYTES))
        else:  # F4 shapes count values, byte shapes count pairs
            columns = Axis(INPUTS) if packing.dtype == "F4" else Axis(INPUTS, 2)
            yield Stored("packed weights", packing.dtype, (Axis(OUTPUTS), columns))
        yield Stored("scale", packing.scale, scales)

    def get_label(self, packing: Packing) -> str:
        return "FP4" if packing.layout == "mxfp4 pairs" else self.name

    get_short_name = get_label

    def describe(self, packings: Sequence[Packing]) -> list[str]:
        texts = {"FP4": f"FP4 in groups of {GROUP}", self.name: self.name}
        return [texts[label] for label in sorted(set(map(self.get_label, packings)))]

    # ---- what a config states

    def read(self, method: str, config: Mapping[str, Any]) -> Stated | None:
        if method == "mxfp4":
            return Stated("mxfp4", self.name)
        weights = list_weights(config) if method == "compressed-tensors" else []
        if weights and all(is_mxfp4(*map(block.get, ("type", "num_bits", "group_size"))) for block in weights):
            return Stated("mxfp4", "MXFP4 by compressed-tensors", various=True)
        return None

    def read_compressed(self, group: CompressedGroup, dtype: str) -> tuple[str, Packing] | None:
        is_own = group.form == "mxfp4-pack-quantized" and is_mxfp4(group.kind, group.bits, group.size)
        return (self.name, make_pairs("U8", "U8")) if is_own and not group.packing.others else None

    def plan(self, stated: Stated, config: Mapping[str, Any], dtype: str) -> Plan | None:
        group = STACKED._replace(selection=STACKED.selection._replace(excluded=read_excluded(config)))
        return Plan("mxfp4", self.name, (group,), dtype, scope="stacks")

    def pack_experts(self, dtype: str, scale: str) -> Packing | None:
        return make_pairs("I8", scale) if dtype == "fp4" else None

    def read_scales(self, method: str, config: Mapping[str, Any]) -> PackedGroup | None:
        return STACKED if method == "mxfp4" else None

    def find_dtype(self, name: str) -> WeightDtype | None:
        if name != "mxfp4":
            return None
        group = PackedGroup(Selection(), make_pairs("U8", "F8_E8M0"))
        plan = Plan("", self.name, (group,), "BF16", scope="stacks")
        return WeightDtype(name, self.name, plan, only=("experts",))

    def guess(self, names: tuple[str, ...], stated: Stated, scale: str) -> Packing | None:
        return STACKED.packing if names[0].endswith("blocks") else None

    def guess_packing(self, layout: str, pieces: Pieces) -> Packing:
        return Packing(layout, pieces[0].dtype, 4, (1, GROUP), pieces[1].dtype, others=list_unshaped(pieces))

    # ---- values

    def widen(self, packing: Packing, bits: Array, parts: Mapping[str, Array]) -> Array:
        """Two values per byte, the lower half first, times their scale.

        >>> import numpy as np
        >>> parts = {"scale": np.array([[2.0]], np.float32)}
        >>> FORMAT.widen(STACKED.packing, np.full((1, 1, 16), 0xA1, np.uint8), parts)[0, :4].tolist()
        [1.0, -2.0, 1.0, -2.0]
        """
        scales = parts["scale"]
        values = widen_float4(bits).reshape(*scales.shape, -1)
        values *= scales[..., None]
        return values.reshape(*scales.shape[:-1], -1)


def is_mxfp4(kind: object, bits: object, size: object) -> bool:
    return (kind, bits, size) == ("float", 4, GROUP)


def make_pairs(dtype: str, scale: str) -> Packing:
    """Two values in each byte of a matrix [outputs, inputs / 2]."""
    return Packing("mxfp4 pairs", dtype, 4, (1, GROUP), scale)


FORMAT = Mxfp4()
