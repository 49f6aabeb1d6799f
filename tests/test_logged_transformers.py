"""What transformers takes equals what was measured; each figure has its source."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from paramcount.api import memory
from paramcount.costs.devices import DOES_NOT_FIT, FITS
from paramcount.costs.fit import Fit
from tests.logged import FULFILLED, LoggedFigure, agrees, find_share, load_logged, read_logged

LOGGED = read_logged("transformers")
OUTCOMES = [row for row in LOGGED.values() if row.kind == "outcome"]


@cache
def measure(model: str, arguments: str) -> Fit:
    given: dict[str, Any] = json.loads(arguments)
    fit = memory(load_logged(model), engine="transformers", **given).fit
    assert fit is not None
    return fit


def measure_row(row: LoggedFigure) -> Fit:
    return measure(row.model, json.dumps(row.arguments, sort_keys=True))


def count_figure(row: LoggedFigure) -> float:
    """GiB on all GPUs together: "peak_gib" as the driver sees it, "allocated_gib" without the CUDA contexts."""
    shares = measure_row(row).shares
    contexts = sum(dict(share.overhead.items)["CUDA context"] for share in shares)
    total = sum(share.devices * (share.total_bytes + share.overhead.usual) for share in shares)
    return (total - (contexts if row.figure == "allocated_gib" else 0)) / 2**30


@pytest.mark.parametrize("name", [name for name, row in LOGGED.items() if row.kind != "outcome"])
def test_a_peak_is_what_was_measured(name: str) -> None:
    row = LOGGED[name]
    found = count_figure(row)
    assert agrees(row, found) is not bool(row.reason), f"{row.value} measured, {found} computed"


def test_most_peaks_are_met() -> None:
    assert find_share(LOGGED.values(), aside=False) >= FULFILLED


def test_nothing_that_ran_out_of_memory_fits() -> None:
    failed = [measure_row(row).verdict for row in OUTCOMES if row.value == "out of memory"]
    assert failed
    assert set(failed) == {DOES_NOT_FIT}


def test_most_of_what_worked_fits() -> None:
    worked = [measure_row(row).verdict for row in OUTCOMES if row.value == "worked"]
    assert DOES_NOT_FIT not in worked
    assert worked.count(FITS) >= 0.8 * len(worked)
