"""Whether a model fits a GPU: what is left, the longest context, the largest batch, the fewest GPUs and what helps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from paramcount.costs.caches import CacheGroup, LayerCaches, merge_groups
from paramcount.costs.devices import FITS, PADDING_DIVISOR, Device
from paramcount.costs.engines.engine import CacheRequest, Engine
from paramcount.costs.sharding import (
    Parallelism,
    ShardShape,
    check_parallelism,
    list_uneven,
    select_layers,
    share_weights,
    split_layers,
)
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.counting.results import to_plain
from paramcount.errors import ParamcountError
from paramcount.formats.weights import get_label, list_padded_labels

LONGEST_CONTEXT, LARGEST_BATCH = 10**9, 10**6  # that are tried
WITHIN_NODE = 8  # GPUs over which tensor parallelism is tried first
MOST_DEVICES = 1024


class Deployment(NamedTuple):
    """Everything that decides how much memory a model takes on each device."""

    rows: Sequence[StoredTensor]
    caches: Sequence[LayerCaches]
    shape: ShardShape
    engine: Engine
    request: CacheRequest
    device: Device
    parallel: Parallelism = Parallelism()
    limit: int | None = None  # the most tokens that the model takes; None if unknown
    source_is_context: bool = False  # whether the encoder input is as long as the context

    def change(self, *, context: int | None = None, batch: int | None = None) -> Deployment:
        """The same with another context or batch size."""
        request = self.request._replace(context=context or self.request.context, batch=batch or self.request.batch)
        return self._replace(request=request._replace(source=request.context) if self.source_is_context else request)

    def measure(self) -> tuple[Share, ...]:
        """The share of one device of each pipeline stage."""
        parallel = self.parallel
        weights = share_weights(self.rows, self.shape, parallel)
        labels = list_padded_labels()
        padded = share_weights([row for row in self.rows if get_label(row.packing) in labels], self.shape, parallel)
        request, layers = self.request._replace(tp=parallel.tp), split_layers(self.shape.n_layers, parallel.pp)
        shares = []
        for i, groups in enumerate(self.list_stages()):
            allocation = self.engine.allocate(groups, request)
            padding = padded[i] // PADDING_DIVISOR
            shares.append(Share(i, len(layers[i]), weights[i], allocation.kv_bytes, allocation.state_bytes, padding))
        return tuple(shares)

    def count_tokens(self) -> int:
        """The tokens that the KV cache can hold, in sequences of the context; of the stage that holds the fewest."""
        request = self.request._replace(tp=self.parallel.tp)
        weights = share_weights(self.rows, self.shape, self.parallel)
        return min(
            self.engine.count_tokens(groups, request, self.device.usable_bytes - size)
            for groups, size in zip(self.list_stages(), weights)
        )

    def list_stages(self) -> list[tuple[CacheGroup, ...]]:
        stages = []
        for i, layers in enumerate(split_layers(self.shape.n_layers, self.parallel.pp)):
            outside = [group for repeat, groups in self.caches for group in groups if repeat is None and i == 0]
            stages.append(merge_groups([*outside, *select_layers(self.caches, layers)]))
        return stages

    def find_free(self) -> int:
        """Bytes that are left on the fullest device; negative if they are short."""
        return self.device.usable_bytes - find_fullest(self.measure()).total_bytes

    def find_longest_context(self) -> int | None:
        """The longest context that fits, at most `limit`; 0 if none does; None if there is no limit."""
        return find_largest(lambda n: self.change(context=n).holds(), self.limit, LONGEST_CONTEXT)

    def holds(self) -> bool:
        """Whether it fits for certain."""
        return all(self.device.judge(*share.needs) == FITS for share in self.measure())


class Share(NamedTuple):
    """What one device of a pipeline stage holds."""

    stage: int
    layers: int
    weights_bytes: int
    kv_cache_bytes: int
    state_bytes: int
    padding_bytes: int = 0  # that the engine's kernels may add to the weights, not in the total

    @property
    def total_bytes(self) -> int:
        return self.weights_bytes + self.kv_cache_bytes + self.state_bytes

    @property
    def needs(self) -> tuple[int, int]:
        """(bytes without overhead, bytes that may be needed besides)."""
        return self.total_bytes, self.padding_bytes


def find_fullest(shares: Sequence[Share]) -> Share:
    return max(shares, key=lambda share: share.total_bytes + share.padding_bytes)


class Suggestion(NamedTuple):
    """Arguments of the same call that make it fit; for what fits already, that allow a longer context."""

    options: Mapping[str, object]  # {argument: value}
    free_bytes: int  # with these
    longest_context: int | None = None  # with these, if that is what they are for


class Fit(NamedTuple):
    """How a model fits a number of devices."""

    verdict: str  # one of devices.VERDICTS
    device: str
    devices: int
    parallelism: str  # such as "TP=8"; "" for one device
    memory_bytes: int  # of each device
    overhead_bytes: int  # assumed, on each device
    margin_bytes: int  # that must be free for "fits"
    utilization: float
    needed_bytes: int  # on the fullest device, overhead included
    free_bytes: int  # negative if that is more than the device has
    longest_context: int | None  # that fits at this batch size, at most the model's limit; 0: none; None: no limit
    largest_batch: int | None  # that fits at this context; 0: none; None: no limit
    kv_tokens: int  # that the KV cache holds in sequences of this context, parts of sequences included
    fewest_devices: int | None  # on which it fits at this context and batch; None if more than 1,024
    fewest_parallelism: str
    shares: tuple[Share, ...]
    uneven: tuple[str, ...] = ()  # what does not divide evenly among the devices
    suggestions: tuple[Suggestion, ...] = ()  # the mildest first

    @property
    def fits(self) -> bool:
        """Whether the verdict is "fits": neither "does not fit" nor "too close to call"."""
        return self.verdict == FITS

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        return {**to_plain(self._asdict()), "fits": self.fits}


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
        found = f"{parallel.describe() or 'TP=1'} uses {parallel.devices} devices, but there are {devices}"
        raise ParamcountError(found)
    return parallel


def measure_fit(deployment: Deployment) -> Fit:
    """How a deployment fits.

    Raises: ParamcountError if the model cannot be divided like this.
    """
    parallel = deployment.parallel
    check_parallelism(deployment.shape, parallel)
    device, shares = deployment.device, deployment.measure()
    needed, padding = find_fullest(shares).needs
    fewest = find_fewest(deployment)
    return Fit(
        verdict=device.judge(needed, padding),
        device=device.name,
        devices=parallel.devices,
        parallelism=parallel.describe(),
        memory_bytes=device.memory_bytes,
        overhead_bytes=device.overhead_bytes,
        margin_bytes=device.margin_bytes + padding,
        utilization=1.0 if device.utilization is None else device.utilization,
        needed_bytes=needed + device.overhead_bytes,
        free_bytes=device.usable_bytes - needed,
        longest_context=deployment.find_longest_context(),
        largest_batch=find_largest(lambda n: deployment.change(batch=n).holds(), None, LARGEST_BATCH),
        kv_tokens=deployment.count_tokens(),
        fewest_devices=fewest.devices if fewest else None,
        fewest_parallelism=fewest.describe() if fewest else "",
        shares=shares,
        uneven=tuple(list_uneven(deployment.shape, parallel)),
    )


def find_largest(is_possible: Callable[[int], bool], limit: int | None, most: int) -> int | None:
    """The largest number up to the limit that is possible, if no larger number than an impossible one is; 0 if not even
    1 is; None if there is no limit and `most` is possible."""
    if not is_possible(1):
        return 0
    low, high, last = 1, 2, limit or most
    while high <= last and is_possible(high):
        low, high = high, 2 * high
    high = min(high, last + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_possible(middle) else (low, middle)
    return None if limit is None and low == most else low


def find_fewest(deployment: Deployment) -> Parallelism | None:
    """The fewest devices that hold a model: tensor parallelism within a node, pipeline stages beyond it."""
    candidates = [Parallelism(tp=tp) for tp in range(1, WITHIN_NODE + 1)]
    candidates += [Parallelism(tp=WITHIN_NODE, pp=pp) for pp in range(2, MOST_DEVICES // WITHIN_NODE + 1)]
    for parallel in candidates:
        with suppress(ParamcountError):  # the model cannot be divided like this
            check_parallelism(deployment.shape, parallel)
            if deployment._replace(parallel=parallel).holds():
                return parallel
    return None
