"""Unsupported quantisation schemes, recognised by their tensors.

Sources: transformers 5.23, quantizers/auto.py (the methods), integrations/*.py and quantizers/*.py (the tensors of
each); for exl2 and exl3 github turboderp-org/exllamav2 and exllamav3, for QuIP# Cornell-RelaxML/quip-sharp, for MLX
ml-explore/mlx, python/mlx/nn/layers/quantized.py, for Marlin and QQQ ModelCloud/GPTQModel,
gptqmodel/nn_modules/qlinear.
"""

from __future__ import annotations

from collections.abc import Mapping

from paramcount.checkpoints.checkpoint import FileTensor
from paramcount.counting.quantisation.configs import make_unsupported_error
from paramcount.formats.tensor_entries import name_tensor

UNKNOWN = (None,)  # the type in an index, which has names only
INTEGERS = ("I8", "U8", "I16", "I32", "U32")

# Tensors that identify a scheme: endings of their names after a common stem, each with its possible types (() for any).
SIGNATURES: tuple[tuple[str, tuple[tuple[str, tuple[str | None, ...]], ...]], ...] = (
    ("bitsandbytes", (("absmax", ()), ("quant_map", ()))),
    ("bitsandbytes", (("SCB", ()), ("weight", ()))),
    ("NVFP4", (("weight_scale_2", ()), ("weight", ()))),
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
BY_FIRST_ENDING = {
    first[1][0][0]: [signature for signature in SIGNATURES if signature[1][0][0] == first[1][0][0]]
    for first in SIGNATURES
}


def reject_unsupported(tensors: Mapping[str, FileTensor]) -> None:
    """Do nothing unless a tensor belongs to an unsupported scheme.

    Raises: ParamcountError that names the scheme and one of its tensors.
    """
    for name in tensors:
        stem, dot, last = name.rpartition(".")
        for scheme, endings in BY_FIRST_ENDING.get(last, ()):
            if all(_has_tensor(tensors, f"{stem}{dot}{ending}", dtypes) for ending, dtypes in endings):
                raise make_unsupported_error(scheme).add_location(name_tensor(name))


def _has_tensor(tensors: Mapping[str, FileTensor], name: str, dtypes: tuple[str | None, ...]) -> bool:
    tensor = tensors.get(name)
    return tensor is not None and (not dtypes or tensor.dtype in dtypes)
