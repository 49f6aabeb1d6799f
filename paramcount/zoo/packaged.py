"""The tables of the built-in models that are part of the package: what others need of all models at once.

`paramcount export` writes them beside the entries, and a test computes each of them anew.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from paramcount.zoo.catalog import CONFIGS
from paramcount.zoo.columns import TableField

MODELS = "zoo.csv"
PACKAGED = {"models": MODELS, "components": "components.csv", "parts": "parts.csv"}  # {table: its file}
PARSERS: dict[str, Callable[[str], Any]] = {"integer": int, "number": float, "flag": "true".__eq__}


def read_packaged_rows(fields: Sequence[TableField], file: str = MODELS) -> Iterator[list[Any]]:
    """The values of these columns, row by row; None for an empty cell."""
    parsers = [PARSERS.get(field.type, str) for field in fields]
    with (CONFIGS / file).open(encoding="utf-8", newline="") as lines:
        reader = csv.reader(lines)
        header = next(reader)
        places = [header.index(field.name) for field in fields]
        for row in reader:
            yield [parse(row[i]) if row[i] else None for i, parse in zip(places, parsers)]
