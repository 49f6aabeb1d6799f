"""Packing of weights, from `quantization_config` in a config.json.

Source: transformers 5.23, quantizers/auto.py (the methods) and utils/quantization_config.py (their keys).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from paramcount.counting.quantisation.scales import LARGEST_BLOCK, read_block
from paramcount.errors import ParamcountError, quote

AWQ_LAYOUTS = {"gemm": "awq", "gemv": "awq gemv", "gemv_fast": "awq fast", "llm-awq": "awq fast"}
METHODS = (
    "awq", "gptq", "aqlm", "quanto", "quark", "fouroversix", "fp_quant", "eetq", "higgs", "hqq", "compressed-tensors",
    "fbgemm_fp8", "torchao", "bitnet", "vptq", "spqr", "fp8", "gguf", "nvfp4", "mxfp8", "auto-round", "mxfp4", "metal",
    "sinq", "gemma", "bitsandbytes",
)  # fmt: skip
SUPPORTED = "GPTQ, AWQ, FP8, MXFP4, GGUF, or not quantised"
NAMES = {
    "bitsandbytes": "bitsandbytes", "aqlm": "AQLM", "vptq": "VPTQ", "quanto": "quanto", "eetq": "EETQ",
    "higgs": "HIGGS", "hqq": "HQQ", "compressed-tensors": "compressed-tensors", "torchao": "torchao",
    "bitnet": "BitNet", "spqr": "SpQR", "quark": "Quark", "fp_quant": "FP-Quant", "auto-round": "AutoRound",
    "nvfp4": "NVFP4", "metal": "MLX", "fouroversix": "Four Over Six", "sinq": "SINQ", "gemma": "Gemma's own",
    "modelopt": "ModelOpt", "exl2": "EXL2", "exl3": "EXL3", "quip": "QuIP#",
}  # fmt: skip


class QuantizationScheme(NamedTuple):
    """How a `quantization_config` packs weights; fields are None if it does not say."""

    method: str | None = None  # words | fp8 | mxfp4
    name: str = ""  # display name of the method
    layout: str | None = None  # gptq | awq …
    bits: int | None = None
    group: int | None = None  # inputs per scale; 0 for all
    block: tuple[int, int] | None = None
    various: bool = False  # some modules are packed differently


def read_scheme(config: Mapping[str, Any]) -> QuantizationScheme:
    """The scheme in the `quantization_config` of a config.json.

    >>> read_scheme({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True})
    QuantizationScheme(method='words', name='GPTQ', layout='gptq', bits=4, group=128, block=None, various=False)
    """
    if config.get("load_in_4bit") is True or config.get("load_in_8bit") is True:
        raise make_unsupported_error("bitsandbytes")
    method = config.get("quant_method")
    if method is None:
        return QuantizationScheme()
    method_name = method.lower() if isinstance(method, str) else ""
    match method_name:
        case "gptq" | "awq":
            return _read_word_scheme(method_name, config)
        case "auto-round" if any(name in str(config.get("packing_format")) for name in ("gptq", "awq")):
            packing_method = "gptq" if "gptq" in str(config["packing_format"]) else "awq"
            return _read_word_scheme(packing_method, config)._replace(various=True)
        case "fp8" | "fbgemm_fp8":
            return QuantizationScheme("fp8", "FP8", block=read_block(config.get("weight_block_size")))
        case "mxfp8":
            return QuantizationScheme("fp8", "MXFP8", block=read_block(config.get("weight_block_size")) or (1, 32))
        case "mxfp4":
            return QuantizationScheme("mxfp4", "MXFP4")
        case "compressed-tensors" if _is_fp8(config):
            return QuantizationScheme("fp8", "FP8 by compressed-tensors", various=True)
        case "modelopt" if config.get("quant_algo") == "FP8":
            return QuantizationScheme("fp8", "FP8 by ModelOpt")
    beginnings = (name for beginning, name in NAMES.items() if method_name.startswith(beginning))
    raise make_unsupported_error(NAMES.get(method_name) or next(beginnings, quote(str(method))))


def _read_word_scheme(method: str, config: Mapping[str, Any]) -> QuantizationScheme:
    """The scheme of GPTQ and AWQ, which pack values into 32-bit words."""
    bits = config.get("bits", config.get("w_bit"))
    group = config.get("group_size", config.get("q_group_size"))
    form = config.get("checkpoint_format") or config.get("format") or config.get("version")
    form_name = form.lower() if isinstance(form, str) else None
    layout: str | None = "gptq" if method == "gptq" else "awq"
    if config.get("is_marlin_format") is True or form_name in ("marlin", "bitblas", "qqq"):
        raise make_unsupported_error(
            f"{method.upper()} in the {'Marlin' if form_name is None else quote(form_name)} layout"
        )
    if method == "awq" and form_name is not None:
        layout = AWQ_LAYOUTS.get(form_name)
    return QuantizationScheme(
        "words",
        method.upper(),
        layout,
        bits if type(bits) is int and 1 <= bits <= 8 else None,
        None if type(group) is not int or group > LARGEST_BLOCK else max(group, 0),
        various=bool(config.get("dynamic")),
    )


def _is_fp8(config: Mapping[str, Any]) -> bool:
    """Whether compressed-tensors stores all quantised weights in FP8."""
    groups = config.get("config_groups")
    if not isinstance(groups, dict) or not groups:
        return False
    weights = [group.get("weights") if isinstance(group, dict) else None for group in groups.values()]
    return all(isinstance(w, dict) and w.get("type") == "float" and w.get("num_bits") == 8 for w in weights)


def make_unsupported_error(name: str) -> ParamcountError:
    """The error for an unsupported scheme."""
    return ParamcountError(f"uses an unsupported quantisation scheme: {name}", expected=SUPPORTED)
