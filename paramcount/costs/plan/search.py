"""The fewest GPUs on which a deployment fits for certain.

One machine has one, two, four or eight GPUs, which tensor parallelism uses; several machines are pipeline stages. An
engine that splits layers takes any number. KV heads must divide among the GPUs or the GPUs among them
(https://github.com/vllm-project/vllm/issues/5951), and no GPU may have a part of a block of quantised weights: experts
are then divided whole (https://github.com/vllm-project/vllm/issues/17569 and the recipe of MiniMax-M2.7, "TP8+EP").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from paramcount.costs.deployment import SEVERITY, Deployment
from paramcount.costs.devices import DOES_NOT_FIT, FITS, TOO_CLOSE
from paramcount.costs.engines.engine import MOST_DEVICES, WITHIN_NODE
from paramcount.costs.gpus import Gpu
from paramcount.costs.sharding import Parallelism
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.errors import ParamcountError

WIDTHS = (8, 4, 2, 1)  # GPUs of a machine that share every matrix


class GpuCandidate(NamedTuple):
    """A GPU with weights and an engine."""

    gpu: Gpu
    most: int  # of these GPUs that may be used
    variant: int  # candidates with the same weights and engine have the same number
    deployment: Deployment  # on one of them


class ParallelLayout(NamedTuple):
    """How GPUs share a model."""

    parallel: Parallelism
    options: Mapping[str, Any] = {}  # of the engine, for data-parallel attention

    def apply(self, deployment: Deployment) -> Deployment:
        """The deployment with this layout."""
        request = deployment.request
        return deployment._replace(
            parallel=self.parallel, request=request._replace(options={**request.options, **self.options})
        )


class PlacedCandidate(NamedTuple):
    """The fewest GPUs on which a candidate fits; if it does not, the most that were tried."""

    candidate: GpuCandidate
    layout: ParallelLayout
    verdict: str  # one of devices.VERDICTS
    too_close: Parallelism | None = None  # fewer GPUs, on which it is too close to call
    one_machine: ParallelLayout | None = None  # the GPUs of one machine, if it takes several

    @property
    def parallel(self) -> Parallelism:
        return self.layout.parallel

    @property
    def rank(self) -> tuple[int, int, int]:
        """What fits comes first, then fewer GPUs, then less memory; of what does not fit, the most memory."""
        memory = self.parallel.devices * self.candidate.gpu.memory_bytes
        severity = SEVERITY.index(self.verdict)
        return (severity, self.parallel.devices, memory) if not severity else (severity, -memory, 0)


def list_layouts(deployment: Deployment) -> Iterator[ParallelLayout]:
    """How so many GPUs may share a model, the fewest first; for several users with data-parallel attention, too."""
    engine, shape = deployment.engine, deployment.shape
    numbers = [1, 2, 4, *range(WITHIN_NODE, MOST_DEVICES + 1, WITHIN_NODE)]
    every = ([divide(deployment, tp, n // tp) for tp in WIDTHS if n % tp == 0] for n in numbers)
    if engine.splits_layers:
        every = ([parallel] for parallel in engine.list_parallelisms())
    for layouts in every:
        for parallel in layouts:
            with suppress(ParamcountError):  # the model cannot be divided like this
                engine.check_parallelism(shape, parallel)
                if shape.n_kv_heads and shape.n_kv_heads % parallel.tp and parallel.tp % shape.n_kv_heads:
                    continue
                yield ParallelLayout(parallel)
                if deployment.request.batch > 1:
                    for other in engine.replicate_attention(deployment._replace(parallel=parallel)):
                        engine.check_parallelism(shape, other.parallel)
                        yield ParallelLayout(other.parallel, other.request.options)
                break


def divide(deployment: Deployment, tp: int, pp: int) -> Parallelism:
    """Experts are divided whole if tensor parallelism would cut the blocks in which they are quantised."""
    return Parallelism(tp, pp, tp if tp > 1 and any(is_cut(row, tp) for row in deployment.rows) else 1)


def is_cut(row: StoredTensor, tp: int) -> bool:
    """Whether GPUs would share a block of an expert's matrix: its outputs are divided, those of `down` its inputs."""
    part, _, detail = row.tensor.component.partition(".")
    outputs, inputs = row.packing.block
    if part != "experts" or outputs < 2 or detail not in ("gate", "up", "down"):
        return False
    size, block = (row.tensor.shape[-1], inputs) if detail == "down" else (row.tensor.shape[-2], outputs)
    return bool(size % (tp * block))


def search(candidates: Sequence[GpuCandidate], limit: int | None) -> list[PlacedCandidate]:
    """Where the candidates fit, the best first; with a limit, only the best ones that fit, if any does."""
    first = {candidate.variant: candidate.deployment for candidate in candidates}
    layouts = {variant: list_layouts(it) for variant, it in first.items()}
    following = {variant: next(choices, None) for variant, choices in layouts.items()}
    ordered = candidates if limit is None else sorted(candidates, key=lambda candidate: candidate.gpu.memory_bytes)
    left = {
        i: PlacedCandidate(candidate, ParallelLayout(Parallelism()), DOES_NOT_FIT)
        for i, candidate in enumerate(ordered)
    }
    placed: list[PlacedCandidate] = []
    while left and (limit is None or len(placed) < limit):
        devices = min((layout.parallel.devices for layout in following.values() if layout), default=None)
        if devices is None:
            break
        needs: dict[int, int] = {}
        for i, before in list(left.items()):
            candidate = ordered[i]
            layout = following[candidate.variant]
            if layout is None or layout.parallel.devices != devices or devices > candidate.most:
                continue
            left[i] = after = try_layout(candidate, layout, before, needs)
            if after.verdict == FITS:
                placed.append(left.pop(i))
                if len(placed) == limit:  # all others have more memory or are more devices
                    break
        for variant, layout in following.items():
            if layout and layout.parallel.devices == devices:
                following[variant] = next(layouts[variant], None)
    unplaced = [] if limit is not None and placed else list(left.values())
    return sorted([*placed, *unplaced], key=lambda placement: placement.rank)[:limit]


def try_layout(
    candidate: GpuCandidate, layout: ParallelLayout, before: PlacedCandidate, needs: dict[int, int]
) -> PlacedCandidate:
    """`before` with one more layout tried. `needs`: {variant: bytes without overhead on the fullest GPU of it}."""
    deployment, parallel = layout.apply(candidate.deployment), layout.parallel
    verdict = DOES_NOT_FIT
    if needs.get(candidate.variant, 0) <= deployment.device.memory_bytes:
        measured = deployment.measure()
        needs[candidate.variant] = max(share.total_bytes for share in measured.shares if share.device is not None)
        verdict = measured.verdict
    too_close = before.too_close or (parallel if verdict == TOO_CLOSE else None)
    one_machine = before.one_machine or (before.layout if parallel.devices > WITHIN_NODE else None)
    return PlacedCandidate(candidate, layout, verdict, too_close, one_machine)
