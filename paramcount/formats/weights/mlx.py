"""MLX: integers in 32-bit words with a scale and a bias per group of inputs, or small floats with a scale per group.

Its config names only modules that are packed otherwise than all others, with `false` for those that are not packed.

Sources: github ml-explore/mlx, python/mlx/nn/layers/quantized.py and mlx/ops.cpp (affine_quantize, fp_quantize);
ml-explore/mlx-lm, mlx_lm/utils.py (quantize_model); Blaizzy/mlx-vlm, mlx_vlm/utils.py (skip_multimodal_module).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from paramcount.errors import ParamcountError, describe_value, quote
from paramcount.formats.module_names import ModuleNames
from paramcount.formats.packing import INPUTS, OUTPUTS, WORD, Axis, Packing, Shape, Stored, WeightFormat
from paramcount.formats.quantization_config import (
    LARGEST_BLOCK,
    PackedGroup,
    Plan,
    Selection,
    Stated,
    WeightDtype,
)

BITS = (2, 3, 4, 5, 6, 8)
DEFAULT_GROUP = 64
DEFAULTS = {"bits": 4, "group_size": DEFAULT_GROUP}  # of a module, whatever the other modules have
UNQUANTISED = ("position", "norm")  # embeddings, routers and the LM head are packed like linear layers
# Model types whose routers are no linear layers in the library. Source: mlx_lm/models, MoEGate.
OTHER_ROUTERS = frozenset({
    "deepseek", "deepseek_v2", "deepseek_v3", "deepseek_v32", "dots1", "exaone_moe", "glm4_moe", "glm4_moe_lite",
    "glm_moe_dsa", "kimi_k2", "kimi_k25", "kimi_vl", "laguna", "mimo_v2_flash", "nemotron_h",
})  # fmt: skip
# Linear layers though others of their kind are none: beside the encoders, which the library does not pack (source:
# mlx_vlm/models/gemma4), and in an indexer (mlx_lm/models/deepseek_v32.py).
ALSO = tuple(f"{name}.weight" for name in (
    "embed_vision.embedding_projection", "embed_audio.embedding_projection", "indexer.weights_proj",
))  # fmt: skip
OTHERS = ("per_layer_model_projection",)  # no linear layers there. Source: ScaledLinear of mlx_vlm/models/gemma4
# {mode: (type of the scales; "" for that of the model, whether groups have a bias)}
MODES = {"affine": ("", True), "mxfp4": ("U8", False), "mxfp8": ("U8", False), "nvfp4": ("U8", False)}
BIAS = "zero point"
NAME = re.compile(r"mlx(?:-([234568])bit)?(?:-g([1-9][0-9]{0,5}))?")
SETTINGS = ("bits", "group_size", "mode", "quant_method", "model_type")  # keys that are no names of modules
STACK = ".switch_mlp."  # holds the experts of a layer


class Mlx(WeightFormat):
    name = "MLX"
    methods = ("mlx",)
    dtypes = MappingProxyType({"mlx-4bit": ("MLX 4-bit", {})})
    leaves_unfit = True

    def lay_out(self, packing: Packing) -> Iterable[Stored]:
        groups = Axis(INPUTS, packing.block[1])
        yield Stored("packed weights", packing.dtype, (Axis(OUTPUTS), Axis(INPUTS, WORD, packing.bits)))
        yield Stored("scale", packing.scale, (Axis(OUTPUTS), groups))
        if BIAS in packing.extras:
            yield Stored(BIAS, packing.scale, (Axis(OUTPUTS), groups))

    def can_store(self, shape: Shape, packing: Packing) -> bool:
        return shape[-1] % packing.block[1] == 0

    def get_label(self, packing: Packing) -> str:
        return f"{self.name} {packing.bits}-bit"

    # ---- what a config states

    def read(self, method: str, config: Mapping[str, Any]) -> Stated | None:
        return Stated("mlx", self.name) if method == "mlx" else None

    def plan(self, stated: Stated, config: Mapping[str, Any], dtype: str) -> Plan | None:
        left_out = [name for name, value in config.items() if value is False]
        packings: dict[Packing, list[str]] = {}
        for name, value in config.items():
            if isinstance(value, Mapping) and name not in SETTINGS:
                packings.setdefault(read_packing({**DEFAULTS, **value}, dtype), []).append(name)
        whole = read_packing(config, dtype)
        model_type = config.get("model_type")
        has_routers = model_type is not None and model_type not in OTHER_ROUTERS
        unquantised = UNQUANTISED if has_routers else (*UNQUANTISED, "router")
        groups = [
            PackedGroup(Selection(unquantised=(), listed=list_modules(names), also=ALSO), packing)
            for packing, names in packings.items()
        ]
        others = list_modules([*OTHERS, *left_out, *(name for names in packings.values() for name in names)])
        selection = Selection(unquantised=unquantised, left_out=others, also=ALSO)
        groups.append(PackedGroup(selection, whole))
        others_text = "".join(f"; some {self.get_label(packing)}" for packing in packings if packing != whole)
        text = f"{self.get_label(whole)}, groups of {whole.block[1]}{others_text}"
        return Plan("mlx", text, tuple(groups), dtype, scope="stacks")

    def find_dtype(self, name: str) -> WeightDtype | None:
        match = NAME.fullmatch(name)
        if match is None:
            return None
        bits, group = int(match[1] or 4), int(match[2] or DEFAULT_GROUP)
        label = f"{self.name} {bits}-bit (group {group})"
        return WeightDtype(name, label, self.plan_own({"bits": bits, "group_size": group}))


def read_packing(config: Mapping[str, Any], dtype: str) -> Packing:
    """The packing of a mode with its bits and groups. `dtype`: of the model."""
    mode, bits, group = config.get("mode", "affine"), config.get("bits"), config.get("group_size")
    if mode not in MODES:
        raise ParamcountError(f"has the mode {quote(str(mode))}", choices=MODES)
    if bits not in BITS or type(bits) is not int:
        raise ParamcountError(f"bits = {describe_value(bits)}", expected="2, 3, 4, 5, 6 or 8")
    if type(group) is not int or not 1 <= group <= LARGEST_BLOCK:
        raise ParamcountError(f"group_size = {describe_value(group)}", expected="a positive integer")
    scale, has_bias = MODES[mode]
    return Packing("mlx", "U32", bits, (1, group), scale or dtype, extras=(BIAS,) * has_bias)


def list_modules(names: Iterable[str]) -> ModuleNames:
    """Modules by their names in MLX, where one module holds a matrix of all experts of a layer.

    >>> "model.layers.0.mlp.experts.7.up_proj" in list_modules(["language_model.model.layers.0.mlp.switch_mlp.up_proj"])
    True
    """
    found = []
    for name in names:
        found.append(name.replace(STACK, ".experts."))
        if STACK in name:
            found.append(name.replace(STACK, ".experts.*."))
    return ModuleNames(found)


FORMAT = Mlx()
