"""Records as columns: JSON has each key once, and values of one key, which are alike, compress better side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

RECORDS = ("models", "structures", "parts", "drawings")  # the data of a page that are lists of records


def store_as_columns(data: dict[str, Any]) -> dict[str, Any]:
    """The data of a page with its records as columns. data.js reads them."""
    return data | {name: make_columns(data[name]) for name in RECORDS}


def make_columns(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """{"order": the kind of each record, "kinds": for each kind its keys, and the values of each key}.

    >>> make_columns([{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    {'order': [0, 0], 'kinds': [{'keys': ['a', 'b'], 'columns': [[1, 3], [2, 4]]}]}
    """
    kinds: dict[tuple[str, ...], int] = {}
    order = [kinds.setdefault(tuple(record), len(kinds)) for record in records]
    columns: list[list[list[Any]]] = [[[] for _ in keys] for keys in kinds]
    for record, kind in zip(records, order):
        for column, value in zip(columns[kind], record.values()):
            column.append(value)
    return {"order": order, "kinds": [{"keys": list(keys), "columns": columns[kind]} for keys, kind in kinds.items()]}
