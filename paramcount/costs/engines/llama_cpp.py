"""What llama.cpp allocates: the KV cache and the recurrent state, and what lies on each device.

Source: llama.cpp, commit 0c1e57098 (October 2026): src/llama-context.cpp, llama-kv-cache.cpp, llama-kv-cache-iswa.cpp
and llama-memory-recurrent.cpp, common/arg.cpp for the options. A batch is its -np, and a context the share of -c that
each sequence has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from paramcount.costs.caches import CacheGroup, merge_groups, split_heads
from paramcount.costs.devices import Overhead
from paramcount.costs.dtypes import KVDtype
from paramcount.costs.engines.engine import F32, Allocation, CacheRequest, Engine, Share, join_command
from paramcount.costs.engines.llama_cpp_placement import Place, Placement, place_layers, place_weights
from paramcount.costs.sharding import Parallelism, ShardShape, compute_once, select_layers
from paramcount.counting.components import TOWERS
from paramcount.errors import ParamcountError, count_noun, describe_value

if TYPE_CHECKING:
    from paramcount.costs.fit import Deployment

MOST_GPUS = 16  # GGML_CUDA_MAX_DEVICES
ALL = 999  # layers, for the command line


class LlamaCppOptions(NamedTuple):
    """Options of the engine, as llama-server calls them."""

    ctx_size: int = 0  # of all sequences together; 0: the context of each times their number
    parallel: int = 0  # sequences; 0: the batch
    batch_size: int = 2048
    ubatch_size: int = 512
    n_gpu_layers: int = -1  # layers on GPUs, the LM head included; -1: all
    n_cpu_moe: int = 0  # first layers whose experts stay on the CPU
    tensor_split: str = ""  # such as "3,1": shares of the GPUs; "": equal ones
    flash_attn: str = "auto"
    kv_unified: bool = False  # one cache for all sequences
    no_kv_offload: bool = False  # the cache stays on the CPU
    swa_full: bool = False  # sliding windows keep all tokens
    n_outputs_max: int = 0  # tokens of a micro-batch whose logits are computed; 0: one per sequence, as llama-server
    n_rs_seq: int = 0  # earlier states that are kept to go back to
    # What earlier versions did otherwise:
    padding: int = 256  # cells; 32 before August 2025 without flash attention
    # From April 2025 to January 2026 the latent was stored as values, too; files converted before that, and -mla 0 of
    # ik_llama.cpp, have keys and values for each head.
    mla: str = "latent"
    output_last: bool = False  # the LM head is the last of the layers to go to a GPU


class LlamaCpp(Engine):
    """Cells in multiples of 256 for each sequence; sliding windows also hold a micro-batch; states are in FP32."""

    name = "llama.cpp"
    options: Mapping[str, int | float | bool | str] = MappingProxyType(LlamaCppOptions()._asdict())
    choices = MappingProxyType(
        {"mla": ("latent", "latent-and-values", "expanded"), "flash_attn": ("auto", "on", "off")}
    )
    splits_layers = True
    most_devices = MOST_GPUS

    def check_options(self, given: Mapping[str, object]) -> None:
        split = given.get("tensor_split", "")
        super().check_options({name: value for name, value in given.items() if name != "tensor_split"})
        if split != "":
            parse_split(split)

    def read_options(self, request: CacheRequest) -> LlamaCppOptions:
        """The options under llama.cpp's names."""
        return LlamaCppOptions(**request.options)

    def apply_options(self, request: CacheRequest, *, has_context: bool) -> CacheRequest:
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

    def list_parallelisms(self) -> Iterator[Parallelism]:
        yield from (Parallelism(pp=n) for n in range(1, MOST_GPUS + 1))

    def place(self, deployment: Deployment) -> Placement:
        """Where each layer lies."""
        options, gpus = self.read_options(deployment.request), deployment.parallel.pp
        splits = parse_split(options.tensor_split) if options.tensor_split else (1.0,) * gpus
        if len(splits) > gpus:
            found = f"= {describe_value(options.tensor_split)} for {count_noun(gpus, 'GPU')}"
            raise ParamcountError(found, where="tensor_split", expected=f"at most {count_noun(gpus, 'number')}")
        splits += (0.0,) * (gpus - len(splits))
        number, first = options.n_gpu_layers, options.n_cpu_moe
        return place_layers(deployment.shape.n_layers, number, splits, first, output_last=options.output_last)

    def measure(self, deployment: Deployment) -> tuple[Share, ...]:
        """One share per GPU, and one of the CPU, which always holds the token embedding."""
        rows, shape, placement = deployment.rows, deployment.shape, self.place(deployment)
        places = placement.places

        def weigh() -> tuple[int, ...]:
            return tuple(place_weights(rows, placement, shape).values())

        weights = compute_once(rows, (self.name, placement), weigh)
        whole = merge_groups(group for _, groups in deployment.caches for group in groups)
        options = self.choose_windows(whole, deployment.request)
        shares = []
        for stage, (place, size) in enumerate(zip(places, weights)):
            layers = placement.list_layers(place)
            groups = self.list_cached(deployment, placement, place)
            allocation = self.count_allocation(groups, deployment.request, options)
            overhead = deployment.device.assume_overhead() if place is not None else Overhead(0, 0, 0)
            share = Share(stage, len(layers), size, allocation.kv_bytes, allocation.state_bytes, overhead)
            extras = tuple(list_extras(deployment, placement, place))
            shares.append(share._replace(device=place, first_layer=min(layers, default=0), extras=extras))
        return tuple(shares)

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
        for start, stop in find_runs(layers):
            found += select_layers(deployment.caches, range(start, stop))
        return merge_groups(found)

    def write_command(self, deployment: Deployment, name: str) -> str:
        """`llama-server`, whose -c is the context of all sequences together."""
        request, options = deployment.request, self.read_options(deployment.request)
        keys, values = request.kv_dtype.keys.name, request.kv_dtype.values.name
        flags = {
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
        return join_command("llama-server", flags)


def parse_split(value: object) -> tuple[float, ...]:
    """The shares of the GPUs.

    >>> parse_split("3,1")
    (3.0, 1.0)
    """
    words = str(value).split(",")
    if not all(word.replace(".", "", 1).isdecimal() and len(word) < 12 for word in words) or not any(map(float, words)):
        raise ParamcountError(f"= {describe_value(value)}", where="tensor_split", expected="numbers such as 3,1")
    return tuple(map(float, words))


def find_runs(layers: Sequence[int]) -> list[tuple[int, int]]:
    """(first, one past the last) of each run of layers.

    >>> find_runs((0, 1, 2, 5))
    [(0, 3), (5, 6)]
    """
    runs: list[tuple[int, int]] = []
    for layer in layers:
        if runs and runs[-1][1] == layer:
            runs[-1] = (runs[-1][0], layer + 1)
        else:
            runs.append((layer, layer + 1))
    return runs


def list_extras(deployment: Deployment, placement: Placement, place: Place) -> Iterator[str]:
    """What lies on a device besides whole layers."""
    components = {row.tensor.component.partition(".")[0] for row in deployment.rows}
    if place is None:
        yield "token embedding"
        if placement.n_cpu_moe and "experts" in components:
            n = min(placement.n_cpu_moe, len(placement.layers))
            yield f"experts of layers 0–{n - 1}" if n > 1 else "experts of layer 0"
    if place == placement.output:
        is_tied = deployment.shape.tied and "lm_head" not in components
        yield "copy of the token embedding" if is_tied and place is not None else "LM head"
    if place == 0 and any(row.tensor.part in TOWERS for row in deployment.rows):
        yield "encoders"


def count_cells(group: CacheGroup, request: CacheRequest, options: LlamaCppOptions) -> int:
    """The cells of one layer, for all sequences together."""
    padding, sequences = options.padding, request.batch
    streams, shared = (1, sequences) if options.kv_unified else (sequences, 1)
    tokens = request.context if group.stream == "tokens" else request.source or 0
    cells = round_up(-(-tokens * shared // group.block), padding)
    if group.longest is not None and not options.swa_full:
        cells = round_up(min(cells, (group.longest + 1) * shared + options.ubatch_size), padding)
    return cells * streams


def count_cell_bytes(group: CacheGroup, request: CacheRequest, mla: str) -> int:
    """Bytes of one cell of a layer."""
    dtype = request.kv_dtype
    if not group.expanded or mla == "latent":
        return group.count_bytes(dtype, request.tp)
    if mla == "latent-and-values":
        return group.count_bytes(dtype, request.tp) + dtype.values.count_bytes(prod(group.shapes[0]))
    keys, values = (prod(split_heads(shape, request.tp, False)) for shape in group.expanded)
    return dtype.keys.count_bytes(keys) + dtype.values.count_bytes(values)


def describe(groups: Sequence[CacheGroup], request: CacheRequest, options: LlamaCppOptions) -> tuple[str, ...]:
    each = "" if options.kv_unified else " per sequence"
    total, n = request.context * request.batch, request.batch
    shared = "shared by" if options.kv_unified else "divided among"
    notes = [f"-c is {total:,}: {shared} {n:,} sequences (-np {n})"] if n > 1 else []
    notes.append(f"llama.cpp allocates multiples of {options.padding:,} cells{each}")
    if any(group.longest is not None for group in groups) and not options.swa_full:
        notes.append(f"sliding windows hold {options.ubatch_size:,} more cells (ubatch_size)")
    if any(group.expanded for group in groups) and options.mla != "latent":
        what = "keys and values of every head" if options.mla == "expanded" else "the latent as values, too"
        notes.append(f"MLA layers cache {what}")
    return tuple(notes)


def round_up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


LLAMA_CPP = LlamaCpp()
