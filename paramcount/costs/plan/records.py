"""What a plan is asked for, what its deployments share, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from paramcount.costs.caches import CacheGroup, LayerCaches
from paramcount.costs.deployment import DraftModel
from paramcount.costs.engines.engine import Engine
from paramcount.costs.engines.records import CacheRequest
from paramcount.costs.fit import Fit, Suggestion
from paramcount.costs.plan.choices import ReasonedChoice
from paramcount.costs.plan.speed import Speed
from paramcount.costs.sharding import ShardShape, StoredRows
from paramcount.counting.results import JsonResult, describe_result, to_plain
from paramcount.formats.quantization_config import WeightDtype
from paramcount.zoo import Model

FIT_FIELDS = (
    "verdict", "fits", "memory_bytes", "utilization", "overhead_bytes", "margin_bytes", "needed_bytes", "free_bytes",
    "longest_context", "largest_batch", "kv_tokens", "suggestions",
)  # fmt: skip


class Need(NamedTuple):
    """What is asked for."""

    users: object = 1  # sequences at once
    context: object = None  # tokens per user; None: as `memory` chooses
    kv_dtype: object = None  # None: the default of the engine
    state_dtype: object = None
    source: object = None
    engine: str | None = None
    engine_options: Mapping[str, object] = {}
    draft: Model | None = None
    draft_dtype: str | None = None
    overhead: int | None = None
    utilization: float | None = None


class PlannedDeployment(NamedTuple):
    """A model on a number of GPUs."""

    gpu: str
    devices: int
    tp: int
    pp: int
    ep: int
    attention_replicas: int  # data-parallel ranks of attention, each with its own users
    engine: str
    engine_reason: str
    dtype: str  # of the weights, for people: "FP8 (128 × 128 blocks, as stored)"
    dtype_reason: str
    kv_dtype: str
    fit: Fit  # as `memory` measures it; what makes it fit, if it does not
    speed: Speed | None  # None if it does not fit, and if the model cannot process the context
    on_one_machine: tuple[Suggestion, ...]  # what makes it fit eight GPUs, if it needs more of them
    too_close_devices: int | None  # fewer GPUs, on which it is too close to call; None if there are none
    command: str  # that starts the engine; "" if it has no server
    arguments: Mapping[str, Any]  # of `memory`, which measures the same

    def __repr__(self) -> str:
        return describe_result(self, "gpu", "devices", "engine", "dtype")

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON; of the fit, what differs between deployments."""
        fields = self._asdict()
        fields["fit"] = {name: getattr(self.fit, name) for name in FIT_FIELDS}
        return {name: to_plain(value) for name, value in fields.items()}


@dataclass(frozen=True, repr=False)
class ServingPlan(JsonResult):
    """Deployments that serve so many users, the best first: what fits, then fewer GPUs, then less memory."""

    json_fields = (
        "id", "name", "parameters", "users", "context", "context_limit", "source", "deployments", "warnings", "notes",
    )  # fmt: skip
    html_table = "paramcount.costs.plan.render:build_plan_table"
    names_options = True

    id: str
    name: str
    parameters: int
    users: int
    context: int  # tokens per user
    context_limit: int | None  # tokens that the model takes at most; None if unknown
    source: int | None  # encoder input length
    deployments: tuple[PlannedDeployment, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """That of the best deployment."""
        return self.deployments[0].fit.verdict


class Subject(NamedTuple):
    """What all deployments of a plan have in common."""

    model: Model
    need: Need
    groups: tuple[CacheGroup, ...]
    caches: tuple[LayerCaches, ...]
    shape: ShardShape
    limit: int | None


class ServingVariant(NamedTuple):
    """Weights and an engine, on whichever GPU."""

    number: int
    choice: ReasonedChoice  # of the engine
    engine: Engine
    dtype: str | None  # the argument of `memory`
    weights: ReasonedChoice
    format: WeightDtype
    rows: StoredRows
    request: CacheRequest
    arguments: Mapping[str, Any]  # of `memory`, without the GPUs
    draft: DraftModel | None = None
    note: str = ""  # how the engine runs the model, if not as its own
