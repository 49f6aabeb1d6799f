"""What llama.cpp and Ollama allocate equals what their logs print; each figure has its source."""

from __future__ import annotations

import pytest

from tests.llama_figures import count_figure, find_verdict
from tests.logged import FULFILLED, agrees, find_share, read_logged

LOGGED = {"llama.cpp": read_logged("llama_cpp"), "ollama": read_logged("ollama")}


@pytest.mark.parametrize(
    ("engine", "name"),
    [(engine, name) for engine, rows in LOGGED.items() for name, row in rows.items() if row.kind != "outcome"],
)
def test_a_figure_is_what_the_log_prints(engine: str, name: str) -> None:
    row = LOGGED[engine][name]
    found = count_figure(engine, row)
    assert agrees(row, found) == (not row.reason), f"{found} instead of {row.value}"


@pytest.mark.parametrize("engine", LOGGED)
def test_most_figures_are_met_in_both_parts(engine: str) -> None:
    assert min(find_share(LOGGED[engine].values(), aside=aside) for aside in (False, True)) >= FULFILLED


@pytest.mark.parametrize("engine", LOGGED)
def test_what_worked_is_called_fits_and_what_ran_out_of_memory_is_not(engine: str) -> None:
    rows = [row for row in LOGGED[engine].values() if row.kind == "outcome" and not row.reason]
    worked, failed = (
        [find_verdict(engine, row) for row in rows if row.value == value] for value in ("worked", "out of memory")
    )
    assert worked.count("fits") >= 0.8 * len(worked)
    assert failed.count("does not fit") >= 0.6 * len(failed)
    assert "does not fit" not in worked
    assert "fits" not in failed
