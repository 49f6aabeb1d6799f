"""NVFP4: values of four bits (E2M1), two per byte, a scale of eight (E4M3) per 16 inputs, and a float for the tensor.

A value is E2M1 × scale × `weight_scale_2` in files of ModelOpt, and E2M1 × scale ÷ `weight_global_scale` in those of
compressed-tensors.

Sources: compressed-tensors 0.20, compressors/nvfp4 and entrypoints/convert/converters/modelopt_nvfp4.py; github
NVIDIA/TensorRT-Model-Optimizer, modelopt/torch/quantization/qtensor/nvfp4_tensor.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from paramcount.errors import format_shape
from paramcount.formats.compressed_tensors import CompressedGroup
from paramcount.formats.packing import (
    INPUTS,
    OUTPUTS,
    UNSHAPED,
    Array,
    Axis,
    Companion,
    Key,
    Packing,
    Pattern,
    PieceFit,
    Pieces,
    Stored,
    StoredPiece,
    WeightFormat,
    list_unshaped,
    spread,
)
from paramcount.formats.quantization_config import Stated, list_weights
from paramcount.formats.small_floats import widen_float4

GROUP = 16
SCALE = Companion("weight_scale", "scale", ("F8_E4M3",), "used")
INPUT_SCALE = "activation scale"
CACHE = tuple(Companion(ending, INPUT_SCALE) for ending in ("k_scale", "v_scale"))
TENSOR_SCALE = StoredPiece("tensor scale", "F32", (1,))
SCALES_OF_TENSORS = (TENSOR_SCALE, TENSOR_SCALE._replace(what=INPUT_SCALE))
PACKED = Packing("nvfp4 packed", "U8", 4, (1, GROUP), "F8_E4M3", others=SCALES_OF_TENSORS)


class Nvfp4(WeightFormat):
    name = "NVFP4"
    dtypes = MappingProxyType({"nvfp4": ("NVFP4", PACKED)})
    rate = "fp4"
    modelopt = MappingProxyType(
        {
            "NVFP4": PACKED._replace(layout="nvfp4"),
            "W4A16_NVFP4": PACKED._replace(layout="nvfp4", others=(TENSOR_SCALE,)),
        }
    )
    patterns = (
        Pattern(
            "nvfp4", "weight", ("U8",),
            (
                SCALE, Companion("weight_scale_2", "tensor scale", ("F32",), "always"),
                Companion("input_scale", INPUT_SCALE, ("F32",)), *CACHE,
            ),
            "weight", family="nvfp4",
        ),
        Pattern(
            "nvfp4 packed", "weight_packed", ("U8",),
            (
                SCALE, Companion("weight_global_scale", "tensor scale", ("F32",), "always"),
                Companion("input_global_scale", INPUT_SCALE, ("F32",)), *CACHE,
            ),
            "weight", family="nvfp4",
        ),
    )  # fmt: skip

    def lay_out(self, packing: Packing) -> Iterable[Stored]:
        yield Stored("packed weights", packing.dtype, (Axis(OUTPUTS), Axis(INPUTS, 2)))
        yield Stored("scale", packing.scale, (Axis(OUTPUTS), Axis(INPUTS, GROUP)))

    def get_label(self, packing: Packing) -> str:
        return self.name

    # ---- what a config states

    def read(self, method: str, config: Mapping[str, Any]) -> Stated | None:
        weights = list_weights(config) if method == "compressed-tensors" else []
        if weights and all(is_nvfp4(*map(block.get, ("type", "num_bits", "group_size"))) for block in weights):
            return Stated("nvfp4", "NVFP4 by compressed-tensors")
        if method.startswith("modelopt") and config.get("quant_algo") == "NVFP4":
            return Stated("nvfp4", "NVFP4 by ModelOpt")
        return None

    def read_compressed(self, group: CompressedGroup, dtype: str) -> tuple[str, Packing] | None:
        if group.form != "nvfp4-pack-quantized" or not is_nvfp4(group.kind, group.bits, group.size):
            return None
        others = SCALES_OF_TENSORS if group.has_inputs else (TENSOR_SCALE,)
        return self.name, PACKED._replace(block=group.packing.block, others=others)

    # ---- files

    def guess_packing(self, layout: str, pieces: Pieces) -> Packing:
        return Packing(layout, pieces[0].dtype, 4, (1, GROUP), pieces[1].dtype, others=list_unshaped(pieces))

    def fit(self, counts: Mapping[Key, int], stated: Stated) -> Mapping[Key, PieceFit]:
        """Scales of tensors have one value. If most matrices have one of their inputs, all do."""
        n_scaled = sum(n for key, n in counts.items() if has_input_scale(key[2]))
        needs_input_scale = 2 * n_scaled > sum(counts.values())
        fits = super().fit(counts, stated)
        return {
            key: fit._replace(faults=(*fit.faults, *find_wrong_scales(key[2], needs_input_scale)))
            for key, fit in fits.items()
        }

    # ---- values

    def widen(self, packing: Packing, bits: Array, parts: Mapping[str, Array]) -> Array:
        scales, whole = parts["scale"], parts["tensor scale"].reshape(-1)
        values = widen_float4(bits)
        values *= spread(
            scales / whole if packing.layout == "nvfp4 packed" else scales * whole, (1, GROUP), values.shape
        )
        return values


def is_nvfp4(kind: object, bits: object, size: object) -> bool:
    return (kind, bits, size) == ("float", 4, GROUP)


def has_input_scale(pieces: Pieces) -> bool:
    return any(piece.what == INPUT_SCALE for piece in pieces)


def find_wrong_scales(pieces: Pieces, needs_input_scale: bool) -> list[tuple[int, str]]:
    """Scales of the tensor and of its inputs that are missing or have several values."""
    faults = [
        (i, f"shape {format_shape(piece.shape)}, expected [] or [1]")
        for i, piece in enumerate(pieces)
        if piece.what in UNSHAPED and piece.shape not in ((), (1,))
    ]
    if all(piece.what != TENSOR_SCALE.what for piece in pieces):
        faults.append((0, "the scale of the tensor is missing"))
    if needs_input_scale and not has_input_scale(pieces):
        faults.append((0, "the scale of the inputs is missing"))
    return faults


FORMAT = Nvfp4()
