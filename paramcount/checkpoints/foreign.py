"""How a configuration says that a checkpoint is quantised, and the schemes that are not read: refused by name, told by their configuration or tensors.

Sources: transformers 5.23, quantizers/auto.py (the methods), integrations/*.py and quantizers/*.py (the tensors of each); for exl2 and exl3
github turboderp-org/exllamav2 and exllamav3, for QuIP# Cornell-RelaxML/quip-sharp, for MLX ml-explore/mlx, python/mlx/nn/layers/quantized.py,
for Marlin and QQQ ModelCloud/GPTQModel, gptqmodel/nn_modules/qlinear.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from paramcount.checkpoints.held import Checkpoint, Held
from paramcount.errors import ParamcountError, quoted
from paramcount.headers import of_tensor
from paramcount.scales import LARGEST_BLOCK, block_of

READ = "GPTQ, AWQ, FP8, MXFP4, GGUF, or not quantised"
NAMES = {
    "bitsandbytes": "bitsandbytes", "aqlm": "AQLM", "vptq": "VPTQ", "quanto": "quanto", "eetq": "EETQ", "higgs": "HIGGS", "hqq": "HQQ",
    "compressed-tensors": "compressed-tensors", "torchao": "torchao", "bitnet": "BitNet", "spqr": "SpQR", "quark": "Quark", "fp_quant": "FP-Quant",
    "auto-round": "AutoRound", "nvfp4": "NVFP4", "metal": "MLX", "fouroversix": "Four Over Six", "sinq": "SINQ", "gemma": "Gemma's own",
    "modelopt": "ModelOpt", "exl2": "EXL2", "exl3": "EXL3", "quip": "QuIP#",
}  # fmt: skip
AWQ_LAYOUTS = {"gemm": "awq", "gemv": "awq gemv", "gemv_fast": "awq fast", "llm-awq": "awq fast"}
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
    ("whole numbers with scales (compressed-tensors, Quark or BitNet)", (("weight_scale", ("F16", "BF16", "F32")), ("weight", ("I8", "U8")))),
)  # fmt: skip
MARKED = {mark[1][0][0]: [rule for rule in MARKS if rule[1][0][0] == mark[1][0][0]] for mark in MARKS}


class Said(NamedTuple):
    """What a configuration says of how weights are packed; None where it says nothing."""

    method: str | None = None  # words | fp8 | mxfp4
    name: str = ""  # of the method, for people
    layout: str | None = None  # gptq | awq …
    bits: int | None = None
    group: int | None = None  # inputs that share a scale; 0 where all of them do
    block: tuple[int, int] | None = None
    various: bool = False  # some modules are packed otherwise


def said_of(checkpoint: Checkpoint) -> Said:
    """What the configuration beside a checkpoint says.

    Raises: ParamcountError where it names a scheme that is not read.
    """
    config = checkpoint.quantization_config
    if config is None or checkpoint.format == "gguf":
        return Said()
    return read(config)


def read(config: Mapping[str, Any]) -> Said:
    """What `quantization_config` of a config.json says.

    >>> read({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True})
    Said(method='words', name='GPTQ', layout='gptq', bits=4, group=128, block=None, various=False)
    """
    if config.get("load_in_4bit") is True or config.get("load_in_8bit") is True:
        raise refused("bitsandbytes")
    method = config.get("quant_method")
    if method is None:
        return Said()
    word = method.lower() if isinstance(method, str) else ""
    match word:
        case "gptq" | "awq":
            return _words(word, config)
        case "auto-round" if any(name in str(config.get("packing_format")) for name in ("gptq", "awq")):
            return _words("gptq" if "gptq" in str(config["packing_format"]) else "awq", config)._replace(various=True)
        case "fp8" | "fbgemm_fp8":
            return Said("fp8", "FP8", block=block_of(config.get("weight_block_size")))
        case "mxfp8":
            return Said("fp8", "MXFP8", block=block_of(config.get("weight_block_size")) or (1, 32))
        case "mxfp4":
            return Said("mxfp4", "MXFP4")
        case "compressed-tensors" if _eight_bit_floats(config):
            return Said("fp8", "FP8 by compressed-tensors", various=True)
        case "modelopt" if config.get("quant_algo") == "FP8":
            return Said("fp8", "FP8 by ModelOpt")
    raise refused(NAMES.get(word) or next((name for start, name in NAMES.items() if word.startswith(start)), quoted(str(method))))


def refused(name: str) -> ParamcountError:
    return ParamcountError(f"is quantised by a scheme that is not read: {name}", accepted=READ)


def _words(method: str, config: Mapping[str, Any]) -> Said:
    bits, group = (config.get(key, config.get(other)) for key, other in (("bits", "w_bit"), ("group_size", "q_group_size")))
    form = config.get("checkpoint_format") or config.get("format") or config.get("version")
    written = form.lower() if isinstance(form, str) else None
    layout: str | None = "gptq" if method == "gptq" else "awq"
    if config.get("is_marlin_format") is True or written in ("marlin", "bitblas", "qqq"):
        raise refused(f"{method.upper()} in the layout of {'Marlin' if written is None else quoted(written)}")
    if method == "awq" and written is not None:
        layout = AWQ_LAYOUTS.get(written)
    return Said(
        "words",
        method.upper(),
        layout,
        bits if type(bits) is int and 1 <= bits <= 8 else None,
        None if type(group) is not int or group > LARGEST_BLOCK else max(group, 0),
        various=bool(config.get("dynamic")),
    )


def _eight_bit_floats(config: Mapping[str, Any]) -> bool:
    """Whether compressed-tensors holds weights of FP8 and nothing else."""
    groups = config.get("config_groups")
    weights = [group.get("weights") if isinstance(group, dict) else None for group in groups.values()] if isinstance(groups, dict) else []
    return bool(weights) and all(isinstance(w, dict) and w.get("type") == "float" and w.get("num_bits") == 8 for w in weights)


def refuse_foreign(tensors: Mapping[str, Held]) -> None:
    """Nothing where no tensor is of a scheme that is not read.

    Raises: ParamcountError that names the scheme and one of its tensors.
    """
    for name in tensors:
        stem, dot, last = name.rpartition(".")
        for scheme, ends in MARKED.get(last, ()):
            if all(_is_there(tensors, f"{stem}{dot}{end}", dtypes) for end, dtypes in ends):
                error = refused(scheme)
                raise ParamcountError(error.found, where=of_tensor(name), accepted=READ)


def _is_there(tensors: Mapping[str, Held], name: str, dtypes: tuple[str | None, ...]) -> bool:
    held = tensors.get(name)
    if held is None:
        return False
    return not dtypes or held.dtype in dtypes
