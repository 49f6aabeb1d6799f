"""Whether a model fits a GPU: what is left, the longest context, the largest batch and the fewest GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from paramcount.costs.allocation import Engine, Request
from paramcount.costs.caches import CacheGroup, merge_groups
from paramcount.costs.dtypes import parse_kv_dtype
from paramcount.costs.gpus import find_gpu, parse_devices
from paramcount.costs.sharding import (
    Parallelism,
    Shape,
    check_parallelism,
    list_uneven,
    select_layers,
    share_weights,
    split_layers,
)
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.errors import ParamcountError, describe_value
from paramcount.output.numbers import format_bytes

FP8 = parse_kv_dtype("fp8")
LONGEST_CONTEXT, LARGEST_BATCH = 10**9, 10**6
WITHIN_NODE = 8  # GPUs over which tensor parallelism is tried first
MOST_DEVICES = 1024
Formats: TypeAlias = Mapping[str, Sequence[StoredTensor]]


class Device(NamedTuple):
    """The memory that a model may take."""

    name: str
    memory_bytes: int  # of each device
    overhead_bytes: int  # that a runtime takes on each device, an assumption
    utilization: float | None = None  # the share of the memory that the engine may use; None: its default

    @property
    def usable_bytes(self) -> int:
        return int(self.memory_bytes * (1.0 if self.utilization is None else self.utilization)) - self.overhead_bytes


class Deployment(NamedTuple):
    """Everything that decides how much memory a model takes on each device."""

    rows: Sequence[StoredTensor]
    caches: Mapping[int, Sequence[CacheGroup]]  # {layer: what it caches}; -1 for what is outside of any
    shape: Shape
    engine: Engine
    request: Request
    device: Device

    def measure(self, parallel: Parallelism) -> tuple[Share, ...]:
        """The share of one device of each pipeline stage."""
        weights = share_weights(self.rows, self.shape, parallel)
        request, layers = self.request._replace(tp=parallel.tp), split_layers(self.shape.n_layers, parallel.pp)
        shares = []
        for i, groups in enumerate(self.list_stages(parallel)):
            allocation = self.engine.allocate(groups, request)
            shares.append(Share(i, len(layers[i]), weights[i], allocation.kv_bytes, allocation.state_bytes))
        return tuple(shares)

    def count_tokens(self, parallel: Parallelism) -> int:
        """The tokens that the KV cache can hold, in sequences of the context; of the stage that holds the fewest."""
        request = self.request._replace(tp=parallel.tp)
        weights = share_weights(self.rows, self.shape, parallel)
        return min(
            self.engine.count_tokens(groups, request, self.device.usable_bytes - size)
            for groups, size in zip(self.list_stages(parallel), weights)
        )

    def list_stages(self, parallel: Parallelism) -> list[tuple[CacheGroup, ...]]:
        """What the layers of each pipeline stage cache."""
        stages = []
        for i, layers in enumerate(split_layers(self.shape.n_layers, parallel.pp)):
            outside = self.caches.get(-1, ()) if i == 0 else ()
            stages.append(merge_groups([*outside, *select_layers(self.caches, layers)]))
        return stages

    def holds(self, parallel: Parallelism, *, context: int | None = None, batch: int | None = None) -> bool:
        """Whether every device has enough memory, also for another context or batch size."""
        request = self.request._replace(context=context or self.request.context, batch=batch or self.request.batch)
        shares = self._replace(request=request).measure(parallel)
        return max(share.total_bytes for share in shares) <= self.device.usable_bytes


class Share(NamedTuple):
    """What one device of a pipeline stage holds."""

    stage: int
    layers: int
    weights_bytes: int
    kv_cache_bytes: int
    state_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.weights_bytes + self.kv_cache_bytes + self.state_bytes


class Fit(NamedTuple):
    """How a model fits a number of devices."""

    device: str
    devices: int
    parallelism: str  # such as "tp 8"; "" for one device
    memory_bytes: int  # of each device
    overhead_bytes: int  # assumed, on each device
    utilization: float
    needed_bytes: int  # on the fullest device, overhead included
    free_bytes: int  # negative if it does not fit
    longest_context: int  # that fits at this batch size; 0 if the weights do not fit
    largest_batch: int  # that fits at this context; 0 if none does
    kv_tokens: int  # that the KV cache holds in sequences of this context, parts of sequences included
    fewest_devices: int | None  # that hold the model at this context and batch; None if more than 1,024
    fewest_parallelism: str
    shares: tuple[Share, ...]
    uneven: tuple[str, ...] = ()  # what does not divide evenly among the devices
    advice: str = ""  # what helps most

    @property
    def fits(self) -> bool:
        return self.free_bytes >= 0

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        return self._asdict() | {
            "fits": self.fits,
            "shares": [share._asdict() for share in self.shares],
            "uneven": list(self.uneven),
        }


def make_device(
    gpu: object, memory_bytes: object, overhead_bytes: int, utilization: object = None
) -> tuple[int, Device]:
    """(number of devices, device) for a GPU by name, such as "8xH100", or for a size of memory.

    Raises: ParamcountError for an unknown GPU, if both or neither are given, and for a wrong utilization.
    """
    if utilization is not None and (not isinstance(utilization, (int, float)) or not 0 < utilization <= 1):
        raise ParamcountError(f"= {describe_value(utilization)}", where="utilization", expected="above 0, at most 1")
    if (gpu is None) == (memory_bytes is None):
        raise ParamcountError("gpu cannot be combined with memory" if gpu else "needs a GPU or a size of memory")
    if gpu is None:
        size = check_size("memory", memory_bytes, limit=10**18)
        return 1, Device(f"device with {format_bytes(size)}", size, overhead_bytes, utilization)
    number, name = parse_devices(gpu, where="gpu")
    found = find_gpu(name)
    return number, Device(found.name, found.memory_bytes, overhead_bytes, utilization)


def check_size(name: str, value: object, *, limit: int = 10**9) -> int:
    """The value of an option.

    Raises: ParamcountError unless it is an integer from 1 to the limit.
    """
    if type(value) is not int or not 1 <= value <= limit:
        raise ParamcountError(f"= {describe_value(value)}", where=name, expected=f"an integer from 1 to {limit:,}")
    return value


def make_parallelism(devices: int, tp: int | None, pp: int | None, ep: int | None) -> Parallelism:
    """How a model is divided among so many devices: by tensor parallelism, unless something else is given.

    Raises: ParamcountError if the numbers do not multiply to the number of devices.
    """
    for name, value in (("tp", tp), ("pp", pp), ("ep", ep)):
        if value is not None and value < 1:
            raise ParamcountError(f"= {value}", where=name, expected="an integer of at least 1")
    stages = pp or 1
    width = tp or ep or max(1, devices // stages)
    parallel = Parallelism(tp or (1 if ep else width), stages, ep or 1)
    if parallel.devices != devices and devices > 1:
        found = f"{parallel.describe() or 'tp 1'} uses {parallel.devices} devices, but there are {devices}"
        raise ParamcountError(found)
    return parallel


def measure_fit(deployment: Deployment, parallel: Parallelism, smaller: Formats, limit: int | None) -> Fit:
    """How a deployment fits.

    `smaller`: {name for people: rows} of other formats of the weights, largest first. `limit`: the most tokens that
    the model takes; None if unknown.

    Raises: ParamcountError if the model cannot be divided like this.
    """
    check_parallelism(deployment.shape, parallel)
    device, shares = deployment.device, deployment.measure(parallel)
    needed = max(share.total_bytes for share in shares)
    fewest = find_fewest(deployment)
    fit = Fit(
        device=device.name,
        devices=parallel.devices,
        parallelism=parallel.describe(),
        memory_bytes=device.memory_bytes,
        overhead_bytes=device.overhead_bytes,
        utilization=1.0 if device.utilization is None else device.utilization,
        needed_bytes=needed + device.overhead_bytes,
        free_bytes=device.usable_bytes - needed,
        longest_context=find_longest_context(deployment, parallel),
        largest_batch=find_largest(lambda n: deployment.holds(parallel, batch=n), LARGEST_BATCH),
        kv_tokens=deployment.count_tokens(parallel),
        fewest_devices=fewest.devices if fewest else None,
        fewest_parallelism=fewest.describe() if fewest else "",
        shares=shares,
        uneven=tuple(list_uneven(deployment.shape, parallel)),
    )
    return fit._replace(advice=advise(fit, deployment, parallel, smaller, limit or LONGEST_CONTEXT))


def find_longest_context(deployment: Deployment, parallel: Parallelism) -> int:
    return find_largest(lambda n: deployment.holds(parallel, context=n), LONGEST_CONTEXT)


def advise(fit: Fit, deployment: Deployment, parallel: Parallelism, smaller: Formats, limit: int) -> str:
    """What helps most: smaller weights if the model does not fit, else a smaller cache; "" if neither does."""
    if not fit.fits:
        fitting = (label for label, rows in smaller.items() if deployment._replace(rows=rows).holds(parallel))
        label = next(fitting, "")
        return f"{label} weights fit" if label else ""
    request = deployment.request
    if request.kv_dtype.keys.count_bytes(32) <= FP8.keys.count_bytes(32) or fit.longest_context >= limit:
        return ""
    longest = find_longest_context(deployment._replace(request=request._replace(kv_dtype=FP8)), parallel)
    reached = f"{limit:,} tokens (the model's limit)" if longest >= limit else f"{longest:,} tokens"
    return f"an FP8 KV cache (--kv-dtype fp8) raises the longest context to {reached}"


def find_largest(is_possible: Callable[[int], bool], limit: int) -> int:
    """The largest number up to the limit that is possible, if no larger number than an impossible one is; else 0."""
    if not is_possible(1):
        return 0
    low, high = 1, 2
    while high <= limit and is_possible(high):
        low, high = high, 2 * high
    high = min(high, limit + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_possible(middle) else (low, middle)
    return low


def find_fewest(deployment: Deployment) -> Parallelism | None:
    """The fewest devices that hold a model: tensor parallelism within a node, pipeline stages beyond it."""
    candidates = [Parallelism(tp=tp) for tp in range(1, WITHIN_NODE + 1)]
    candidates += [Parallelism(tp=WITHIN_NODE, pp=pp) for pp in range(2, MOST_DEVICES // WITHIN_NODE + 1)]
    possible = (parallel for parallel in candidates if is_divisible(deployment.shape, parallel))
    return next((parallel for parallel in possible if deployment.holds(parallel)), None)


def is_divisible(shape: Shape, parallel: Parallelism) -> bool:
    try:
        check_parallelism(shape, parallel)
    except ParamcountError:
        return False
    return True
