"""Schemes of quantisation that are not read: refused by name, told by their configuration or their tensors.

Sources: transformers 5.23, quantizers/auto.py (the methods), integrations/*.py and quantizers/*.py (the tensors of each); for exl2 and exl3
github turboderp-org/exllamav2 and exllamav3, for QuIP# Cornell-RelaxML/quip-sharp, for MLX ml-explore/mlx, python/mlx/nn/layers/quantized.py,
for Marlin and QQQ ModelCloud/GPTQModel, gptqmodel/nn_modules/qlinear.
"""

from __future__ import annotations

from collections.abc import Mapping

from paramcount.checkpoints.checkpoint import FileTensor
from paramcount.counting.quantisation.configs import make_unsupported_error
from paramcount.formats.tensor_entries import name_tensor

UNKNOWN = (None,)  # names alone are known
INTEGERS = ("I8", "U8", "I16", "I32", "U32")

# Tensors by which a scheme is known: the ends of their names behind a common stem, each with the types that it may have there.
MARKS: tuple[tuple[str, tuple[tuple[str, tuple[str | None, ...]], ...]], ...] = (
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
    ("integers with scales (compressed-tensors, Quark or BitNet)", (("weight_scale", ("F16", "BF16", "F32")), ("weight", ("I8", "U8")))),
)  # fmt: skip
MARKED = {mark[1][0][0]: [rule for rule in MARKS if rule[1][0][0] == mark[1][0][0]] for mark in MARKS}


def refuse_foreign(tensors: Mapping[str, FileTensor]) -> None:
    """Nothing where no tensor is of a scheme that is not read.

    Raises: ParamcountError that names the scheme and one of its tensors.
    """
    for name in tensors:
        stem, dot, last = name.rpartition(".")
        for scheme, ends in MARKED.get(last, ()):
            if all(_is_there(tensors, f"{stem}{dot}{end}", dtypes) for end, dtypes in ends):
                raise make_unsupported_error(scheme).add_location(name_tensor(name))


def _is_there(tensors: Mapping[str, FileTensor], name: str, dtypes: tuple[str | None, ...]) -> bool:
    held = tensors.get(name)
    return held is not None and (not dtypes or held.dtype in dtypes)
