"""The tables in SQLite, in memory. Only the tables that are asked for are filled, and they are kept in the cache.

An installed package brings the rows of some tables; a checkout, whose entries and code change, computes them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from typing import Any

from paramcount.database.tables import TABLES, TableSpec, find_table, list_rows
from paramcount.zoo import load_entry
from paramcount.zoo.cache import hash_sources, read_cache, write_cache
from paramcount.zoo.catalog import IS_INSTALLED, list_ids, map_own_paths
from paramcount.zoo.packaged import PACKAGED, read_packaged_rows

BY_NAME = {table.name: table for table in TABLES}
Values = Sequence[Any]  # of a row
KnownRows = dict[str, list[Values]]  # {id: rows of a table}
Watch = Callable[[int, int], object]  # is called with the number of models done, once per table, and that of all
CACHES = hasattr(sqlite3.Connection, "serialize")  # unless SQLite was built without it


def open_empty() -> sqlite3.Connection:
    """A database in memory with all tables, all of them empty."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for table in TABLES:
        connection.execute(table.sql)
        if table.name != "models":
            connection.execute(f"CREATE INDEX {table.name}_model ON {table.name} (model)")
    return connection


def open_database(
    names: Collection[str] = tuple(BY_NAME), *, own: bool = True, watch: Watch | None = None
) -> sqlite3.Connection:
    """A database in memory with all tables; those of these names are filled, others perhaps.

    `own`: with the user's own entries. Then the rows of built-in models are those of the database without them, so that
    another entry does not compute them again. `watch`: is told how many models have their rows.
    Raises: ParamcountError for an entry that cannot be read.
    """
    key = hash_sources(own=own)
    connection = open_cached(key) or open_empty()
    (filled,) = connection.execute("PRAGMA user_version").fetchone()
    missing = [table for i, table in enumerate(TABLES) if table.name in names and not filled >> i & 1]
    if not missing:
        return connection
    try:
        known = read_built_in_rows(missing, watch) if own and map_own_paths() else read_installed_rows(missing)
        connection.execute("BEGIN")
        ids = list(list_ids(own=own))
        for i, table in enumerate(missing):
            watched = watch_ids(ids, watch, i * len(ids), len(missing) * len(ids))
            fill_table(connection, table, watched, known.get(table.name, {}))
            filled |= 1 << TABLES.index(table)
        connection.execute(f"PRAGMA user_version = {filled:d}")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    if CACHES:
        write_cache(key, connection.serialize())
    return connection


def watch_ids(ids: Sequence[str], watch: Watch | None, done: int = 0, n: int = 0) -> Iterator[str]:
    """The ids; `watch` is told before each how many are done, of `n` in all, of which `done` come before these."""
    for i, id in enumerate(ids):
        if watch:
            watch(done + i, n or len(ids))
        yield id


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


def fill_table(connection: sqlite3.Connection, table: TableSpec, ids: Iterable[str], known: KnownRows) -> None:
    """Insert the rows of the models with these ids; those in `known` need not be computed."""
    rows = (row for id in ids for row in (known[id] if id in known else list_rows(table, [load_entry(id)])))
    places = ", ".join("?" * len(table.fields))
    connection.executemany(f"INSERT INTO {table.name} VALUES ({places})", rows)  # noqa: S608


def read_built_in_rows(tables: Iterable[TableSpec], watch: Watch | None = None) -> dict[str, KnownRows]:
    """{table: {id: rows}} of the database without the user's entries."""
    names = [table.name for table in tables]
    rows: dict[str, KnownRows] = {name: {id: [] for id in list_ids(own=False)} for name in names}
    with closing(open_database(names, own=False, watch=watch)) as connection:
        for name in names:
            for row in connection.execute(f"SELECT * FROM {name} ORDER BY rowid"):  # noqa: S608
                rows[name][row[0]].append(row)
    return rows


def read_installed_rows(tables: Iterable[TableSpec]) -> dict[str, KnownRows]:
    """{table: {id: rows}} of the tables that the installation brings, for every model that it has, estimates too."""
    names = [table.name for table in tables if table.name in PACKAGED] if IS_INSTALLED else []
    rows: dict[str, KnownRows] = {}
    for name in names:
        rows[name] = {id: [] for (id,) in read_packaged_rows(find_table("models").fields[:1])}
        for row in read_packaged_rows(find_table(name).fields, PACKAGED[name]):
            rows[name][row[0]].append(row)
    return rows


def read_rows(table: TableSpec, watch: Watch | None = None) -> list[tuple[Any, ...]]:
    """The rows of a table: exact integers, flags as true and false, dates as strings. `watch`: as in `open_database`.

    Raises: ParamcountError for an entry that cannot be read.
    """
    connection = open_database([table.name], watch=watch)
    rows = connection.execute(f"SELECT * FROM {table.name} ORDER BY rowid").fetchall()  # noqa: S608
    connection.close()
    flags = {i for i, field in enumerate(table.fields) if field.type == "flag"}
    if not flags:
        return rows
    return [
        tuple(bool(value) if i in flags and value is not None else value for i, value in enumerate(row)) for row in rows
    ]
