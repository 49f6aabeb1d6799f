"""What a given number of bytes for the KV cache holds: the line that engines print when they start."""

from __future__ import annotations

from typing import NamedTuple

from paramcount.costs.deployment import Deployment
from paramcount.costs.engines.records import Allocation
from paramcount.costs.fit import LONGEST_CONTEXT, find_largest


class AvailableCache(NamedTuple):
    """What fits in the bytes that an engine leaves to the cache on each device."""

    available_bytes: int
    tokens: int  # of all sequences together, if each is as long as the context
    concurrency: float  # sequences of the context that fit at once
    needed_bytes: int  # by one sequence of the context
    longest_context: int | None  # of one sequence, at most the model's limit; 0: none; None: no limit
    details: tuple[str, ...] = ()  # what the engine prints besides

    @property
    def fits(self) -> bool:
        """Whether one sequence of the context fits."""
        return self.concurrency >= 1


def measure_available(deployment: Deployment, available_bytes: int) -> AvailableCache:
    """What so many bytes hold, on the device that holds the fewest tokens.

    Raises: ParamcountError if the model cannot be divided like this.
    """
    engine, stages = deployment.engine, deployment.list_stages()
    engine.check_parallelism(deployment.shape, deployment.parallel)
    request = deployment.request._replace(tp=deployment.parallel.tp)

    def allocate(context: int) -> list[Allocation]:
        asked = deployment.change(context=context, batch=1).request._replace(tp=deployment.parallel.tp)
        return [engine.allocate(groups, asked) for groups in stages]

    def measure_slack(context: int) -> int:
        return available_bytes - max(one.total_bytes for one in allocate(context))

    one = allocate(request.context)
    needed = max(allocation.total_bytes - allocation.shared_bytes for allocation in one)
    usable = min(available_bytes // allocation.unit_bytes * allocation.unit_bytes for allocation in one)
    return AvailableCache(
        available_bytes,
        min(engine.count_tokens(groups, request, available_bytes) for groups in stages),
        usable / needed if needed else 0.0,
        needed,
        find_largest(measure_slack, deployment.limit, LONGEST_CONTEXT),
        engine.describe_available(stages[0], request, available_bytes),
    )
