"""Which tensors of a model a selection quantises, and the scales that a release stores with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paramcount.errors import ParamcountError
from paramcount.formats.quantization_config import PackedGroup, Selection
from paramcount.formats.weights import get_format, load_formats

if TYPE_CHECKING:
    from paramcount.flow import Repeat, TensorRow

UNQUANTISED_PARTS = ("vision", "audio", "projector")
UNQUANTISED_NAMES = ("eh_proj.weight", "weights_proj.weight")  # of DeepSeek-V3's MTP layer and V3.2's indexer
MOST_LAYERS = 10_000
WORDS = re.compile(r"[A-Za-z_]+(\.[A-Za-z_]+)*")  # a name without the number of a layer


def get_scales(quantisation: str | None, document: Mapping[str, Any]) -> PackedGroup | None:
    """The weights that have scales in a release, from the zoo entry or else the config.json.

    None if they are not quantised, or if the number of scales is unknown.

    >>> get_scales("fp8", {}).packing.block
    (128, 128)
    """
    if quantisation:
        format = get_format(quantisation)
        return format.read_scales(quantisation, format.released or {})
    config = document.get("quantization_config")
    if not isinstance(config, Mapping):
        return None
    method = str(config.get("quant_method"))
    return next((found for format in load_formats() if (found := format.read_scales(method, config))), None)


def make_scales(tensor: TensorRow, group: PackedGroup) -> TensorRow | None:
    """The scales of a tensor as a tensor with role `scale`; None if it is not quantised.

    >>> from paramcount.api import count
    >>> weight = next(t for t in count("deepseek-v3").tensors if t.name.endswith("kv_a_proj_with_mqa.weight"))
    >>> scales = make_scales(weight, get_scales("fp8", {}))
    >>> scales.name, weight.shape, scales.shape
    ('model.layers.{layer}.self_attn.kv_a_proj_with_mqa.weight_scale_inv', (576, 7168), (5, 56))
    """
    packed = select_packed(tensor, group.selection)
    if packed is None:
        return None
    is_stacked = group.selection.experts == "stacked"
    shape = transpose_shape(packed.shape) if is_stacked else packed.shape
    pieces = get_format(group.packing.layout).list_pieces(shape, group.packing)
    scale = next(piece.shape for piece in pieces if piece.what == "scale")
    name = tensor.name + ("_scales" if is_stacked else "_scale_inv")
    return packed.with_shape(scale)._replace(name=name, role="scale", splits=())


def select_packed(tensor: TensorRow, selection: Selection, routers: tuple[str, ...] = ()) -> TensorRow | None:
    """A tensor with only its quantised repeats; None if it is not quantised at all.

    Methods pack the matrices of attention, MLPs, experts and mixers. Embeddings, norms, routers, biases and the LM head
    keep their dtype. `routers`: name endings of routers and the like that are linear layers and quantised.
    """
    if tensor.role != "parameter" or tensor.tied_to:
        return None
    if tensor.part in UNQUANTISED_PARTS and not tensor.name.endswith(selection.also):
        return None
    stacked = tensor.stacked is not None and not tensor.stacked.merged
    if selection.experts == "stacked":
        return tensor if stacked and len(tensor.shape) == 3 else None
    component = tensor.component.partition(".")[0]
    if len(tensor.shape) != 2 + stacked or (selection.experts and component != "experts"):
        return None
    stays = component in selection.unquantised or tensor.name.endswith(UNQUANTISED_NAMES)
    if stays and not tensor.name.endswith((*routers, *selection.also)):
        return None
    if stacked and "experts" in selection.unquantised:  # JetMoE's attention has experts too
        return None
    if not tensor.name.endswith(".weight") and component != "experts":
        return None
    if selection.needs_layer and not any(repeat.axis == "layer" for repeat in tensor.repeats):
        return None
    repeats = select_repeats(tensor, selection) if selection.selects_by_name else tensor.repeats
    return None if repeats is None else tensor._replace(repeats=repeats)


def select_layers(tensor: TensorRow, layers: Sequence[int]) -> TensorRow:
    """The tensors of some of its layers, in order."""
    if tensor.layer is None or len(layers) == tensor.layer.count:
        return tensor
    runs: list[tuple[int, int]] = []
    for layer in layers:
        if runs and sum(runs[-1]) == layer:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((layer, 1))
    n = len(layers)
    chosen = tensor.layer._replace(count=n, active=n, runs=tuple(runs))
    return tensor._replace(repeats=tuple(chosen if r is tensor.layer else r for r in tensor.repeats))


def transpose_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with its last two axes swapped."""
    return (*shape[:-2], shape[-1], shape[-2])


def select_repeats(tensor: TensorRow, selection: Selection) -> tuple[Repeat, ...] | None:
    """The repeats of a tensor without the layers that are not quantised; None if no layer is."""
    layer = tensor.layer
    module = tensor.name.removesuffix(".weight").replace("{expert}", "0")
    is_listed = selection.listed is not None or selection.left_out
    names = (*selection.targets, *selection.ignored, *selection.excluded)
    if not is_listed and all(map(WORDS.fullmatch, names)):  # all layers alike
        return tensor.repeats if selection.quantises(module.replace("{layer}", "0")) else None
    if layer is not None and layer.count > MOST_LAYERS:
        found = f"may select modules by name in {layer.count:,} layers"
        raise ParamcountError(found, expected=f"at most {MOST_LAYERS:,} layers")
    indices = (0,) if layer is None else layer.indices
    quantised = [i for i in indices if selection.quantises(module.replace("{layer}", str(i)))]
    if not quantised:
        return None
    if layer is None or len(quantised) == len(indices):
        return tensor.repeats
    return select_layers(tensor, quantised).repeats


def count_scales(tensors: Iterable[TensorRow], group: PackedGroup) -> dict[str, int]:
    """The number of scales in a release of these tensors: {"scales": of the model, "mtp_scales": of its MTP layers}.

    >>> from paramcount.api import count
    >>> count_scales(count("deepseek-v3").tensors, get_scales("fp8", {}))
    {'scales': 40838232, 'mtp_scales': 702264}
    """
    numbers = {"scales": 0, "mtp_scales": 0}
    for tensor in tensors:
        if scales := make_scales(tensor, group):
            numbers["mtp_scales" if tensor.part == "mtp" else "scales"] += scales.elements
    return numbers
