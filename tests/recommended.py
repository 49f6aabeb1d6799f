"""How many GPUs publishers recommend for a model, next to the first line of `plan`.

tests/data/recommended_gpus.csv has a row per model: the GPU and the number of them, the engine, the dtype if the zoo
entry has another one, and the words of the source. No recipe shortens the context, so that the engine must hold one
sequence of it: `plan` is asked for one user with the longest context of the model.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

import paramcount as pc
from paramcount.costs.fit import Fit
from paramcount.costs.plan.records import PlannedDeployment
from paramcount.costs.requests import find_longest_context
from paramcount.output.numbers import format_bytes
from tests.logged import answer_briefly

PUBLISHERS = {"vllm": "vLLM recipes", "sglang": "SGLang cookbook"}
PATH = Path(__file__).parent / "data" / "recommended_gpus.csv"


class Recommendation(NamedTuple):
    model: str  # of the zoo
    gpu: str
    devices: int
    engine: str
    dtype: str  # "" for the one of the zoo entry
    quote: str
    source: str


class Comparison(NamedTuple):
    """A recommendation, the best deployment of `plan`, and how the recommended number of GPUs fits."""

    recommendation: Recommendation
    planned: PlannedDeployment
    fit: Fit

    @property
    def agrees(self) -> bool:
        return self.planned.devices == self.recommendation.devices

    @property
    def reason(self) -> str:
        """Why the numbers differ; "" if they agree."""
        number, size = self.recommendation.devices, format_bytes(abs(self.fit.free_bytes))
        if self.agrees:
            return ""
        if self.planned.devices < number:
            return f"{number} GPUs leave {size} free on each"
        room = f"{size} {'free' if self.fit.free_bytes >= 0 else 'short'}"
        return f"{self.fit.verdict} on {number}: {room}, with a margin of {format_bytes(self.fit.margin_bytes)}"


@cache
def list_comparisons() -> tuple[Comparison, ...]:
    with PATH.open(encoding="utf-8", newline="") as file:
        rows = [
            Recommendation(row["model"], row["gpu"], int(row["devices"]), *list(row.values())[3:])
            for row in csv.DictReader(file)
        ]
    return tuple(map(compare, rows))


def compare(row: Recommendation) -> Comparison:
    context = find_longest_context(pc.load(row.model))
    dtype = row.dtype or None
    plan = pc.plan(row.model, gpu=row.gpu, context=context, engine=row.engine, dtype=dtype)
    layout = {"gpu": f"{row.devices}x{row.gpu}", "tp": min(row.devices, 8), "pp": -(-row.devices // 8), "ep": None}
    with answer_briefly():
        fit = pc.memory(row.model, **{**plan.deployments[0].arguments, **layout}).fit
    assert fit is not None
    return Comparison(row, plan.deployments[0], fit)


def make_table() -> str:
    """The comparisons in Markdown."""
    lines = ["| model | recommended | `plan` | reason for the difference |", "|---|---|---|---|"]
    for it in list_comparisons():
        row = it.recommendation
        source = f"[{PUBLISHERS[row.engine]}]({row.source})"
        planned = f"{it.planned.devices} ({it.planned.fit.parallelism or '1 GPU'})"
        lines.append(f"| {row.model} | {row.devices} × {row.gpu}, {source} | {planned} | {it.reason} |")
    return "\n".join(lines)
