"""Where Accelerate puts the layers of a model: on the GPUs in their order, then on the CPU (device_map="auto").

Source: transformers 5.24, integrations/accelerate.py (get_balanced_memory); Accelerate 1.15, utils/modeling.py
(infer_auto_device_map).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from paramcount.costs.sharding import ShardShape
from paramcount.counting.components import TOWERS
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.errors import ParamcountError, describe_value

Place: TypeAlias = "int | None"  # index of a GPU; None: the CPU
UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
INPUT = ("embedding", "other_embedding", "position")
SHARE_OF_ONE = 9, 10  # of the free memory of a single GPU, that may hold weights if no other limit is given
BUFFER = 5, 4  # times the largest layer, that each of several GPUs may hold more than the others


class Module(NamedTuple):
    """What is placed as a whole."""

    name: str  # encoders | inputs | output | "" for a layer
    layer: int | None
    bytes: int


class Map(NamedTuple):
    """Where each module lies."""

    modules: tuple[Module, ...]
    places: tuple[Place, ...]
    gpus: int

    def list_layers(self, place: Place) -> tuple[int, ...]:
        return tuple(
            module.layer for module, at in zip(self.modules, self.places) if at == place and module.layer is not None
        )

    def sum_bytes(self, place: Place) -> int:
        return sum(module.bytes for module, at in zip(self.modules, self.places) if at == place)

    def find_largest(self, place: Place) -> int:
        """Bytes of the largest module on a device."""
        return max((module.bytes for module, at in zip(self.modules, self.places) if at == place), default=0)

    def holds_output(self, place: Place, *, tied: bool) -> bool:
        """Whether a device computes the logits; a tied LM head lies where the token embedding does."""
        name = "inputs" if tied else "output"
        at = next(at for module, at in zip(self.modules, self.places) if module.name == name)
        return (0 if at is None else at) == place

    @property
    def used(self) -> tuple[Place, ...]:
        """GPUs first, then the CPU if something lies there."""
        return (*range(self.gpus), *((None,) if None in self.places else ()))


def list_modules(rows: Sequence[StoredTensor], shape: ShardShape) -> tuple[Module, ...]:
    """Encoders, embeddings, each layer, and the rest, in the order of the model.

    Raises: ParamcountError for an encoder–decoder model.
    """
    sizes = dict.fromkeys(("encoders", "inputs", "output"), 0)
    layers = [0] * shape.n_layers
    for row in rows:
        tensor, layer = row.tensor, row.tensor.layer
        if tensor.part == "encoder":
            raise ParamcountError('= "auto" is not supported for encoder–decoder models', where="device_map")
        if tensor.part in TOWERS:
            sizes["encoders"] += row.bytes
        elif layer is not None:
            for i in layer.indices:
                layers[min(i, shape.n_layers - 1)] += row.bytes // layer.count
        else:
            sizes["inputs" if tensor.main_component in INPUT else "output"] += row.bytes
    found = [Module("encoders", None, sizes["encoders"])] if sizes["encoders"] else []
    found += [Module("inputs", None, sizes["inputs"]), *(Module("", i, size) for i, size in enumerate(layers))]
    return (*found, Module("output", None, sizes["output"]))


def place_modules(modules: Sequence[Module], limits: Sequence[int]) -> Map:
    """Each module on the first GPU that has room, not before the one of the module in front of it, else on the CPU.

    The first GPU keeps room for the largest module that is still to be placed, because it computes those on the CPU.

    >>> modules = [Module("inputs", None, 2), Module("", 0, 5), Module("", 1, 5), Module("output", None, 2)]
    >>> place_modules(modules, [13]).places
    (0, 0, None, None)
    """
    places: list[Place] = []
    device, used = 0, [0] * len(limits)
    largest = max(module.bytes for module in modules)
    number = sum(module.bytes == largest for module in modules)  # of the modules that are as large, to be placed
    for i, module in enumerate(modules):
        if module.bytes == largest:
            number -= 1
        if not number:
            largest = max((other.bytes for other in modules[i + 1 :]), default=0)
            number = sum(other.bytes == largest for other in modules[i + 1 :])
        while device < len(limits):
            if used[device] + module.bytes <= limits[device] - (largest if device == 0 else 0):
                used[device] += module.bytes
                break
            device += 1
        places.append(device if device < len(limits) else None)
    return Map(tuple(modules), tuple(places), len(limits))


def limit_gpus(
    modules: Sequence[Module], free: int, gpus: int, max_memory: Sequence[int], *, balanced: bool
) -> list[int]:
    """The bytes of weights that each GPU may hold: as much as the others and a buffer, the last one what is free."""
    limits = [min(free, size) for size in max_memory] or [free] * gpus
    if len(limits) == 1:
        share, whole = SHARE_OF_ONE
        return limits if max_memory else [free * share // whole]
    if balanced:
        times, parts = BUFFER
        total = sum(module.bytes for module in modules)
        each = total // len(limits) + max(module.bytes for module in modules) * times // parts
        limits[:-1] = [min(each, limit) for limit in limits[:-1]]
    return limits


def parse_max_memory(text: str) -> tuple[int, ...]:
    """The limits of the GPUs, in their order; () for none.

    >>> parse_max_memory("0:10GiB,1:20GiB")
    (10737418240, 21474836480)

    Raises: ParamcountError if it is not such a list.
    """
    sizes = []
    for i, part in enumerate(text.split(",") if text else ()):
        match = re.fullmatch(rf"\s*{i}\s*:\s*(\d{{1,15}})(?:\.(\d{{1,9}}))?\s*([A-Za-z]{{0,3}})\s*", part, re.ASCII)
        if match is None or match[3].upper() not in UNITS:
            found = f"= {describe_value(text)}"
            raise ParamcountError(found, where="max_memory", expected="a size for each GPU, such as 0:10GiB,1:20GiB")
        decimals = match[2] or ""
        sizes.append(int(match[1] + decimals) * UNITS[match[3].upper()] // 10 ** len(decimals))
    return tuple(sizes)
