"""Quantisation scales that a release stores with its quantised weights.

Sources: FP8: DeepSeek-V3, arXiv:2412.19437, section 3.3, and its README_WEIGHTS.md. MXFP4: OCP Microscaling Formats
v1.0, section 5.1, and gpt-oss, arXiv:2508.10925, section 2.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcount.errors import ParamcountError

if TYPE_CHECKING:
    from paramcount.flow import Repeat, TensorRow

UNQUANTISED_PARTS = ("vision", "audio", "projector")
UNQUANTISED_COMPONENTS = ("embedding", "other_embedding", "position", "router", "norm", "lm_head")
UNQUANTISED_NAMES = ("eh_proj.weight", "weights_proj.weight")  # of DeepSeek-V3's MTP layer and V3.2's indexer
LARGEST_BLOCK = 2**20
MOST_LAYERS = 10_000
WORDS = re.compile(r"[A-Za-z_]+(\.[A-Za-z_]+)*")  # a name without the number of a layer


class Scheme(NamedTuple):
    """How the weights of a release are quantised."""

    method: str  # fp8 | fp4 (experts alone) | mxfp4
    block: tuple[int, int]  # outputs and inputs per scale
    excluded: tuple[str, ...] = ()  # modules that the config.json excludes
    # For compressed-tensors: modules to quantise; "re:" marks a regular expression, empty means all.
    targets: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()  # for compressed-tensors: modules that no scheme quantises
    routers: tuple[str, ...] = ()  # name endings of routers and the like that are linear layers and quantised

    @property
    def selects_by_name(self) -> bool:
        """Whether the config.json selects modules by name."""
        return bool(self.excluded or self.targets or self.ignored)

    @property
    def unquantised_components(self) -> tuple[str, ...]:
        """The components that are not quantised."""
        without_lm_head = tuple(name for name in UNQUANTISED_COMPONENTS if name != "lm_head")
        if self.method == "bitsandbytes":
            # The reference's experts are not linear layers. A list of modules replaces the default, the LM head.
            return (*(without_lm_head if self.excluded else UNQUANTISED_COMPONENTS), "experts")
        return without_lm_head if self.targets else UNQUANTISED_COMPONENTS

    def quantises(self, module: str) -> bool:
        """Whether the module of this name is quantised."""
        if self.targets and not is_matched(module, self.targets):
            return False
        return not is_matched(module, self.ignored) and not is_excluded(module, self.excluded, frozenset(self.excluded))


SCHEMES = {"fp8": Scheme("fp8", (128, 128)), "mxfp4": Scheme("mxfp4", (1, 32))}


def get_scheme(quantisation: str | None, document: Mapping[str, Any]) -> Scheme | None:
    """How released weights are quantised, from the zoo entry or else the config.json.

    None if they are not quantised, or if the scheme's scales are unknown.

    >>> get_scheme("fp8", {})[:3]
    ('fp8', (128, 128), ())
    """
    if quantisation:
        return SCHEMES.get(quantisation)
    config = document.get("quantization_config")
    return make_scheme(config) if isinstance(config, Mapping) else None


def make_scheme(config: Mapping[str, Any]) -> Scheme | None:
    """The scheme that `quantization_config` of a config.json describes."""
    method = config.get("quant_method")
    if method == "mxfp4":
        return SCHEMES["mxfp4"]
    block = read_block(config.get("weight_block_size"))
    if method != "fp8" or block is None:
        return None
    excluded = config.get("modules_to_not_convert")
    names = excluded if isinstance(excluded, (list, tuple)) else ()
    return Scheme("fp8", block, tuple(name for name in names if isinstance(name, str) and name))


def read_block(value: object) -> tuple[int, int] | None:
    """Outputs and inputs per scale from a config.json; None if missing or invalid."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return None
    if any(type(n) is not int or not 1 <= n <= LARGEST_BLOCK for n in value):
        return None
    return value[0], value[1]


def make_scales(tensor: TensorRow, scheme: Scheme) -> TensorRow | None:
    """The scales of a tensor as a tensor with role `scale`; None if it is not quantised.

    >>> from paramcount.api import count
    >>> weight = next(t for t in count("deepseek-v3").tensors if t.name.endswith("kv_a_proj_with_mqa.weight"))
    >>> scales = make_scales(weight, SCHEMES["fp8"])
    >>> scales.name, weight.shape, scales.shape
    ('model.layers.{layer}.self_attn.kv_a_proj_with_mqa.weight_scale_inv', (576, 7168), (5, 56))
    """
    packed = select_packed(tensor, scheme)
    if packed is None:
        return None
    is_mxfp4 = scheme.method == "mxfp4"
    shape = compute_scales_shape(transpose_shape(packed.shape) if is_mxfp4 else packed.shape, scheme.block)
    name = tensor.name + ("_scales" if is_mxfp4 else "_scale_inv")
    return packed.with_shape(shape)._replace(name=name, role="scale", splits=())


def select_packed(tensor: TensorRow, scheme: Scheme) -> TensorRow | None:
    """A tensor with only its quantised repeats; None if it is not quantised at all.

    Schemes pack the matrices of attention, MLPs, experts and mixers (MXFP4: experts only). Embeddings, norms, routers,
    biases and the LM head keep their dtype.
    """
    if tensor.role != "parameter" or tensor.tied_to or tensor.part in UNQUANTISED_PARTS:
        return None
    stacked = tensor.stacked is not None and not tensor.stacked.merged
    if scheme.method == "mxfp4":  # stores experts as [experts, inputs, outputs]
        return tensor if stacked and len(tensor.shape) == 3 else None
    component = tensor.component.partition(".")[0]
    if len(tensor.shape) != 2 + stacked or (scheme.method == "fp4" and component != "experts"):
        return None
    stays = component in scheme.unquantised_components or tensor.name.endswith(UNQUANTISED_NAMES)
    if stays and not tensor.name.endswith(scheme.routers):
        return None
    if stacked and "experts" in scheme.unquantised_components:  # JetMoE's attention has experts too
        return None
    if not tensor.name.endswith(".weight") and component != "experts":
        return None
    if scheme.method == "gptq" and not any(repeat.axis == "layer" for repeat in tensor.repeats):
        return None
    repeats = select_repeats(tensor, scheme) if scheme.selects_by_name else tensor.repeats
    return None if repeats is None else tensor._replace(repeats=repeats)


def transpose_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with its last two axes swapped."""
    return (*shape[:-2], shape[-1], shape[-2])


def compute_scales_shape(shape: tuple[int, ...], block: tuple[int, int]) -> tuple[int, ...]:
    """The scales of matrices [..., outputs, inputs], one per block of the last two axes.

    >>> compute_scales_shape((576, 7168), (128, 128))
    (5, 56)
    """
    *before, outputs, inputs = shape
    return (*before, count_blocks(outputs, block[0]), count_blocks(inputs, block[1]))


def count_blocks(n: int, size: int) -> int:
    """The number of blocks for n values, rounded up."""
    return -(-n // size)


def select_repeats(tensor: TensorRow, scheme: Scheme) -> tuple[Repeat, ...] | None:
    """The repeats of a tensor without the layers that are not quantised; None if no layer is."""
    layer = next((repeat for repeat in tensor.repeats if repeat.axis == "layer"), None)
    module = tensor.name.removesuffix(".weight").replace("{expert}", "0")
    if all(map(WORDS.fullmatch, (*scheme.targets, *scheme.ignored, *scheme.excluded))):  # all layers alike
        return tensor.repeats if scheme.quantises(module.replace("{layer}", "0")) else None
    if layer is not None and layer.count > MOST_LAYERS:
        found = f"may select modules by name in {layer.count:,} layers"
        raise ParamcountError(found, expected=f"at most {MOST_LAYERS:,} layers")
    indices = (0,) if layer is None else layer.indices
    quantised = [i for i in indices if scheme.quantises(module.replace("{layer}", str(i)))]
    if not quantised:
        return None
    if layer is None or len(quantised) == len(indices):
        return tensor.repeats
    fewer = layer._replace(count=len(quantised), active=len(quantised), runs=tuple((i, 1) for i in quantised))
    return tuple(fewer if repeat is layer else repeat for repeat in tensor.repeats)


def is_excluded(module: str, excluded: tuple[str, ...], names: frozenset[str]) -> bool:
    """Whether a module is excluded from quantisation, by its name, its ending or an enclosing module.

    `names`: `excluded` as a set. Source: should_convert_module of the reference; its regular expressions are read as
    plain names with `*`.
    """
    if not excluded:
        return False
    from fnmatch import fnmatchcase

    words = module.split(".")
    if module.endswith(excluded) or any(".".join(words[:i]) in names for i in range(1, len(words))):
        return True
    return any(fnmatchcase(module, name) or fnmatchcase(module, f"{name}.*") for name in excluded if "*" in name)


def is_matched(module: str, patterns: tuple[str, ...]) -> bool:
    """Whether compressed-tensors matches a linear layer by its name, its class or a regular expression.

    Source: compressed_tensors 0.20, utils/match.py, is_match.
    """
    from paramcount.counting.quantisation.patterns import compile_pattern

    return any(
        bool(compile_pattern(text[3:]).match(module)) if text.startswith("re:") else text in (module, "Linear")
        for text in patterns
    )


def count_scales(tensors: Iterable[TensorRow], scheme: Scheme) -> dict[str, int]:
    """The number of scales in a release of these tensors: {"scales": of the model, "mtp_scales": of its MTP layers}.

    >>> from paramcount.api import count
    >>> count_scales(count("deepseek-v3").tensors, SCHEMES["fp8"])
    {'scales': 40838232, 'mtp_scales': 702264}
    """
    numbers = {"scales": 0, "mtp_scales": 0}
    for tensor in tensors:
        if scales := make_scales(tensor, scheme):
            numbers["mtp_scales" if tensor.part == "mtp" else "scales"] += scales.elements
    return numbers
