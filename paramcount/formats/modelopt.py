"""ModelOpt, which NVIDIA quantises its releases with: one format for all linear layers, or one for each of a list.

Its config is the `quantization_config` of a config.json, or `quantization` in the hf_quant_config.json beside it.

Sources: github NVIDIA/TensorRT-Model-Optimizer, modelopt/torch/export/quant_utils.py (process_layer_quant_config) and
modelopt/torch/quantization/config.py (_default_disabled_quantizer_cfg: LM heads and routers are never quantised);
vLLM 0.33.0, model_executor/layers/quantization/modelopt.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from paramcount.errors import ParamcountError, describe_value, join_words, quote
from paramcount.formats.module_names import ModuleNames
from paramcount.formats.packing import Packing
from paramcount.formats.quantization_config import (
    MODELOPT,
    UNQUANTISED,
    PackedGroup,
    Plan,
    Selection,
    read_names,
    unwrap_modelopt,
)
from paramcount.formats.weights import get_format, load_formats

MIXED = "MIXED_PRECISION"
LISTED_APART = tuple(name for name in UNQUANTISED if name != "lm_head")  # a list may name the LM head


def plan_modelopt(config: Mapping[str, Any], dtype: str) -> Plan:
    """The plan of a config of ModelOpt. `dtype`: of everything else.

    >>> plan_modelopt({"quant_algo": "NVFP4", "exclude_modules": ["lm_head"]}, "BF16").text
    'NVFP4 by ModelOpt'
    """
    config = unwrap_modelopt(config)
    excluded = read_names(config, "exclude_modules", "ignore")
    groups = list_groups(config, ModuleNames(excluded))
    # Files may have scales of the KV cache. A config without a list does not say which layers were left out.
    has_cache_scales = any(config.get(key) for key in ("kv_cache_quant_algo", "kv_cache_scheme"))
    is_listed = bool(excluded) or config.get("quant_algo") == MIXED
    text = f"{name_formats(groups)} by ModelOpt"
    return Plan(MODELOPT, text, groups, dtype, is_listed and not has_cache_scales, scope="exported")


def name_formats(groups: Iterable[PackedGroup]) -> str:
    """The formats of groups: "FP8 and NVFP4"."""
    names = dict.fromkeys(get_format(group.packing.layout).name for group in groups)
    return join_words(list(names), "and")


def list_groups(config: Mapping[str, Any], left_out: ModuleNames) -> tuple[PackedGroup, ...]:
    layers = config.get("quantized_layers")
    if layers is None:
        packing = find_packing(config.get("quant_algo"), config.get("group_size"))
        return (PackedGroup(Selection(left_out=left_out), packing),)
    if not isinstance(layers, Mapping) or not all(isinstance(layer, Mapping) for layer in layers.values()):
        expected = "an object with one object per module"
        raise ParamcountError(f"quantized_layers = {describe_value(layers)}", expected=expected)
    modules: dict[Packing, list[str]] = {}
    packings: dict[tuple[str, str], Packing] = {}
    for module, layer in layers.items():
        algo, size = layer.get("quant_algo"), layer.get("group_size")
        if (key := (str(algo), str(size))) not in packings:
            packings[key] = find_packing(algo, size)
        modules.setdefault(packings[key], []).append(module)
    return tuple(
        PackedGroup(Selection(unquantised=LISTED_APART, listed=ModuleNames(names), left_out=left_out), packing)
        for packing, names in modules.items()
    )


def find_packing(algo: object, size: object) -> Packing:
    """The packing of an algorithm, as its format states it."""
    known = {name: packing for format in load_formats() for name, packing in format.modelopt.items()}
    if not isinstance(algo, str) or algo not in known:
        expected = join_words([*known, MIXED], "or")
        raise ParamcountError(f"has the quant_algo {quote(str(algo))}, whose layout is unknown", expected=expected)
    packing = known[algo]
    if size is not None and packing.block[1] and size != packing.block[1]:
        raise ParamcountError(f"group_size = {describe_value(size)}", expected=f"{packing.block[1]} for {algo}")
    return packing
