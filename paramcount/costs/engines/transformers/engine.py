"""What transformers allocates: what the computation needs, but a convolution keeps as many inputs as it is wide.

With device_map="auto", Accelerate divides the layers among GPUs and the CPU. The first GPU computes the layers on the
CPU, and has their cache.

Source: transformers 5.24, cache_utils.py (DynamicCache); Accelerate 1.15, big_modeling.py (dispatch_model).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from paramcount.costs.caches import CacheGroup, merge_groups
from paramcount.costs.devices import Overhead
from paramcount.costs.dtypes import KVDtype
from paramcount.costs.engines.engine import BF16, F32, Engine
from paramcount.costs.engines.records import Allocation, CacheRequest, Share
from paramcount.costs.engines.transformers.activations import (
    CONTEXT,
    LOGITS,
    LOGITS_COPY,
    TransformersOptions,
    estimate_activations,
)
from paramcount.costs.engines.transformers.placement import (
    Map,
    Place,
    limit_gpus,
    list_modules,
    parse_max_memory,
    place_modules,
)
from paramcount.costs.sharding import find_runs, select_layers

if TYPE_CHECKING:
    from paramcount.costs.deployment import Deployment


class Transformers(Engine):
    name = "transformers"
    options = MappingProxyType(TransformersOptions()._asdict())
    most_devices = 16  # over which layers are divided
    choices = MappingProxyType(
        {
            "attn_implementation": ("sdpa", "eager", "flash_attention_2", "flash_attention_3"),
            "device_map": ("none", "auto", "balanced", "sequential"),
        }
    )
    least = MappingProxyType({"logits_to_keep": 0})
    splits_layers = True
    quantises_cache = False  # the cache has the dtype of the activations

    def check_options(self, given: Mapping[str, object]) -> None:
        super().check_options(given)
        parse_max_memory(str(given.get("max_memory", "")))

    def allocate(self, groups: Sequence[CacheGroup], request: CacheRequest) -> Allocation:
        convolutions = [group for group in groups if group.is_convolution]
        widened = [  # [channels, width - 1] with one more
            group._replace(shapes=tuple((channels, n + 1) for channels, n in group.shapes)) for group in convolutions
        ]
        notes = ("convolutions keep as many inputs as they are wide",) if convolutions else ()
        others = [group for group in groups if not group.is_convolution]
        return super().allocate([*others, *widened], request)._replace(notes=notes)

    def choose_state_dtype(self, state: CacheGroup, request: CacheRequest) -> KVDtype:
        return F32 if state.in_float32 else BF16

    def estimate_overhead(self, deployment: Deployment, stage: int) -> Overhead:
        """A CUDA context and the activations of a prompt, computed from the sizes of the layers."""
        options = TransformersOptions(**deployment.request.options)
        is_last = stage == deployment.parallel.pp - 1
        return estimate_activations(deployment, options, LOGITS if is_last else 0)

    def measure(self, deployment: Deployment) -> tuple[Share, ...]:
        """With a device map: a share per GPU, and one of the CPU if something lies there."""
        options = TransformersOptions(**deployment.request.options)
        if options.device_map == "none":
            return super().measure(deployment)
        placed, shares = self.place(deployment), []
        offloaded = placed.find_largest(None)
        for stage, place in enumerate(placed.used):
            layers = placed.list_layers(place)
            allocation = self.allocate(self.list_cached(deployment, placed, place), deployment.request)
            overhead = Overhead(0, 0, 0)
            if place is not None:
                computes_logits = placed.holds_output(place, tied=deployment.shape.tied)
                logits_bytes = LOGITS if computes_logits else LOGITS_COPY if place == 0 else 0
                extra = offloaded if place == 0 else 0
                overhead = estimate_activations(deployment, options, logits_bytes, extra=extra)
            share = Share(
                stage, len(layers), placed.sum_bytes(place), allocation.kv_bytes, allocation.state_bytes, overhead
            )
            extras = tuple(list_extras(placed, place))
            shares.append(share._replace(device=place, first_layer=min(layers, default=0), extras=extras))
        if draft := deployment.find_draft():  # on the first GPU
            shares[0] = self.add_draft(shares[0], draft)
        return tuple(shares)

    def list_groups(self, deployment: Deployment) -> list[tuple[CacheGroup, ...]]:
        if deployment.request.options.get("device_map", "none") == "none":
            return super().list_groups(deployment)
        placed = self.place(deployment)
        return [self.list_cached(deployment, placed, place) for place in placed.used]

    def place(self, deployment: Deployment) -> Map:
        """Where each layer lies."""
        options, device = TransformersOptions(**deployment.request.options), deployment.device
        modules = list_modules(deployment.rows, deployment.shape)
        free = device.budget_bytes - (CONTEXT[0] if device.overhead_bytes is None else device.overhead_bytes)
        given = parse_max_memory(options.max_memory)
        balanced = options.device_map != "sequential"
        limits = limit_gpus(modules, max(0, free), deployment.parallel.devices, given, balanced=balanced)
        return place_modules(modules, limits)

    def list_cached(self, deployment: Deployment, placed: Map, place: Place) -> tuple[CacheGroup, ...]:
        """What a device caches: that of its layers, on the first GPU also that of the layers on the CPU."""
        if place is None:
            return ()
        layers = placed.list_layers(place)
        found = [group for repeat, groups in deployment.caches for group in groups if repeat is None and place == 0]
        if place == 0:
            layers += placed.list_layers(None)
        for run in find_runs(layers):
            found += select_layers(deployment.caches, run)
        return merge_groups(found)


def list_extras(placed: Map, place: Place) -> list[str]:
    """What lies on a device besides layers."""
    names = {"encoders": "encoders", "inputs": "token embedding", "output": "LM head"}
    return [names[module.name] for module, at in zip(placed.modules, placed.places) if at == place and module.name]


TRANSFORMERS = Transformers()
