"""Whether a model fits a GPU: what is left, the longest context, the largest batch, the fewest GPUs and what helps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from paramcount.costs.deployment import Deployment, Measured
from paramcount.costs.devices import FITS
from paramcount.costs.engines import ENGINES
from paramcount.costs.engines.records import Share
from paramcount.costs.sharding import Parallelism
from paramcount.counting.results import describe_result, to_plain
from paramcount.errors import ParamcountError

LONGEST_CONTEXT, LARGEST_BATCH = 10**9, 10**6  # that are tried


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

    def __repr__(self) -> str:
        return describe_result(self, "verdict", "device", "devices", "parallelism")

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
    device, measured = deployment.device, deployment.measure()
    fullest = measured.fullest
    is_ram = fullest.device is None
    memory, budget = device.memory_bytes, measured.find_budget(fullest) or 0
    needed, overhead = fullest.total_bytes, fullest.overhead
    is_one = measured.verdict == FITS and parallel == next(deployment.engine.list_parallelisms())
    fewest = parallel if is_one else find_fewest(deployment)
    return Fit(
        verdict=measured.verdict,
        device=device.name,
        devices=parallel.devices,
        parallelism=parallel.describe(),
        memory_bytes=budget if is_ram else memory,
        overhead_bytes=overhead.usual,
        overhead_items=overhead.items,
        margin_bytes=overhead.most - overhead.usual,
        utilization=1.0 if device.utilization is None or is_ram else device.utilization,
        needed_bytes=needed + overhead.usual,
        free_bytes=measured.free_bytes,
        longest_context=find_longest_context(measured),
        largest_batch=find_largest_batch(measured),
        kv_tokens=measured.count_tokens(),
        fewest_devices=fewest.devices if fewest else None,
        fewest_parallelism=fewest.describe() if fewest else "",
        shares=measured.shares,
        fullest=fullest,
        most_devices=deployment.engine.most_devices,
        ram_bytes=device.ram_bytes,
        uneven=tuple(deployment.engine.list_uneven(deployment.shape, parallel)),
    )


def find_longest_context(measured: Measured) -> int | None:
    """The longest context that fits, at most the limit; 0 if none does; None if there is no limit."""
    deployment, n = measured.deployment, measured.deployment.request.context
    known = Probe(n, measured.slack_bytes)
    return find_largest(
        lambda n: deployment.change(context=n).measure().slack_bytes,
        deployment.limit, LONGEST_CONTEXT, measured.guess_largest(n), known,
    )  # fmt: skip


def find_largest_batch(measured: Measured) -> int | None:
    """The largest batch that fits; 0 if none does; None if there is no limit."""
    deployment, n = measured.deployment, measured.deployment.request.batch
    known = Probe(n, measured.slack_bytes)
    return find_largest(
        lambda n: deployment.change(batch=n).measure().slack_bytes,
        None,
        LARGEST_BATCH,
        measured.guess_largest(n),
        known,
    )


class Probe(NamedTuple):
    """A number that was tried."""

    n: int
    slack: int  # what is left; less than nothing if it is too large


def find_largest(
    measure_slack: Callable[[int], int], limit: int | None, most: int, guess: int = 2, known: Probe | None = None
) -> int | None:
    """The largest number up to the limit that leaves something, if no larger number than one that does not; 0 if not
    even 1 does; None if there is no limit and `most` does. `guess`: a number that may be near; `known`: one that was
    tried.

    What is left falls nearly in proportion to the number, so the next one to try is found on a line through two others.
    """
    last = limit or most
    before, low, high = Probe(0, 0), Probe(0, 0), Probe(last + 1, 0)
    tried = known if known and known.n <= last else None
    bisects = False
    while True:
        if tried and tried.slack >= 0:
            before, low = low, tried
        elif tried:
            high = tried
        if high.n - low.n <= 1:
            return None if limit is None and low.n == most else low.n
        n = (low.n + high.n) // 2 if bisects else choose_next(before, low, high, guess)
        n = min(max(n, low.n + 1), high.n - 1)
        tried = Probe(n, measure_slack(n))
        rest = high.n - n if tried.slack >= 0 else n - low.n
        bisects = not bisects and high.slack < 0 and 2 * rest > high.n - low.n


def choose_next(before: Probe, low: Probe, high: Probe, guess: int) -> int:
    """The number to try next: of those that were tried, `low` is the largest that leaves something, after `before`."""
    if high.slack < 0 and low.n:
        return low.n + (high.n - low.n) * low.slack // (low.slack - high.slack)
    if before.n and before.slack > low.slack:  # a little more, which is probably too large
        n = low.n + (low.n - before.n) * low.slack // (before.slack - low.slack)
        return n + n // 256 + 1
    return guess if low.n < guess < high.n else low.n if high.slack < 0 else high.n


def find_fewest(deployment: Deployment) -> Parallelism | None:
    """The fewest devices that hold a model."""
    for parallel in deployment.engine.list_parallelisms():
        with suppress(ParamcountError):  # the model cannot be divided like this
            deployment.engine.check_parallelism(deployment.shape, parallel)
            if deployment._replace(parallel=parallel).holds():
                return parallel
    return None
