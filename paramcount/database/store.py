"""The tables in SQLite, in memory. Only the tables that are asked for are filled, and they are kept in the cache."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from paramcount.database.cache import hash_sources, read_cache, write_cache
from paramcount.database.tables import TABLES, TableSpec, list_rows
from paramcount.zoo import Model, load_all

BY_NAME = {table.name: table for table in TABLES}
CACHES = hasattr(sqlite3.Connection, "serialize")  # unless SQLite was built without it


def open_empty() -> sqlite3.Connection:
    """A database in memory with all tables, all of them empty."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for table in TABLES:
        connection.execute(table.sql)
        if table.name != "models":
            connection.execute(f"CREATE INDEX {table.name}_model ON {table.name} (model)")
    return connection


def open_database(names: Collection[str] = tuple(BY_NAME)) -> sqlite3.Connection:
    """A database in memory with all tables; those of these names are filled, others perhaps.

    Raises: ParamcountError for an entry that cannot be read.
    """
    key = hash_sources()
    connection = open_cached(key) or open_empty()
    (filled,) = connection.execute("PRAGMA user_version").fetchone()
    missing = [table for i, table in enumerate(TABLES) if table.name in names and not filled >> i & 1]
    if not missing:
        return connection
    try:
        models = load_all()
        connection.execute("BEGIN")
        for table in missing:
            fill_table(connection, table, models)
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


def fill_table(connection: sqlite3.Connection, table: TableSpec, models: list[Model]) -> None:
    """Insert the rows of a table."""
    places = ", ".join("?" * len(table.fields))
    connection.executemany(f"INSERT INTO {table.name} VALUES ({places})", list_rows(table, models))  # noqa: S608


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
