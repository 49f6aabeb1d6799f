"""Whether a model fits a GPU: what is left, the longest context, the largest batch, the fewest GPUs and what helps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from paramcount.costs.caches import CacheGroup, LayerCaches, merge_groups
from paramcount.costs.devices import DOES_NOT_FIT, FITS, TOO_CLOSE, Device, judge
from paramcount.costs.engines import ENGINES
from paramcount.costs.engines.engine import Engine
from paramcount.costs.engines.records import CacheRequest, Share
from paramcount.costs.sharding import (
    Parallelism,
    ShardShape,
    select_layers,
    split_stacks,
)
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.counting.results import to_plain
from paramcount.errors import ParamcountError
from paramcount.zoo import Model

SEVERITY = (FITS, TOO_CLOSE, DOES_NOT_FIT)
LONGEST_CONTEXT, LARGEST_BATCH = 10**9, 10**6  # that are tried


class Deployment(NamedTuple):
    """Everything that decides how much memory a model takes on each device."""

    model: Model
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
        """The share of one device of each kind, GPUs first; of the CPU if something lies there."""
        return self.engine.measure(self)

    def find_budget(self, share: Share) -> int | None:
        """Bytes that may lie on the device of a share; None: no limit."""
        return self.device.ram_bytes if share.device is None else self.device.budget_bytes

    def judge(self, share: Share) -> str:
        """One of VERDICTS for one device."""
        budget, limit = self.find_budget(share), self.engine.find_cache_limit(self.request)
        if limit is not None and share.kv_cache_bytes + share.state_bytes > limit:
            return DOES_NOT_FIT
        return FITS if budget is None else judge(share.total_bytes, share.overhead, budget)

    def find_fullest(self) -> Share:
        """The share that leaves the least of the memory of its device."""
        limited = [(budget, share) for share in self.measure() if (budget := self.find_budget(share)) is not None]
        return min(limited, key=lambda pair: pair[0] - pair[1].total_bytes - pair[1].overhead.most)[1]

    def count_tokens(self) -> int:
        """The tokens that the KV cache can hold, in sequences of the context; of the stage that holds the fewest."""
        request = self.request._replace(tp=self.parallel.tp)
        counts = (
            self.engine.count_tokens(groups, request, self.find_room(share))
            for groups, share in zip(self.engine.list_groups(self), self.measure())
            if share.device is not None and any(not group.is_state for group in groups)
        )
        return min(counts, default=0)

    def find_room(self, share: Share) -> int:
        """Bytes that weights and overhead leave to cache and state on a device; negative if they are short."""
        if (limit := self.engine.find_cache_limit(self.request)) is not None:
            return limit
        return self.device.budget_bytes - share.weights_bytes - share.overhead.usual

    def list_stages(self) -> list[tuple[CacheGroup, ...]]:
        stages = []
        for i, layers in enumerate(split_stacks(self.shape.n_layers, self.parallel.pp)):
            outside = [group for repeat, groups in self.caches for group in groups if repeat is None and i == 0]
            stages.append(merge_groups([*outside, *select_layers(self.caches, layers)]))
        return stages

    def find_free(self) -> int:
        """Bytes that are left on the fullest device, or in a cache of given bytes; negative if they are short."""
        fullest, limit = self.find_fullest(), self.engine.find_cache_limit(self.request)
        free = (self.find_budget(fullest) or 0) - fullest.total_bytes - fullest.overhead.usual
        return free if limit is None else min(free, limit - fullest.kv_cache_bytes - fullest.state_bytes)

    def find_longest_context(self) -> int | None:
        """The longest context that fits, at most `limit`; 0 if none does; None if there is no limit."""
        guess = self.guess_largest(self.request.context)
        return find_largest(lambda n: self.change(context=n).holds(), self.limit, LONGEST_CONTEXT, guess)

    def find_largest_batch(self) -> int | None:
        """The largest batch that fits; 0 if none does; None if there is no limit."""
        guess = self.guess_largest(self.request.batch)
        return find_largest(lambda n: self.change(batch=n).holds(), None, LARGEST_BATCH, guess)

    def guess_largest(self, current: int) -> int:
        """About the largest context or batch that fits, if cache and state grow in proportion to it."""
        guesses = [LARGEST_BATCH]
        for share in self.measure():
            cached, budget = share.kv_cache_bytes + share.state_bytes, self.find_budget(share)
            if cached and budget is not None:
                guesses.append((budget - share.weights_bytes - share.overhead.most) * current // cached)
        return min(guesses)

    def holds(self) -> bool:
        """Whether it fits for certain."""
        return all(self.judge(share) == FITS for share in self.measure())


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
    memory_bytes: int  # of each device; of the CPU, if its memory is what is fullest
    overhead_bytes: int  # that the runtime takes on the fullest device
    overhead_items: tuple[tuple[str, int], ...]  # (what it is, bytes), which sum to it; () if it is assumed
    margin_bytes: int  # that must be free for "fits"
    utilization: float
    needed_bytes: int  # on the fullest device, overhead included
    free_bytes: int  # negative if that is more than the device has
    longest_context: int | None  # that fits at this batch size, at most the model's limit; 0: none; None: no limit
    largest_batch: int | None  # that fits at this context; 0: none; None: no limit
    kv_tokens: int  # that the KV cache holds in sequences of this context, parts of sequences included
    fewest_devices: int | None  # on which it fits at this context and batch; None if more than `most_devices`
    fewest_parallelism: str
    shares: tuple[Share, ...]  # GPUs first, then the CPU if something lies there
    fullest: Share  # the device that leaves the least memory
    most_devices: int  # that were tried
    ram_bytes: int | None = None  # of the CPU; None: as much as is needed
    uneven: tuple[str, ...] = ()  # what does not divide evenly among the devices
    suggestions: tuple[Suggestion, ...] = ()  # the mildest first

    @property
    def fits(self) -> bool:
        """Whether the verdict is "fits": neither "does not fit" nor "too close to call"."""
        return self.verdict == FITS

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        return {**to_plain(self._asdict()), "fits": self.fits}


def make_parallelism(
    devices: int, tp: int | None, pp: int | None, ep: int | None, engine: object = "minimal"
) -> Parallelism:
    """How a model is divided among so many devices: by tensor parallelism, unless something else is given or the engine
    splits the layers.

    Raises: ParamcountError if the numbers do not multiply to the number of devices.
    """
    for name, value in (("tp", tp), ("pp", pp), ("ep", ep)):
        if value is not None and value < 1:
            raise ParamcountError(f"= {value}", where=name, expected="an integer of at least 1")
    if tp is pp is ep is None and engine in ENGINES and ENGINES[str(engine)].splits_layers:
        pp = devices
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
    deployment.engine.check_parallelism(deployment.shape, parallel)
    device, shares, fullest = deployment.device, deployment.measure(), deployment.find_fullest()
    is_ram = fullest.device is None
    memory, budget = device.memory_bytes, deployment.find_budget(fullest) or 0
    needed, overhead = fullest.total_bytes, fullest.overhead
    fewest = find_fewest(deployment)
    return Fit(
        verdict=max(map(deployment.judge, shares), key=SEVERITY.index),
        device=device.name,
        devices=parallel.devices,
        parallelism=parallel.describe(),
        memory_bytes=budget if is_ram else memory,
        overhead_bytes=overhead.usual,
        overhead_items=overhead.items,
        margin_bytes=overhead.most - overhead.usual,
        utilization=1.0 if device.utilization is None or is_ram else device.utilization,
        needed_bytes=needed + overhead.usual,
        free_bytes=deployment.find_free(),
        longest_context=deployment.find_longest_context(),
        largest_batch=deployment.find_largest_batch(),
        kv_tokens=deployment.count_tokens(),
        fewest_devices=fewest.devices if fewest else None,
        fewest_parallelism=fewest.describe() if fewest else "",
        shares=shares,
        fullest=fullest,
        most_devices=deployment.engine.most_devices,
        ram_bytes=device.ram_bytes,
        uneven=tuple(deployment.engine.list_uneven(deployment.shape, parallel)),
    )


def find_largest(is_possible: Callable[[int], bool], limit: int | None, most: int, guess: int = 2) -> int | None:
    """The largest number up to the limit that is possible, if no larger number than an impossible one is; 0 if not even
    1 is; None if there is no limit and `most` is possible. `guess`: a number that may be near."""
    if not is_possible(1):
        return 0
    last = limit or most
    low, high, n = 1, last + 1, min(max(guess, 2), last)
    step = max(1, n // 256)
    while high - low > 1 and low < n < high:
        if is_possible(n):
            low, n = n, min(n + step, last) if high > last else high
        else:
            high, n = n, max(n - step, 2) if low == 1 else low
        step *= 4
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_possible(middle) else (low, middle)
    return None if limit is None and low == most else low


def find_fewest(deployment: Deployment) -> Parallelism | None:
    """The fewest devices that hold a model."""
    for parallel in deployment.engine.list_parallelisms():
        with suppress(ParamcountError):  # the model cannot be divided like this
            deployment.engine.check_parallelism(deployment.shape, parallel)
            if deployment._replace(parallel=parallel).holds():
                return parallel
    return None
