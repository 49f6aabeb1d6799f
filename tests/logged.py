"""Figures that real runs logged, and whether what paramcount says is the same.

One file per engine in tests/data/logged, one row per figure; rows with the same `run` are of one start. `arguments` is
a JSON object: the arguments of the call that a user would make for this run. `kind` is "arithmetic" if the figure
follows from config, files and flags, "profiled" if the engine measured it, "outcome" for "fits" and "out of memory".
`aside` is 1 for the third that was drawn before the rules were written and looked at after. `reason` says why a figure
is not met; without one it must be.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import paramcount.costs.fit as fitting
import paramcount.costs.memory as measuring
from paramcount.api import load, memory
from paramcount.costs.memory import Memory
from paramcount.zoo import Model

DATA = Path(__file__).parent / "data"
PROFILED = 0.03  # how far what an engine measures may lie from what is computed
ENGINES = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "llama_cpp": "llama.cpp",
    "ollama": "Ollama",
    "transformers": "transformers",
    "training": "PEFT and DeepSpeed",
}
WHOLE_GPU = 10**15  # bytes: figures that do not depend on the GPU
GIB = 2**30
FULFILLED = 0.9  # of the figures of a kind, in the part that was looked at and in the one that was put aside


class LoggedFigure(NamedTuple):
    """One row."""

    id: str
    run: str
    version: str
    model: str  # a name of the zoo, a key of tests/data/deployment_configs.json, or a file of tests/data/config_truth
    arguments: dict[str, Any]
    figure: str  # "kv_tokens", "block_size", "weights_gib", …: each test file says what it compares
    value: str  # as printed
    kind: str
    aside: bool
    reason: str
    note: str
    source: str
    quote: str


def read_logged(engine: str) -> dict[str, LoggedFigure]:
    """The figures of one engine by their id."""
    with (DATA / "logged" / f"{engine}.csv").open(encoding="utf-8", newline="") as file:
        rows = [make_figure(row) for row in csv.DictReader(file)]
    assert len({row.id for row in rows}) == len(rows)
    return {row.id: row for row in rows}


def make_figure(row: dict[str, Any]) -> LoggedFigure:
    arguments = json.loads(row["arguments"])
    if isinstance(size := arguments.get("memory"), str):
        arguments["memory"] = int(float(size.removesuffix(" GiB")) * GIB)
    return LoggedFigure(**row | {"arguments": arguments, "aside": row["aside"] == "1"})


@cache
def load_logged(name: str) -> Model:
    if name.endswith(".json"):
        return load(json.loads((DATA / "config_truth" / name).read_text(encoding="utf-8"))["config"])
    configs = read_configs()
    return load(configs[name]["config"] if name in configs else name)


@cache
def read_configs() -> Any:
    return json.loads((DATA / "deployment_configs.json").read_text(encoding="utf-8"))


def measure(engine: str, model: str, arguments: dict[str, Any]) -> Memory:
    """`memory` as a user would call it for a run."""
    return measure_once(engine.replace("_", "."), model, json.dumps(arguments, sort_keys=True))


@cache
def measure_once(engine: str, model: str, arguments: str) -> Memory:
    given: dict[str, Any] = json.loads(arguments)
    if "gpu" not in given:
        given.setdefault("memory", WHOLE_GPU)
    with answer_briefly():
        return memory(load_logged(model), engine=engine, **given)


@contextmanager
def answer_briefly() -> Iterator[None]:
    """`memory` without what no log prints: other formats of the weights, larger requests, fewer GPUs, what fits."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("find_fewest", "find_longest_context", "find_largest_batch"):
            patch.setattr(fitting, name, lambda *_: None)
        for name in ("list_formats", "list_suggestions"):
            patch.setattr(measuring, name, lambda *_, **__: ())
        yield


def agrees(row: LoggedFigure, found: float) -> bool:
    """Whether a figure is what the log prints: to its last digit, or within 3% of what was measured."""
    printed = row.value.replace(",", "")
    if row.kind == "profiled":
        return abs(found - float(printed)) <= PROFILED * abs(float(printed))
    decimals = len(printed.partition(".")[2])
    return f"{found:.{decimals}f}" == printed


def find_share(rows: Iterable[LoggedFigure], *, aside: bool) -> float:
    """The share of the figures without a reason."""
    chosen = [row for row in rows if row.aside == aside and row.kind != "outcome"]
    return sum(not row.reason for row in chosen) / len(chosen)


def make_table() -> str:
    """The figures that are met, by engine, in Markdown."""
    lines = [
        "| engine | follows from config and flags | measured by the engine | of these, put aside |",
        "|---|---|---|---|",
    ]
    for name in ENGINES:
        rows = [row for row in read_logged(name).values() if row.kind != "outcome"]
        parts = [[row for row in rows if row.kind == kind] for kind in ("arithmetic", "profiled")]
        parts.append([row for row in rows if row.aside])
        cells = [f"{sum(not row.reason for row in part)} of {len(part)}" if part else "—" for part in parts]
        lines.append(f"| {ENGINES[name]} | {' | '.join(cells)} |")
    return "\n".join(lines)
