"""Quantisation scales that a release stores with its quantised weights.

Sources: DeepSeek-V3, arXiv:2412.19437, section 3.3, and its README_WEIGHTS.md (FP8); OCP Microscaling Formats v1.0, section 5.1, and
gpt-oss, arXiv:2508.10925, section 2.1 (MXFP4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcount.errors import ParamcountError

if TYPE_CHECKING:
    from paramcount.counting.tensors import Tensor
    from paramcount.flow import Repeat

KEPT_PARTS = ("vision", "audio", "projector")  # not quantised: parts,
KEPT = ("embedding", "other_embedding", "position", "router", "norm", "lm_head")  # components,
KEPT_NAMES = (
    "eh_proj.weight",
    "weights_proj.weight",
)  # single matrices, of DeepSeek-V3's MTP layer and of V3.2's indexer
LARGEST_BLOCK = 2**20
MOST_LAYERS = 10_000


class Scheme(NamedTuple):
    """How the weights of a release are quantised."""

    method: str  # fp8 | mxfp4
    block: tuple[int, int]  # outputs and inputs per scale
    kept: tuple[str, ...] = ()  # modules that the config.json excludes
    # For compressed-tensors: modules to quantise; "re:" marks a regular expression, empty means all.
    targets: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()  # for compressed-tensors: modules that no scheme quantises

    routers: tuple[str, ...] = ()  # ends of names of routers that are linear layers, and quantised

    @property
    def selects(self) -> bool:
        """Whether modules are selected by name."""
        return bool(self.kept or self.targets or self.ignored)

    @property
    def keeps(self) -> tuple[str, ...]:
        """The components that are not quantised."""
        if (
            self.method == "bitsandbytes"
        ):  # the reference's experts are no linear layers; a list of modules replaces the default, the LM head
            return (*(name for name in KEPT if name != "lm_head" or not self.kept), "experts")
        return tuple(name for name in KEPT if name != "lm_head") if self.targets else KEPT

    def takes(self, module: str) -> bool:
        """Whether the module of this name is quantised."""
        if self.targets and not is_matched(module, self.targets):
            return False
        return not is_matched(module, self.ignored) and not is_excluded(module, self.kept, frozenset(self.kept))


SCHEMES = {"fp8": Scheme("fp8", (128, 128)), "mxfp4": Scheme("mxfp4", (1, 32))}


def get_scheme(quantisation: str | None, document: Mapping[str, Any]) -> Scheme | None:
    """How released weights are quantised: as the zoo entry says, else the config.json. None if they are not, or in a way whose scales
    are unknown.

    >>> get_scheme("fp8", {})[:3]
    ('fp8', (128, 128), ())
    """
    if quantisation:
        return SCHEMES.get(quantisation)
    config = document.get("quantization_config")
    return make_scheme(config) if isinstance(config, Mapping) else None


def make_scheme(said: Mapping[str, Any]) -> Scheme | None:
    """The scheme that `quantization_config` of a config.json describes."""
    method = said.get("quant_method")
    if method == "mxfp4":
        return SCHEMES["mxfp4"]
    block = read_block(said.get("weight_block_size"))
    if method != "fp8" or block is None:
        return None
    kept = said.get("modules_to_not_convert")
    names = kept if isinstance(kept, (list, tuple)) else ()
    return Scheme("fp8", block, tuple(name for name in names if isinstance(name, str) and name))


def read_block(value: object) -> tuple[int, int] | None:
    """Outputs and inputs per scale from a config.json; None if missing or invalid."""
    if (
        not isinstance(value, (list, tuple))
        or len(value) != 2
        or any(type(n) is not int or not 1 <= n <= LARGEST_BLOCK for n in value)
    ):
        return None
    return value[0], value[1]


def make_scales(tensor: Tensor, scheme: Scheme) -> Tensor | None:
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
    shape = packed.shape
    if scheme.method == "mxfp4":
        return tensor._replace(
            name=tensor.name + "_scales",
            shape=compute_scales_shape(transpose_shape(shape), scheme.block),
            role="scale",
            splits=(),
        )
    return packed._replace(
        name=tensor.name + "_scale_inv", shape=compute_scales_shape(shape, scheme.block), role="scale", splits=()
    )


def select_packed(tensor: Tensor, scheme: Scheme) -> Tensor | None:
    """A tensor with only its quantised repeats; None if it is not quantised at all.

    Schemes pack the matrices of attention, MLPs, experts and mixers (MXFP4: experts only). Embeddings, norms, routers,
    biases and the LM head keep their dtype.
    """
    if tensor.role != "parameter" or tensor.tied_to or tensor.part in KEPT_PARTS:
        return None
    stacked = tensor.stacked is not None and not tensor.stacked.merged
    if (
        scheme.method == "mxfp4"
    ):  # of experts alone, which are stored [experts, inputs, outputs] and whose scales are not
        return tensor if stacked and len(tensor.shape) == 3 else None
    component = tensor.component.partition(".")[0]
    if (
        len(tensor.shape) != 2 + stacked
        or (component in scheme.keeps and not tensor.name.endswith(scheme.routers))
        or tensor.name.endswith(KEPT_NAMES)
    ):
        return None
    if not tensor.name.endswith(".weight") and component != "experts":
        return None
    if scheme.method == "gptq" and not any(repeat.axis == "layer" for repeat in tensor.repeats):
        return None
    repeats = select_repeats(tensor, scheme) if scheme.selects else tensor.repeats
    return None if repeats is None else tensor._replace(repeats=repeats)


def transpose_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The tensor with its matrices transposed."""
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


def select_repeats(tensor: Tensor, scheme: Scheme) -> tuple[Repeat, ...] | None:
    """The repeats of a tensor without the layers that are not quantised; None if no layer is."""
    layer = next((repeat for repeat in tensor.repeats if repeat.axis == "layer"), None)
    module = tensor.name.removesuffix(".weight").replace("{expert}", "0")
    if layer is not None and layer.count > MOST_LAYERS:
        raise ParamcountError(
            f"{layer.count:,} layers, each of which quantization_config may name", expected=f"at most {MOST_LAYERS:,}"
        )
    indices = (0,) if layer is None else layer.indices
    left = [i for i in indices if scheme.takes(module.replace("{layer}", str(i)))]
    if not left:
        return None
    if layer is None or len(left) == len(indices):
        return tensor.repeats
    fewer = layer._replace(count=len(left), active=len(left), runs=tuple((i, 1) for i in left))
    return tuple(fewer if repeat is layer else repeat for repeat in tensor.repeats)


def is_excluded(module: str, kept: tuple[str, ...], alone: frozenset[str]) -> bool:
    """Whether a module is excluded from quantisation, by its name, its end or an enclosing module.

    Source: should_convert_module of the reference; its regular expressions are read as plain names with `*`.
    """
    from fnmatch import fnmatchcase

    words = module.split(".")
    if module.endswith(kept) or any(".".join(words[:i]) in alone for i in range(1, len(words))):
        return True
    return any(fnmatchcase(module, name) or fnmatchcase(module, f"{name}.*") for name in kept if "*" in name)


def is_matched(module: str, patterns: tuple[str, ...]) -> bool:
    """Whether compressed-tensors matches a linear layer by its name, its class or a regular expression.

    Source: compressed_tensors 0.20, utils/match.py, is_match.
    """
    from paramcount.counting.quantisation.patterns import compile_pattern

    return any(
        bool(compile_pattern(text[3:]).match(module)) if text.startswith("re:") else text in (module, "Linear")
        for text in patterns
    )


def count_scales(tensors: Iterable[Tensor], scheme: Scheme) -> dict[str, int]:
    """The number of scales in a release of these tensors: {"scales": of the model, "mtp_scales": of its MTP layers}.

    >>> from paramcount.api import count
    >>> count_scales(count("deepseek-v3").tensors, SCHEMES["fp8"])
    {'scales': 40838232, 'mtp_scales': 702264}
    """
    found = {"scales": 0, "mtp_scales": 0}
    for tensor in tensors:
        if scales := make_scales(tensor, scheme):
            found["mtp_scales" if tensor.part == "mtp" else "scales"] += scales.elements
    return found
