"""What llama.cpp allocates equals what its logs print; each figure has its source."""

from __future__ import annotations

import pytest

from tests.llama_figures import count_figure
from tests.logged import FULFILLED, agrees, find_share, read_logged

LOGGED = read_logged("llama_cpp")


@pytest.mark.parametrize("name", [name for name, row in LOGGED.items() if row.kind != "outcome"])
def test_a_figure_is_what_the_log_prints(name: str) -> None:
    row = LOGGED[name]
    found = count_figure("llama.cpp", row)
    assert agrees(row, found) == (not row.reason), f"{found} instead of {row.value}"


def test_most_figures_are_met_in_both_parts() -> None:
    assert find_share(LOGGED.values(), aside=False) >= FULFILLED
