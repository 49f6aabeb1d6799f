"""Trainable parameters, estimates and outcomes of logged fine-tuning runs; each figure has its source."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

import paramcount as pc
from paramcount.costs.training.estimators import list_zero_lines
from tests.logged import FULFILLED, LoggedFigure, agrees, find_share, load_logged, read_logged

LOGGED = read_logged("training")
FIGURES = [name for name, row in LOGGED.items() if row.kind != "outcome"]
OUTCOMES = [row for row in LOGGED.values() if row.kind == "outcome"]
GIB = 2**30
SHORT = 8  # tokens, for figures that do not depend on activations


@cache
def measure(model: str, arguments: str) -> Any:
    given: dict[str, Any] = json.loads(arguments)
    return pc.training(load_logged(model), **{"context": SHORT, **given})


@cache
def adapt(model: str, arguments: str) -> Any:
    return pc.lora(load_logged(model), **json.loads(arguments))


def count_figure(row: LoggedFigure) -> float:
    """What paramcount says for the figure."""
    given = dict(row.arguments)
    if row.figure in ("trainable", "total"):  # "trainable params: … || all params: …"
        return int(getattr(adapt(row.model, json.dumps(given["lora"], sort_keys=True)), row.figure))
    line = given.pop("line", None)
    if "total_params" in given:  # estimate_zero2_model_states_mem_needs_all_cold and its like
        estimates = list_zero_lines(given["total_params"], given["largest_params"], given["gpus"])
    else:
        result = measure(row.model, json.dumps(given, sort_keys=True))
        estimates = result.estimates
    (estimate,) = (estimate for estimate in estimates if estimate.options == line)
    size: int = {"zero_cpu_gib": estimate.cpu_bytes, "zero_gpu_gib": estimate.gpu_bytes}[row.figure] or 0
    return size / GIB


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_what_the_log_prints(name: str) -> None:
    row = LOGGED[name]
    assert agrees(row, count_figure(row)) == (not row.reason)


@pytest.mark.parametrize("aside", [False, True])
def test_most_figures_are_met(aside: bool) -> None:
    assert find_share(LOGGED.values(), aside=aside) >= FULFILLED


def judge(row: LoggedFigure) -> str:
    return str(measure(row.model, json.dumps(row.arguments, sort_keys=True)).fit.verdict)


def test_no_run_that_ran_out_of_memory_fits_and_none_that_worked_does_not() -> None:
    verdicts = {kind: [judge(row) for row in OUTCOMES if row.value.startswith(kind)] for kind in ("worked", "oom")}
    assert "fits" not in verdicts["oom"]
    assert "does not fit" not in verdicts["worked"]
    assert len(verdicts["oom"]) >= 10
    assert verdicts["oom"].count("does not fit") >= 4
    assert 2 * verdicts["worked"].count("fits") > len(verdicts["worked"])
