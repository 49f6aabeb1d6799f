"""The tables in SQLite, in memory. Only the tables that are asked for are filled, and they are kept in the cache.

An installed package brings the rows of its models in zoo.csv; a checkout, whose entries and code change, computes them.
"""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing, suppress
from typing import Any

from paramcount.database.tables import TABLES, TableSpec, find_table, list_rows
from paramcount.zoo import load_entry
from paramcount.zoo.cache import hash_sources, read_cache, write_cache
from paramcount.zoo.catalog import CONFIGS, IS_INSTALLED, list_ids, map_own_paths

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
            report = report_from(watch, i * len(ids), len(missing) * len(ids))
            fill_table(connection, table, map(report, range(len(ids)), ids), known.get(table.name, {}))
            filled |= 1 << TABLES.index(table)
        connection.execute(f"PRAGMA user_version = {filled:d}")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    if CACHES:
        write_cache(key, connection.serialize())
    return connection


def report_from(watch: Watch | None, first: int, n: int) -> Callable[[int, str], str]:
    """A function that returns an id, and reports that so many of all n rows of models are done before it."""

    def report(i: int, id: str) -> str:
        if watch:
            watch(first + i, n)
        return id

    return report


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
    """{table: {id: rows}} of the tables that the installation brings: `models`."""
    models = find_table("models")
    return {"models": read_zoo_csv(models)} if IS_INSTALLED and models in tables else {}


def read_zoo_csv(models: TableSpec) -> KnownRows:
    """{id: its row} of zoo.csv, which is the exported table `models`."""
    parse: dict[str, Callable[[str], Any]] = {"integer": int, "number": float, "flag": "true".__eq__}
    with (CONFIGS / "zoo.csv").open(encoding="utf-8", newline="") as file:
        return {
            row["id"]: [[parse.get(f.type, str)(row[f.name]) if row[f.name] else None for f in models.fields]]
            for row in csv.DictReader(file)
        }


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
