"""What llama.cpp allocates: the KV cache and the recurrent state, and what lies on each device.

Source: llama.cpp, commit 0c1e57098 (October 2026): src/llama-context.cpp, llama-kv-cache.cpp, llama-kv-cache-iswa.cpp
and llama-memory-recurrent.cpp, common/arg.cpp for the options. A batch is its -np, and a context the share of -c that
each sequence has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from paramcount.checkpoints.writers.gguf_names import find_layout
from paramcount.costs.caches import CacheGroup, merge_groups
from paramcount.costs.devices import Overhead
from paramcount.costs.dtypes import KVDtype
from paramcount.costs.engines.command_line import join_command
from paramcount.costs.engines.engine import F32, Engine
from paramcount.costs.engines.llama_cpp.cells import (
    VERSIONS,
    LlamaCppOptions,
    count_cell_bytes,
    count_cells,
    describe,
)
from paramcount.costs.engines.llama_cpp.offloads import list_offloads
from paramcount.costs.engines.llama_cpp.overhead import LayerCache, estimate_overheads, make_batch
from paramcount.costs.engines.llama_cpp.placement import (
    Place,
    Placement,
    join_latent,
    list_extras,
    parse_split,
    place_layers,
    place_weights,
)
from paramcount.costs.engines.records import Allocation, CacheRequest, Share, Support
from paramcount.costs.gguf_mixes import MOST_LAYERS
from paramcount.costs.sharding import Parallelism, ShardShape, compute_once, find_runs, select_layers
from paramcount.errors import ParamcountError, count_noun, describe_value
from paramcount.zoo import count_model

if TYPE_CHECKING:
    from paramcount.costs.deployment import Deployment
    from paramcount.zoo import Model

MOST_GPUS = 16  # GGML_CUDA_MAX_DEVICES
ALL = 999  # layers, for the command line


class LlamaCpp(Engine):
    """Cells in multiples of 256 for each sequence; sliding windows also hold a micro-batch; states are in FP32."""

    name = "llama.cpp"
    options: Mapping[str, int | float | bool | str] = MappingProxyType(LlamaCppOptions()._asdict())
    choices = MappingProxyType(
        {"mla": ("latent", "latent-and-values", "expanded"), "flash_attn": ("auto", "on", "off"), "version": VERSIONS}
    )
    splits_layers = True
    reads_gguf = True
    most_devices = MOST_GPUS

    def check_options(self, given: Mapping[str, object]) -> None:
        split = given.get("tensor_split", "")
        super().check_options({name: value for name, value in given.items() if name != "tensor_split"})
        if split != "":
            parse_split(split)

    def find_support(self, model: Model, groups: Sequence[CacheGroup], options: Mapping[str, Any]) -> Support:
        """Architectures whose tensor names in GGUF files are known."""
        name = count_model(model).architecture
        with suppress(ParamcountError):
            find_layout(name, None, model.sizes)
            return Support()
        return Support(False, f"paramcount does not know llama.cpp's tensor names for {name}, if it supports the model")

    def read_options(self, request: CacheRequest) -> LlamaCppOptions:
        """The options under llama.cpp's names."""
        return LlamaCppOptions(**request.options)

    def apply_options(
        self, request: CacheRequest, *, has_context: bool, memory_bytes: int = 0, limit: int | None = None
    ) -> CacheRequest:
        """The context of each sequence is its share of ctx_size."""
        options = self.read_options(request)
        if options.parallel:
            if request.batch not in (1, options.parallel):
                raise ParamcountError("cannot be combined with batch", where="parallel")
            request = request._replace(batch=options.parallel)
        if options.ctx_size:
            if has_context:
                raise ParamcountError("cannot be combined with context, of which it is the sum", where="ctx_size")
            request = request._replace(context=max(1, options.ctx_size // request.batch))
        left = {name: value for name, value in request.options.items() if name not in ("ctx_size", "parallel")}
        return request._replace(options=left)

    def allocate(self, groups: Sequence[CacheGroup], request: CacheRequest) -> Allocation:
        """Models all of whose layers have a window, such as Mistral 7B v0.1 and Phi-3, keep all tokens.

        llama.cpp knows windows only of architectures that mix layers with and without one (models/*.cpp, swa_type).
        """
        options = self.choose_windows(groups, request)
        return self.count_allocation(groups, request, options)._replace(notes=describe(groups, request, options))

    def choose_windows(self, groups: Sequence[CacheGroup], request: CacheRequest) -> LlamaCppOptions:
        """The options, with full windows if no layer of the model sees all tokens."""
        options = self.read_options(request)
        if all(group.longest is not None for group in groups if group.stream == "tokens"):
            return options._replace(swa_full=True)
        return options

    def count_allocation(
        self, groups: Sequence[CacheGroup], request: CacheRequest, options: LlamaCppOptions
    ) -> Allocation:
        """The bytes of some layers of a model."""
        kv_bytes = sum(
            group.layers * count_cells(group, request, options) * count_cell_bytes(group, request, options.mla)
            for group in groups
            if not group.is_state
        )
        state_bytes = request.batch * (1 + options.n_rs_seq) * self.count_state_bytes(groups, request)
        return Allocation(kv_bytes, state_bytes)

    def choose_state_dtype(self, state: CacheGroup, request: CacheRequest) -> KVDtype:
        return F32

    def check_parallelism(self, shape: ShardShape, parallel: Parallelism) -> None:
        if max(parallel.tp, parallel.ep) > 1:
            found = f"{parallel.describe()}, but llama.cpp divides the layers among GPUs"
            raise ParamcountError(found, where="tp" if parallel.tp > 1 else "ep", expected="pp alone")
        if parallel.pp > MOST_GPUS:
            raise ParamcountError(f"= {parallel.pp}", where="pp", expected=f"at most {MOST_GPUS} GPUs")
        super().check_parallelism(shape, parallel)

    def list_uneven(self, shape: ShardShape, parallel: Parallelism) -> list[str]:
        return []  # each device has a line of its own

    def place(self, deployment: Deployment) -> Placement:
        """Where each layer lies."""
        options, gpus = self.read_options(deployment.request), deployment.parallel.pp
        splits = parse_split(options.tensor_split) if options.tensor_split else (1.0,) * gpus
        if len(splits) > gpus:
            found = f"= {describe_value(options.tensor_split)} for {count_noun(gpus, 'GPU')}"
            raise ParamcountError(found, where="tensor_split", expected=f"at most {count_noun(gpus, 'number')}")
        splits += (0.0,) * (gpus - len(splits))
        number, first, is_last = options.n_gpu_layers, options.n_cpu_moe, options.version == VERSIONS[0]
        n_layers = deployment.shape.n_layers
        if n_layers > MOST_LAYERS:
            raise ParamcountError(
                f"has {n_layers:,} layers", where=deployment.model.id, expected=f"at most {MOST_LAYERS} for llama.cpp"
            )
        return place_layers(n_layers, number, splits, first, output_last=is_last)

    def measure(self, deployment: Deployment) -> tuple[Share, ...]:
        """One share per GPU, and one of the CPU, which always holds the token embedding."""
        rows, shape, placement = deployment.rows, deployment.shape, self.place(deployment)
        places = placement.places

        is_old = self.read_options(deployment.request).mla == "expanded"

        def weigh() -> tuple[int, ...]:
            return tuple(place_weights(join_latent(rows) if is_old else rows, placement, shape).values())

        weights = compute_once(rows, (self.name, placement, is_old), weigh)
        whole = merge_groups(group for _, groups in deployment.caches for group in groups)
        options = self.choose_windows(whole, deployment.request)
        overheads = self.estimate_overheads(deployment, placement, options)
        shares = []
        for stage, (place, size) in enumerate(zip(places, weights)):
            layers = placement.list_layers(place)
            groups = self.list_cached(deployment, placement, place)
            allocation = self.count_allocation(groups, deployment.request, options)
            share = Share(stage, len(layers), size, allocation.kv_bytes, allocation.state_bytes, overheads[place])
            extras = tuple(list_extras(deployment, placement, place))
            shares.append(share._replace(device=place, first_layer=min(layers, default=0), extras=extras))
        draft = deployment.find_draft()
        return tuple(shares) if draft is None else self.add_draft_layers(shares, draft)

    def add_draft_layers(self, shares: Sequence[Share], draft: Deployment) -> tuple[Share, ...]:
        """The shares with what a draft model, whose layers are divided likewise, has on the same devices: weights,
        cache and compute buffers."""
        found = {share.device: share for share in self.measure(draft)}
        added = []
        for share in shares:
            if more := found.get(share.device):
                buffers = sum(size for what, size in more.overhead.items if what != "GPU context")
                usual, least, most, items = share.overhead
                items += (("buffers of the draft", buffers),) if buffers else ()
                share = share._replace(
                    draft_weights_bytes=more.weights_bytes,
                    draft_cache_bytes=more.cache_bytes,
                    overhead=Overhead(usual + buffers, least + buffers, most + buffers, items),
                )
            added.append(share)
        return tuple(added)

    def estimate_overheads(
        self, deployment: Deployment, placement: Placement, options: LlamaCppOptions
    ) -> dict[Place, Overhead]:
        """Computed for models that llama.cpp supports; what the user says comes first."""
        assumed: dict[Place, Overhead] = dict.fromkeys(placement.places, deployment.device.assume_overhead())
        assumed[None] = Overhead(0, 0, 0)
        if deployment.device.overhead_bytes is not None:
            return assumed
        request, streams = deployment.request, 1 if options.kv_unified else deployment.request.batch
        caches: dict[int, LayerCache] = {}
        for repeat, groups in deployment.caches:
            for group in groups if repeat else ():
                cells = 0 if group.is_state else count_cells(group, request, options)
                size = cells * count_cell_bytes(group, request, options.mla)
                for i in repeat.indices if repeat and cells else ():
                    caches[i] = LayerCache(cells // streams, size + caches.get(i, LayerCache(0, 0)).bytes)
        with suppress(ParamcountError):
            return estimate_overheads(deployment, placement, caches, make_batch(request, options))
        return assumed

    def list_groups(self, deployment: Deployment) -> list[tuple[CacheGroup, ...]]:
        placement = self.place(deployment)
        return [self.list_cached(deployment, placement, place) for place in placement.places]

    def list_cached(self, deployment: Deployment, placement: Placement, place: Place) -> tuple[CacheGroup, ...]:
        """What is cached on a device: that of its layers, and on the CPU what belongs to none."""
        if self.read_options(deployment.request).no_kv_offload:
            if place is not None:
                return ()
            layers = tuple(range(len(placement.layers)))
        else:
            layers = placement.list_layers(place)
        found = [group for repeat, groups in deployment.caches for group in groups if repeat is None and place is None]
        for run in find_runs(layers):
            found += select_layers(deployment.caches, run)
        return merge_groups(found)

    def list_offloads(self, deployment: Deployment) -> Iterator[dict[str, object]]:
        return list_offloads(deployment, self.options)

    def write_command(self, deployment: Deployment, name: str) -> str:
        """`llama-server`, whose -c is the context of all sequences together."""
        request, options = deployment.request, self.read_options(deployment.request)
        keys, values = request.kv_dtype.keys.name, request.kv_dtype.values.name
        flags: dict[str, object] = {
            "-m": name,
            "-c": request.context * request.batch,
            "-np": request.batch,
            "-ngl": ALL if options.n_gpu_layers < 0 else options.n_gpu_layers,
            "--n-cpu-moe": options.n_cpu_moe or None,
            "-ts": options.tensor_split or None,
            "-ub": request.options.get("ubatch_size"),
            "-fa": None if options.flash_attn == "auto" else options.flash_attn,
            "-ctk": keys if keys != "f16" else None,
            "-ctv": values if values != "f16" else None,
            "--kv-unified": options.kv_unified,
            "--no-kv-offload": options.no_kv_offload,
            "--swa-full": options.swa_full,
        }
        if deployment.draft:
            draft = os.path.basename(deployment.draft.place)
            flags |= {"-md": f"{draft}-{deployment.draft.label}.gguf", "-ngld": ALL}
        return join_command("llama-server", flags)


LLAMA_CPP = LlamaCpp()
