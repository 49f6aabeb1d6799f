"""A model on devices: what lies on each of them, and what that leaves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from paramcount.costs.caches import CacheGroup, LayerCaches, merge_groups
from paramcount.costs.devices import DOES_NOT_FIT, FITS, TOO_CLOSE, Device, judge
from paramcount.costs.engines.engine import Engine
from paramcount.costs.engines.records import CacheRequest, Share
from paramcount.costs.sharding import Parallelism, ShardShape, StoredRows, compute_once, select_layers, split_stacks
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.errors import ParamcountError
from paramcount.zoo import Model

SEVERITY = (FITS, TOO_CLOSE, DOES_NOT_FIT)


class DraftModel(NamedTuple):
    """A model that drafts the tokens of another one, which verifies them."""

    model: Model
    rows: StoredRows
    caches: Sequence[LayerCaches]
    shape: ShardShape
    limit: int | None  # the most tokens that it takes; None if unknown
    label: str  # of the format of its weights: "Q8_0"

    @property
    def place(self) -> str:
        """Where an engine finds it: its Hugging Face id, otherwise its name."""
        return self.model.hf or self.model.id


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
    draft: DraftModel | None = None

    def change(self, *, context: int | None = None, batch: int | None = None) -> Deployment:
        """The same with another context or batch size."""
        request = self.request._replace(context=context or self.request.context, batch=batch or self.request.batch)
        return self._replace(request=request._replace(source=request.context) if self.source_is_context else request)

    def find_draft(self) -> Deployment | None:
        """The draft model beside it: on as many GPUs, or whole on each if they cannot share its heads."""
        if self.draft is None:
            return None
        model, rows, caches, shape, limit, _ = self.draft
        parallel = Parallelism(pp=self.parallel.pp) if self.engine.reads_gguf else Parallelism(tp=self.parallel.tp)
        try:
            self.engine.check_parallelism(shape, parallel)
        except ParamcountError:
            parallel = Parallelism()
        request = self.request._replace(tp=parallel.tp, reference=model.reading.reference)
        return Deployment(model, rows, caches, shape, self.engine, request, self.device, parallel, limit)

    def list_stages(self) -> list[tuple[CacheGroup, ...]]:
        """What each pipeline stage caches."""

        def divide() -> list[tuple[CacheGroup, ...]]:
            stages = []
            for i, layers in enumerate(split_stacks(self.shape.n_layers, self.parallel.pp)):
                outside = [group for repeat, groups in self.caches for group in groups if repeat is None and i == 0]
                stages.append(merge_groups([*outside, *select_layers(self.caches, layers)]))
            return stages

        return compute_once(self.rows, ("stages", self.parallel.pp), divide)

    def measure(self) -> Measured:
        """What lies on one device of each kind."""
        return Measured(self, self.engine.measure(self))

    def holds(self) -> bool:
        """Whether it fits for certain."""
        return self.measure().slack_bytes >= 0


class Measured:
    """What lies on the devices of a deployment."""

    def __init__(self, deployment: Deployment, shares: tuple[Share, ...]) -> None:
        self.deployment = deployment
        self.shares = shares  # of one device of each kind, GPUs first; of the CPU if something lies there
        self.cache_limit = deployment.engine.find_cache_limit(deployment.request)  # of given bytes

    def find_budget(self, share: Share) -> int | None:
        """Bytes that may lie on the device of a share; None: no limit."""
        device = self.deployment.device
        return device.ram_bytes if share.device is None else device.budget_bytes

    def judge(self, share: Share) -> str:
        """One of VERDICTS for one device."""
        budget, limit = self.find_budget(share), self.cache_limit
        if limit is not None and share.cache_bytes > limit:
            return DOES_NOT_FIT
        return FITS if budget is None else judge(share.total_bytes, share.overhead, budget)

    @property
    def verdict(self) -> str:
        """One of VERDICTS for all devices."""
        return max(map(self.judge, self.shares), key=SEVERITY.index)

    @cached_property
    def slack_bytes(self) -> int:
        """Bytes that are left at the most overhead on the fullest device, or in a cache of given bytes: it fits for
        certain if they are not negative."""
        most = [
            budget - share.total_bytes - share.overhead.most
            for share in self.shares
            if (budget := self.find_budget(share)) is not None
        ]
        if self.cache_limit is not None:
            most += [self.cache_limit - share.cache_bytes for share in self.shares]
        return min(most)

    @cached_property
    def fullest(self) -> Share:
        """The share that leaves the least of the memory of its device."""
        limited = [(budget, share) for share in self.shares if (budget := self.find_budget(share)) is not None]
        return min(limited, key=lambda pair: pair[0] - pair[1].total_bytes - pair[1].overhead.most)[1]

    @property
    def free_bytes(self) -> int:
        """Bytes that are left on the fullest device, or in a cache of given bytes; negative if they are short."""
        fullest, limit = self.fullest, self.cache_limit
        free = (self.find_budget(fullest) or 0) - fullest.total_bytes - fullest.overhead.usual
        return free if limit is None else min(free, limit - fullest.cache_bytes)

    def count_tokens(self) -> int:
        """The tokens that the KV cache can hold, in sequences of the context; of the stage that holds the fewest."""
        deployment = self.deployment
        engine, request = deployment.engine, deployment.request._replace(tp=deployment.parallel.tp)
        counts = (
            engine.count_tokens(groups, request, self.find_room(share, own=True))
            for groups, share in zip(engine.list_groups(deployment), self.shares)
            if share.device is not None and any(not group.is_state for group in groups)
        )
        return min(counts, default=0)

    def find_room(self, share: Share, *, own: bool = False) -> int:
        """Bytes that weights and overhead leave to cache and state on a device; negative if they are short.

        `own`: without the part that the cache of the draft model takes of them.
        """
        room = self.deployment.device.budget_bytes - share.fixed_bytes - share.overhead.usual
        if self.cache_limit is not None:
            room = self.cache_limit
        if own and share.draft_cache_bytes:
            room = room * (share.cache_bytes - share.draft_cache_bytes) // share.cache_bytes
        return room

    def guess_largest(self, current: int) -> int:
        """About the largest context or batch that fits, if cache and state grow in proportion to it."""
        guesses = []
        for share in self.shares:
            budget = self.find_budget(share)
            if share.cache_bytes and budget is not None:
                room = budget - share.fixed_bytes - share.overhead.most
                guesses.append(room * current // share.cache_bytes)
        return min(guesses, default=10**6)
