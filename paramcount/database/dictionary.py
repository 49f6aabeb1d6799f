"""The data dictionary: every table and column with its type, unit and meaning, from their declaration."""

from __future__ import annotations

from paramcount.counting.count import SCHEMA_VERSION
from paramcount.database.tables import TABLES
from paramcount.output.tables import Column, Table

NAMES = ("table", "column", "type", "unit", "meaning")


def build_dictionary() -> Table:
    """One row per column of every table."""
    rows = [
        (table.name, field.name, field.type, field.unit or None, field.meaning)
        for table in TABLES
        for field in table.fields
    ]
    tables = [
        {
            "name": table.name,
            "meaning": table.meaning,
            "columns": [
                {"name": field.name, "type": field.type, "unit": field.unit, "meaning": field.meaning}
                for field in table.fields
            ],
        }
        for table in TABLES
    ]
    columns = [Column(name, name, False, lambda value: value or "") for name in NAMES]
    below = [f"{table.name}: {table.meaning}" for table in TABLES]
    below.append("SQLite stores a flag as 1 or 0 and a date as text, such as 2025-01-31.")
    return Table(columns, rows, {"schema_version": SCHEMA_VERSION, "tables": tables}, below=below, wraps=True)
