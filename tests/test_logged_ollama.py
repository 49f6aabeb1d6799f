"""What Ollama allocates equals what its logs print; each figure has its source."""

from __future__ import annotations

import pytest

from tests.llama_figures import count_figure, find_verdict
from tests.logged import FULFILLED, agrees, find_share, read_logged

LOGGED = read_logged("ollama")
OUTCOMES = [row for row in LOGGED.values() if row.kind == "outcome" and not row.reason]


@pytest.mark.parametrize("name", [name for name, row in LOGGED.items() if row.kind != "outcome"])
def test_a_figure_is_what_the_log_prints(name: str) -> None:
    row = LOGGED[name]
    found = count_figure("ollama", row)
    assert agrees(row, found) == (not row.reason), f"{found} instead of {row.value}"


def test_most_figures_are_met_in_both_parts() -> None:
    assert min(find_share(LOGGED.values(), aside=aside) for aside in (False, True)) >= FULFILLED


def test_what_worked_is_called_fits_and_what_ran_out_of_memory_is_not() -> None:
    verdicts = {row.id: find_verdict("ollama", row) for row in OUTCOMES}
    worked = [verdicts[row.id] for row in OUTCOMES if row.value == "worked"]
    failed = [verdicts[row.id] for row in OUTCOMES if row.value == "out of memory"]
    assert worked.count("fits") >= 0.8 * len(worked)
    assert failed.count("does not fit") >= 0.6 * len(failed)
    assert "does not fit" not in worked
    assert "fits" not in failed
