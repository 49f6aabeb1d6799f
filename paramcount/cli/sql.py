"""paramcount sql QUERY"""

from __future__ import annotations

from typing import Any

import click

from paramcount.cli.options import CommandRequest, define_command, option
from paramcount.counting.count import SCHEMA_VERSION
from paramcount.errors import ParamcountError, make_printable
from paramcount.output.tables import Column, Table, format_value


@define_command("sql", "--schema")
@click.argument("query", required=False)
@option("--schema", "Show every table and column with its type, unit and meaning.")
def command(request: CommandRequest, query: str | None, schema: bool) -> None:
    """Query the zoo with one SELECT of SQLite: models, sizes, components, tensors, published figures and more.

    The tables are in memory and can only be read; --schema lists them. JSON and CSV have exact integers.
    """
    if schema and query is not None:
        raise ParamcountError("--schema takes no QUERY")
    if not schema and query is None:
        raise ParamcountError("missing argument QUERY; run `paramcount sql --help`")
    if schema:
        from paramcount.database.dictionary import build_dictionary

        request.emit(build_dictionary())
        return
    from paramcount.cli.progress import progress_callback
    from paramcount.database.query import run_query

    with progress_callback("counting models") as watch:
        result = run_query(str(query), watch=watch)
    columns = [
        Column(name, make_printable(name), is_numeric([row[i] for row in result.rows]), show_value)
        for i, name in enumerate(result.columns)
    ]
    records = [dict(zip(result.columns, row)) for row in result.rows]
    request.emit(Table(columns, result.rows, {"schema_version": SCHEMA_VERSION, "rows": records}))


def is_numeric(values: list[Any]) -> bool:
    return all(value is None or isinstance(value, (int, float)) for value in values)


def show_value(value: Any) -> str:
    """A value for people: integers with groups of digits, other numbers with four decimals at most.

    >>> show_value(124439808), show_value(2 / 3), show_value(1e20)
    ('124,439,808', '0.6667', '1e+20')
    """
    if not isinstance(value, float):
        return format_value(value)
    return f"{value:,.4f}".rstrip("0").rstrip(".") if 1e-4 <= abs(value) < 1e15 or not value else f"{value:.6g}"
