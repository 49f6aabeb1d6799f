"""Schemes that paramcount knows by name only, so that an error can say which one it is.

Sources: transformers 5.23, quantizers/auto.py (the methods), integrations/*.py and quantizers/*.py (the tensors of
each); for exl2 and exl3 github turboderp-org/exllamav2 and exllamav3, for QuIP# Cornell-RelaxML/quip-sharp, for MLX
ml-explore/mlx, python/mlx/nn/layers/quantized.py, for Marlin and QQQ ModelCloud/GPTQModel,
gptqmodel/nn_modules/qlinear.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcount.formats.packing import WeightFormat
from paramcount.formats.quantization_config import Stated

UNKNOWN = (None,)  # the type in an index, which has names only
INTEGERS = ("I8", "U8", "I16", "I32", "U32")
# {beginning of a quant_method: display name}
NAMES = {
    "aqlm": "AQLM", "vptq": "VPTQ", "quanto": "quanto", "eetq": "EETQ", "higgs": "HIGGS", "hqq": "HQQ",
    "compressed-tensors": "compressed-tensors", "torchao": "torchao", "bitnet": "BitNet", "spqr": "SpQR",
    "quark": "Quark", "fp_quant": "FP-Quant", "auto-round": "AutoRound", "nvfp4": "NVFP4 of transformers",
    "metal": "MLX", "fouroversix": "Four Over Six", "sinq": "SINQ", "gemma": "Gemma's own", "modelopt": "ModelOpt",
    "exl2": "EXL2", "exl3": "EXL3", "quip": "QuIP#",
}  # fmt: skip


class Others(WeightFormat):
    methods = (
        "aqlm", "quanto", "quark", "fouroversix", "fp_quant", "eetq", "higgs", "hqq", "torchao", "bitnet", "vptq",
        "spqr", "nvfp4", "auto-round", "metal", "sinq", "gemma",
    )  # fmt: skip
    signatures = (
        ("compressed-tensors", (("weight_packed", ()), ("weight_scale", ()))),
        ("AQLM", (("codebooks", ()), ("codes", ()))),
        ("HQQ or SINQ", (("W_q", ()),)),
        ("quanto", (("_data", ()), ("_scale", ()))),
        ("torchao", (("_weight_qdata", ()),)),
        ("EETQ", (("weight_scales", ()), ("weight", ("I8",)))),
        ("VPTQ", (("indices", INTEGERS), ("res_centroids.weight", ()))),
        ("VPTQ", (("indices", INTEGERS), ("centroids.weight", ()))),
        ("SpQR", (("dense_weights", ()), ("row_offsets", ()))),
        ("HIGGS", (("tables2", ()), ("scales", ()))),
        ("FP-Quant", (("forward_hadamard_matrix", ()),)),
        ("FP-Quant", (("dqweight", ()),)),
        ("EXL2", (("q_weight", ()), ("q_scale", ()))),
        ("EXL3", (("trellis", ()), ("suh", ()))),
        ("QuIP#", (("Qidxs", ()),)),
        ("MLX", (("scales", ("F16", "BF16", "F32", "U8")), ("weight", ("U32",)))),
        ("MLX", (("biases", UNKNOWN), ("scales", UNKNOWN), ("weight", UNKNOWN))),
        ("QQQ", (("s_channel", ()), ("B", ()))),
        ("GPTQ in Marlin's layout", (("s", ("F16", "BF16")), ("B", ("I32",)))),
        ("Gemma's own", (("embedding_quantized", ()),)),
        (
            "integers with scales (compressed-tensors, Quark or BitNet)",
            (("weight_scale", ("F16", "BF16", "F32")), ("weight", ("I8", "U8"))),
        ),
    )

    def read(self, method: str, config: Mapping[str, Any]) -> Stated | None:
        name = next((name for beginning, name in NAMES.items() if method.startswith(beginning)), None)
        return None if name is None else Stated(name=name)


FORMAT = Others()
