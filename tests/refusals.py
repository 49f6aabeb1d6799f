"""What is refused, and with which line: the tables in tests/data/refusals.

Each input stands before its message; a comment says what the inputs below it have in common, and why they are refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent / "data" / "refusals"


def read_refusals(name: str) -> list[Any]:
    """(input, message) of each case of a table, which is called by the number of its line."""
    numbered = enumerate(DATA.joinpath(f"{name}.txt").read_text(encoding="utf-8").splitlines(), 1)
    lines = iter([(n, line) for n, line in numbered if line and not line.startswith("# ")])
    return [pytest.param(given, message.strip(), id=f"line {n}") for (n, given), (_, message) in zip(lines, lines)]
