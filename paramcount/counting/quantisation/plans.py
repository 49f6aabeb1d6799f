"""Storage plan of a config.json: which weights are packed, how, and the dtype of the rest.

Sources: transformers 5.23, utils/quantization_config.py; compressed_tensors 0.20, quantization/quant_config.py and
compressors/.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from paramcount.counting.quantisation.configs import METHODS, QuantizationScheme, read_scheme
from paramcount.counting.quantisation.packing import FP8_BLOCK, MXFP4_BLOCK, Packing, Piece
from paramcount.counting.quantisation.scales import LARGEST_BLOCK, SCHEMES, Scheme, read_block
from paramcount.errors import ParamcountError, describe_value, quote

DTYPES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32", "float64": "F64"}
PLACES = (("quantization_config",), ("text_config", "quantization_config"), ("compression_config",))


class Group(NamedTuple):
    """Tensors with the same packing."""

    scheme: Scheme
    packing: Packing


class Plan(NamedTuple):
    """How a model is stored, according to its config.json."""

    method: str
    text: str
    groups: tuple[Group, ...]
    dtype: str  # of everything else
    exact: bool = True
    language_only: bool = False  # whether vision and audio encoders are not quantised


RELEASED_PLANS = {
    "fp8": ("FP8, 128 × 128 blocks", (Group(SCHEMES["fp8"], Packing("fp8", "F8_E4M3", 8, FP8_BLOCK, "F32")),)),
    "mxfp4": ("MXFP4", (Group(SCHEMES["mxfp4"], Packing("mxfp4", "U8", 4, MXFP4_BLOCK, "U8")),)),
}


def find_quantization_config(document: Mapping[str, Any]) -> Any:
    """The quantisation block of a config.json; None if it has none."""
    for keys in PLACES:
        block: Any = document
        for key in keys:
            block = block.get(key) if isinstance(block, Mapping) else None
        if isinstance(block, Mapping) and document.get("expert_dtype") is not None:
            # DeepSeek-V4 states it beside the block. Source: DeepseekV4Config of the reference.
            return {"expert_dtype": document["expert_dtype"], **block}
        if block is not None:
            return block
    return None


def make_plan(config: object, document: Mapping[str, Any]) -> Plan:
    """The storage plan for this `quantization_config`.

    Raises: ParamcountError if it is not supported or the size is unknown.
    """
    if not isinstance(config, Mapping):
        raise ParamcountError(f"= {describe_value(config)}", expected="a JSON object")
    is_bitsandbytes = config.get("load_in_4bit") or config.get("load_in_8bit")
    method = "bitsandbytes" if is_bitsandbytes else config.get("quant_method")
    if method is None:
        raise ParamcountError("has no quant_method, so transformers cannot load it")
    if not isinstance(method, str) or method not in METHODS:
        raise ParamcountError(f"has the quant_method {quote(str(method))}, which transformers does not support")
    dtype = find_dtype(document)
    if dtype is None:
        plan = make_method_plan(method, config, "BF16")
        plan = plan._replace(text=f"{plan.text}, BF16 assumed for the rest", exact=False)
    else:
        plan = make_method_plan(method, config, dtype)
    is_of_section = document.get("quantization_config") is None and "text_config" in document
    return limit_to_language(plan) if is_of_section else plan


def limit_to_language(plan: Plan) -> Plan:
    """The plan of a block in `text_config`, whose names of modules begin inside the language model."""
    groups = []
    for group in plan.groups:
        ignored = group.scheme.ignored
        inner = [rf"re:.*\.{re.escape(name)}" for name in ignored if not name.startswith("re:")]
        groups.append(group._replace(scheme=group.scheme._replace(ignored=(*ignored, *inner))))
    return plan._replace(groups=tuple(groups), language_only=True)


def make_method_plan(method: str, config: Mapping[str, Any], dtype: str) -> Plan:
    """The plan of a known method. `dtype`: dtype of weights that are not quantised."""
    if method == "bitsandbytes":
        return plan_bitsandbytes(config, dtype)
    if method == "compressed-tensors":
        return plan_compressed_tensors(config, dtype)
    try:
        scheme = read_scheme(config)
    except ParamcountError:
        raise make_unknown_size_error(method) from None
    excluded = read_names(config, "modules_to_not_convert", "ignored_layers")
    match scheme.method:
        case "fp8" if method in ("fp8", "mxfp8"):
            return plan_fp8(scheme, config, excluded, dtype)
        case "fp8" if method == "fbgemm_fp8":
            packing = Packing("fp8", "F8_E4M3", 8, (1, 0), "F32")
            return Plan(method, "FP8, one scale per output", (Group(Scheme("fp8", (1, 0), excluded), packing),), dtype)
        case "mxfp4":
            packing = RELEASED_PLANS["mxfp4"][1][0].packing
            return Plan("mxfp4", "MXFP4", (Group(SCHEMES["mxfp4"]._replace(excluded=excluded), packing),), dtype)
        case "words" if not scheme.various:
            return plan_words(scheme, config, excluded, dtype)
    raise make_unknown_size_error(method)


def make_unknown_size_error(method: str) -> ParamcountError:
    """The error for a known method whose size is unknown."""
    return ParamcountError(f"uses {method} with options whose stored size paramcount cannot compute")


def find_dtype(document: Mapping[str, Any]) -> str | None:
    """The dtype of weights that are not quantised; None if unknown.

    Source: PreTrainedConfig.dtype, formerly `torch_dtype`.
    """
    text_config = document.get("text_config")
    for section in (document, text_config if isinstance(text_config, Mapping) else {}):
        value = section.get("dtype", section.get("torch_dtype"))
        if value is not None:
            name = value.removeprefix("torch.") if isinstance(value, str) else ""
            if name not in DTYPES:
                raise ParamcountError(f"dtype = {describe_value(value)}", choices=DTYPES)
            return DTYPES[name]
    return None


def read_names(config: Mapping[str, Any], *keys: str) -> tuple[str, ...]:
    """The module names in the first of these keys that has any."""
    for key in keys:
        value = config.get(key)
        if value is None:
            continue
        if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
            raise ParamcountError(f"{key} = {describe_value(value)}", expected="a list of names")
        return tuple(name for name in value if name)
    return ()


def plan_fp8(scheme: QuantizationScheme, config: Mapping[str, Any], excluded: tuple[str, ...], dtype: str) -> Plan:
    """FP8 in blocks or with one scale per tensor. Source: FineGrainedFP8Config of the reference."""
    has_block = config.get("weight_block_size", FP8_BLOCK) is not None
    if has_block and scheme.block is None and "weight_block_size" in config:
        raise ParamcountError(
            f"weight_block_size = {describe_value(config['weight_block_size'])}", expected="two positive integers"
        )
    block = (scheme.block or FP8_BLOCK) if has_block else (0, 0)
    has_byte_scales = config.get("scale_fmt") == "ue8m0"
    scale_dtype, scale_axes = "F8_E8M0" if has_byte_scales else "F32", 2 if has_block else 0
    others = (Piece("activation scale", "F32", ()),) if config.get("activation_scheme") == "static" else ()
    packing = Packing("fp8", "F8_E4M3", 8, block, scale_dtype, scale_axes, others=others)
    text = f"{scheme.name}, {block[0]} × {block[1]} blocks" if has_block else f"{scheme.name}, one scale per tensor"
    exact = not has_byte_scales and "weight_block_size" in config
    groups = [Group(Scheme("fp8", block, excluded), packing)]
    if config.get("expert_dtype") == "fp4":  # Source: FP8Experts of the reference
        text = f"{text}; experts in FP4"
        pairs = Packing("fp4", "I8", 4, MXFP4_BLOCK, scale_dtype)  # two values per byte
        groups.insert(0, Group(Scheme("fp4", MXFP4_BLOCK, excluded), pairs))
    return Plan(str(config["quant_method"]), text, tuple(groups), dtype, exact)


def plan_words(scheme: QuantizationScheme, config: Mapping[str, Any], excluded: tuple[str, ...], dtype: str) -> Plan:
    """GPTQ and AWQ, which pack values into words."""
    bits, group = scheme.bits or 4, 128 if scheme.group is None else scheme.group
    layout = scheme.layout
    if layout is None:
        raise make_unknown_size_error(scheme.name)
    if config.get("modules_in_block_to_quantize") is not None or config.get("lm_head") is True:
        raise ParamcountError("selects the modules to quantise, which paramcount does not support")
    word_dtype = "I16" if layout == "awq fast" else "I32"
    packing = Packing(layout, word_dtype, bits, (1, group), "F16", indexed=layout == "gptq")
    method = "gptq" if layout == "gptq" else "awq"
    text = f"{scheme.name} {bits}-bit, {f'groups of {group}' if group else 'one group'}"
    return Plan(str(config["quant_method"]), text, (Group(Scheme(method, (1, group), excluded), packing),), dtype)


def plan_bitsandbytes(config: Mapping[str, Any], dtype: str) -> Plan:
    """Eight bits with a scale per output, or four in blocks of 64. Source: BitsAndBytesConfig of the reference."""
    eight, four = config.get("load_in_8bit"), config.get("load_in_4bit")
    if bool(eight) == bool(four):
        raise ParamcountError(
            "sets both load_in_8bit and load_in_4bit" if eight else "sets neither load_in_8bit nor load_in_4bit"
        )
    scheme = Scheme("bitsandbytes", (1, 0), read_names(config, "llm_int8_skip_modules"))
    if eight:
        packing = Packing("bnb int8", "I8", 8, (1, 0), "F32")
        return Plan("bitsandbytes", "bitsandbytes 8-bit", (Group(scheme, packing),), dtype)
    kind, nested = config.get("bnb_4bit_quant_type", "fp4"), config.get("bnb_4bit_use_double_quant", False)
    if kind not in ("fp4", "nf4"):
        raise ParamcountError(f"bnb_4bit_quant_type = {describe_value(kind)}", expected="fp4 or nf4")
    torch_dtype = next(name for name, short in DTYPES.items() if short == dtype)
    packing = Packing("bnb 4-bit nested" if nested else "bnb 4-bit", "U8", 4, (1, 0), f"{kind} {torch_dtype}")
    text = f"bitsandbytes {kind.upper()}{' with double quantisation' if nested else ''}"
    return Plan("bitsandbytes", text, (Group(scheme, packing),), dtype, exact=not nested)


# ---- compressed-tensors


def plan_compressed_tensors(config: Mapping[str, Any], dtype: str) -> Plan:
    """Groups of modules, each in its format.

    Source: compressed_tensors 0.20, quantization/quant_config.py and compressors/.
    """
    blocks = config.get("config_groups")
    if (
        not isinstance(blocks, Mapping)
        or not blocks
        or not all(isinstance(block, Mapping) for block in blocks.values())
    ):
        raise ParamcountError("config_groups has no groups")
    ignored = read_names(config, "ignore")
    groups, texts = [], []
    for block in blocks.values():
        text, packing = read_compressed_group(block, str(block.get("format") or config.get("format")), dtype)
        targets = read_names(block, "targets")
        groups.append(Group(Scheme("compressed-tensors", packing.block, targets=targets, ignored=ignored), packing))
        texts.append(text)
    # Versions that do not state themselves may store the shape of packed weights in another type.
    has_words = any(group.packing.layout == "ct words" for group in groups)
    exact = not config.get("kv_cache_scheme") and (not has_words or config.get("version") is not None)
    return Plan("compressed-tensors", " and ".join(dict.fromkeys(texts)), tuple(groups), dtype, exact)


def read_compressed_group(group: Mapping[str, Any], form: str, dtype: str) -> tuple[str, Packing]:
    """The packing of one group, with its display name."""
    weights, inputs = group.get("weights"), group.get("input_activations")
    if not isinstance(weights, Mapping):
        raise ParamcountError("has a group without weights")
    bits, kind, strategy, size = (weights.get(key) for key in ("num_bits", "type", "strategy", "group_size"))
    has_static_scale = isinstance(inputs, Mapping) and not inputs.get("dynamic")
    others = (Piece("activation scale", dtype, (1,)),) if has_static_scale else ()
    block, axes = find_block(strategy, size, weights.get("block_structure")), 1 if strategy == "tensor" else 2
    zeros, indexed = weights.get("symmetric") is False, weights.get("actorder") == "group"
    texts = {("int", 4): "INT4", ("int", 8): "INT8", ("float", 8): "FP8"}
    text = texts.get((str(kind), bits if type(bits) is int else 0), "")
    match form:
        case "pack-quantized" if kind == "int" and bits in (4, 8):
            packing = Packing("ct words", "I32", bits, block, dtype, axes, zeros=zeros, indexed=indexed, others=others)
        case "int-quantized" | "float-quantized" | "naive-quantized" if text and bits == 8:
            byte_dtype = "I8" if kind == "int" else "F8_E4M3"
            packing = Packing("ct bytes", byte_dtype, 8, block, dtype, axes, zeros=zeros, others=others)
        case "nvfp4-pack-quantized" if (kind, bits, size) == ("float", 4, 16):
            text = "NVFP4"
            tensor_scale = Piece("scale of scales", "F32", (1,))
            scales = (tensor_scale, *([tensor_scale] if inputs else []))  # of the weights and of the inputs
            packing = Packing("nvfp4", "U8", 4, block, "F8_E4M3", others=scales)
        case _:
            raise ParamcountError(
                f"has a group in the format {quote(form)} with {quote(str(bits))}-bit {quote(str(kind))} weights"
            )
    return f"{text} by compressed-tensors", packing


def find_block(strategy: object, size: object, structure: object) -> tuple[int, int]:
    """Outputs and inputs per scale; 0 for all."""
    match strategy:
        case "tensor":
            return (0, 0)
        case "channel":
            return (1, 0)
        case "group" | "tensor_group" if type(size) is int and 0 < size <= LARGEST_BLOCK:
            return (1, size)
        case "block":
            if block := read_block(structure):
                return block
    raise ParamcountError(
        f"has weights with the strategy {quote(str(strategy))}",
        expected="tensor, channel, group or block, with its size",
    )
