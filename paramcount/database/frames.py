"""Results as pandas DataFrames: integers stay exact, also in columns with missing values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paramcount.database.query import run_query
from paramcount.database.store import read_rows
from paramcount.database.tables import find_table
from paramcount.views.compare import DTYPES

if TYPE_CHECKING:
    import pandas


def make_zoo_frame(*, estimates: bool) -> pandas.DataFrame:
    """The table `models`, with or without estimates: integers are Int64, flags boolean, release dates datetime64."""
    import pandas

    table = find_table("models")
    names = [field.name for field in table.fields]
    rows = [row for row in read_rows(table) if estimates or not row[names.index("estimate")]]
    frame = pandas.DataFrame(rows, columns=names, dtype=object)
    for field in table.fields:
        if field.type == "date":
            frame[field.name] = pandas.to_datetime(frame[field.name], format="%Y-%m-%d")
    return frame.astype({field.name: DTYPES[field.type] for field in table.fields if field.type in DTYPES})


def make_query_frame(sql: str) -> pandas.DataFrame:
    """The result of a query: columns of integers are Int64, of numbers Float64, all others objects."""
    import pandas

    result = run_query(sql)
    frame = pandas.DataFrame(result.rows, columns=list(result.columns), dtype=object)
    dtypes = {name: find_dtype(list(frame[name])) for name in result.columns}
    return frame.astype({name: dtype for name, dtype in dtypes.items() if dtype})


def find_dtype(values: list[Any]) -> str:
    """The dtype of a column; empty for text, for mixed values and for integers beside decimal numbers that a float
    would round."""
    types = {type(value) for value in values if value is not None}
    if types == {int}:
        return "Int64"
    has_large = any(type(value) is int and abs(value) > 2**53 for value in values)
    return "Float64" if types in ({float}, {float, int}) and not has_large else ""
