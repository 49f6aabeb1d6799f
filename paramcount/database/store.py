"""The tables in SQLite, in memory. Only the tables that are asked for are filled, and they are kept in the cache."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing, suppress
from typing import Any

from paramcount.database.cache import hash_sources, read_cache, write_cache
from paramcount.database.tables import TABLES, TableSpec, list_rows
from paramcount.zoo import Model, load_all

BY_NAME = {table.name: table for table in TABLES}
Values = Sequence[Any]  # of a row
CACHES = hasattr(sqlite3.Connection, "serialize")  # unless SQLite was built without it


def open_empty() -> sqlite3.Connection:
    """A database in memory with all tables, all of them empty."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for table in TABLES:
        connection.execute(table.sql)
        if table.name != "models":
            connection.execute(f"CREATE INDEX {table.name}_model ON {table.name} (model)")
    return connection


def open_database(names: Collection[str] = tuple(BY_NAME), *, own: bool = True) -> sqlite3.Connection:
    """A database in memory with all tables; those of these names are filled, others perhaps.

    `own`: with the user's own entries. Then the rows of built-in models are those of the database without them, so that
    another entry does not compute them again.
    Raises: ParamcountError for an entry that cannot be read.
    """
    key = hash_sources(own=own)
    connection = open_cached(key) or open_empty()
    (filled,) = connection.execute("PRAGMA user_version").fetchone()
    missing = [table for i, table in enumerate(TABLES) if table.name in names and not filled >> i & 1]
    if not missing:
        return connection
    try:
        models = [model for model in load_all() if own or not model.is_own]
        known = read_built_in_rows(missing) if any(model.is_own for model in models) else {}
        connection.execute("BEGIN")
        for table in missing:
            fill_table(connection, table, models, known.get(table.name))
            filled |= 1 << TABLES.index(table)
        connection.execute(f"PRAGMA user_version = {filled:d}")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    if CACHES:
        write_cache(key, connection.serialize())
    return connection


def open_cached(key: bytes) -> sqlite3.Connection | None:
    """The database in the cache; None if there is none, or if it is damaged."""
    data = read_cache(key) if CACHES else None
    if data is None:
        return None
    connection = sqlite3.connect(":memory:", isolation_level=None)
    with suppress(sqlite3.Error):
        connection.deserialize(data)
        connection.execute("SELECT count(*) FROM models")
        return connection
    connection.close()
    return None


def fill_table(
    connection: sqlite3.Connection, table: TableSpec, models: list[Model], known: dict[str, list[Values]] | None = None
) -> None:
    """Insert the rows of a table. `known`: {id: rows} of all built-in models, if they need not be computed."""
    rows: Iterable[Values]
    if known is None:
        rows = list_rows(table, models)
    else:
        rows = (row for m in models for row in (list_rows(table, [m]) if m.is_own else known.get(m.id, ())))
    places = ", ".join("?" * len(table.fields))
    connection.executemany(f"INSERT INTO {table.name} VALUES ({places})", rows)  # noqa: S608


def read_built_in_rows(tables: Iterable[TableSpec]) -> dict[str, dict[str, list[Values]]]:
    """{table: {id: rows}} of the database without the user's entries."""
    names = [table.name for table in tables]
    rows: dict[str, dict[str, list[Values]]] = {name: {} for name in names}
    with closing(open_database(names, own=False)) as connection:
        for name in names:
            for row in connection.execute(f"SELECT * FROM {name} ORDER BY rowid"):  # noqa: S608
                rows[name].setdefault(row[0], []).append(row)
    return rows


def read_rows(table: TableSpec) -> list[tuple[Any, ...]]:
    """The rows of a table: exact integers, flags as true and false, dates as strings.

    Raises: ParamcountError for an entry that cannot be read.
    """
    connection = open_database([table.name])
    rows = connection.execute(f"SELECT * FROM {table.name} ORDER BY rowid").fetchall()  # noqa: S608
    connection.close()
    flags = {i for i, field in enumerate(table.fields) if field.type == "flag"}
    if not flags:
        return rows
    return [
        tuple(bool(value) if i in flags and value is not None else value for i, value in enumerate(row)) for row in rows
    ]
