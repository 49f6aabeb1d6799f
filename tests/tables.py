"""Tables of test cases in tests/data/tables: a row per line, written as in Python, with what explains it behind #."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "data" / "tables"


def read_table(name: str) -> list[Any]:
    """The rows of a table: tuples of literals and of sums and products of numbers."""
    lines = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [eval(line, {"__builtins__": {}}) for line in lines if line and not line.startswith("#")]  # noqa: S307
