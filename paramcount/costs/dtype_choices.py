"""Which weights a name in COMPONENT=DTYPE means: a component, modules by their names, or layers by their numbers.

lm_head, experts         a component
down_proj, self_attn     modules of this name, and all inside them
*.mlp.up_proj            modules by their whole name; * stands for anything
layers.3, layers.0-3     layers of the decoder, whatever its checkpoints call them
layers.0-3.self_attn     modules in these layers
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from paramcount.counting import Count
from paramcount.counting.quantisation.scales import select_layers
from paramcount.errors import ParamcountError, find_nearest
from paramcount.flow import TensorRow
from paramcount.formats.module_names import ModuleNames, strip_wrappers
from paramcount.formats.quantization_config import WeightDtype

LAYERS = re.compile(r"layers\.(\d{1,5})(?:-(\d{1,5}))?((?:\..*)?)")
ENDING = re.compile(r"\.(weight|bias)$")
LONGEST = 200  # characters of a pattern
MOST_WILDCARDS = 4


def divide_tensors(
    count: Count, tensors: Sequence[TensorRow], choices: Mapping[str, WeightDtype]
) -> dict[str | None, list[TensorRow]]:
    """{name: the tensors that it means}, in the order of the names; None for those that no name means.

    If several names mean a tensor, the last one counts.

    Raises: ParamcountError for a name that means no tensor.
    """
    found: dict[str | None, list[TensorRow]] = {None: [], **{name: [] for name in choices}}
    used = set()
    for tensor in tensors:
        layers: dict[str | None, list[int]] = {}
        for layer in tensor.layer.indices if tensor.layer else (-1,):
            names = [name for name in choices if means(name, tensor, layer)]
            used.update(names)
            layers.setdefault(names[-1] if names else None, []).append(layer)
        for name, indices in layers.items():
            found[name].append(select_layers(tensor, indices))
    for name in choices:
        if name not in used:
            raise make_unknown_error(count, tensors, name)
    return found


def means(name: str, tensor: TensorRow, layer: int) -> bool:
    """Whether a name means the tensor in this layer."""
    if name in (tensor.main_component, tensor.detail):
        return True
    first, last, inside, modules = parse_name(name)
    module = ENDING.sub("", tensor.name).replace("{expert}", "0")
    if first is not None:
        is_in_layers = tensor.part == "decoder" and first <= layer <= last
        return is_in_layers and (not inside or module.partition("{layer}.")[2] in modules)
    return name in module.split(".") or module.replace("{layer}", str(layer)) in modules


@lru_cache(maxsize=64)
def parse_name(name: str) -> tuple[int | None, int, str, ModuleNames]:
    """(first layer, last layer, what is meant in them, the modules); no layers if the name is one of modules."""
    if len(name) > LONGEST or name.count("*") > MOST_WILDCARDS:
        expected = f"at most {LONGEST} characters and {MOST_WILDCARDS} *"
        raise ParamcountError(f"{name[:40]}… is too long a pattern", where="dtype", expected=expected)
    match = LAYERS.fullmatch(name)
    if match is None:
        return None, 0, "", ModuleNames([name])
    first, inside = int(match[1]), match[3].removeprefix(".")
    return first, int(match[2] or first), inside, ModuleNames([inside])


def make_unknown_error(count: Count, tensors: Iterable[TensorRow], name: str) -> ParamcountError:
    """The error for a name that means no weights of a model."""
    layers = [i for tensor in tensors if tensor.part == "decoder" and tensor.layer for i in tensor.layer.indices]
    match = LAYERS.fullmatch(name)
    if match and layers and not match[3]:
        expected = f"{min(layers)}–{max(layers)}"
        return ParamcountError(f"layer {match[1]} does not exist", where=count.id, expected=expected)
    components = tuple(dict.fromkeys(tensor.main_component for tensor in tensors))
    modules = [strip_wrappers(tensor.name.removesuffix(".weight")) for tensor in tensors]
    words = dict.fromkeys(module.rpartition(".")[2] for module in modules)
    names = (*components, *(f"*.{word}" for word in words), *(f"layers.0.{module}" for module in modules))
    nearest = find_nearest(name, names) or find_nearest(f"*.{name}", names)
    expected = "a component, layers.0-3, or a name such as *.down_proj"
    return ParamcountError(f"has no component {name}", where=count.id, expected=expected, nearest=nearest)
