"""Files of the zoo: SQLite, Parquet, CSV, JSON, JSON Lines and Excel, built in memory from the declared tables.

Integers are exact in every file. A spreadsheet rounds numbers of more than 15 digits, so those are text in .xlsx.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from paramcount.counting.count import SCHEMA_VERSION
from paramcount.database.dictionary import build_dictionary
from paramcount.database.store import open_database, read_rows
from paramcount.database.tables import TABLES, TableSpec, find_table
from paramcount.errors import ParamcountError, make_extra_error, make_printable
from paramcount.output.files import choose_by_extension
from paramcount.output.tables import format_csv_value

if TYPE_CHECKING:
    import pyarrow

MOST_DIGITS = 10**15  # a spreadsheet rounds larger integers
DICTIONARY = "columns"  # the table or sheet that describes the others


def export_zoo(path: str, table: str | None = None) -> bytes:
    """The content of a file, in the format of its extension: of one table, or of all if the format can.

    Raises: ParamcountError for an unknown extension or table, and if the extra is missing.
    """
    build, has_all = choose_by_extension(path, FORMATS, where="FILE")
    if build is build_sqlite:
        if table is not None:
            raise ParamcountError(
                "--table does not apply to SQLite, whose file has all tables", expected="another extension"
            )
        return build_sqlite()
    tables = TABLES if table is None and has_all else (find_table(table or "models"),)
    return build(tables)


def build_sqlite() -> bytes:
    """A SQLite database with all tables, and `columns`, which describes them."""
    connection = open_database()
    dictionary = build_dictionary()
    names = ", ".join(f'"{column.name}" TEXT' for column in dictionary.columns)
    connection.execute(f"CREATE TABLE {DICTIONARY} ({names})")
    connection.executemany(f"INSERT INTO {DICTIONARY} VALUES (?, ?, ?, ?, ?)", dictionary.rows)  # noqa: S608
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}")
    data = connection.serialize()
    connection.close()
    return data


def build_csv(tables: tuple[TableSpec, ...]) -> bytes:
    """One table as CSV: all digits, true and false, an empty string for an unknown value."""
    (table,) = tables
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(field.name for field in table.fields)
    writer.writerows([format_csv_value(value) for value in row] for row in read_rows(table))
    return out.getvalue().encode()


def build_json(tables: tuple[TableSpec, ...]) -> bytes:
    """The tables as one JSON document: {table: list of records}."""
    document = {"schema_version": SCHEMA_VERSION} | {table.name: list(list_records(table)) for table in tables}
    return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode()


def build_jsonl(tables: tuple[TableSpec, ...]) -> bytes:
    """One table as JSON Lines: a record per line."""
    (table,) = tables
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in list_records(table)).encode()


def list_records(table: TableSpec) -> Iterator[dict[str, Any]]:
    names = [field.name for field in table.fields]
    return (dict(zip(names, row)) for row in read_rows(table))


def build_parquet(tables: tuple[TableSpec, ...]) -> bytes:
    """One table as Parquet: 64-bit integers, dates, and the unit and meaning of each column in its metadata.

    Raises: ParamcountError if pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise make_extra_error("a Parquet file", "export") from None
    (table,) = tables
    fields = [
        pyarrow.field(field.name, get_arrow_type(field.type), metadata={"unit": field.unit, "meaning": field.meaning})
        for field in table.fields
    ]
    columns: list[Any] = [list(values) for values in zip(*read_rows(table))] or [[] for _ in fields]
    for i, field in enumerate(table.fields):
        if field.type == "date":
            columns[i] = pyarrow.array(columns[i], pyarrow.string()).cast(pyarrow.date32())
    out = io.BytesIO()
    parquet.write_table(pyarrow.table(columns, schema=pyarrow.schema(fields)), out)
    return out.getvalue()


def get_arrow_type(type: str) -> pyarrow.DataType:
    import pyarrow

    types = {"integer": pyarrow.int64(), "number": pyarrow.float64(), "flag": pyarrow.bool_(), "date": pyarrow.date32()}
    return types.get(type, pyarrow.string())


def build_xlsx(tables: tuple[TableSpec, ...]) -> bytes:
    """The tables as sheets of a workbook, and `columns`, which describes them. Text is never a formula.

    Raises: ParamcountError if openpyxl is not installed.
    """
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
    except ImportError:
        raise make_extra_error("an Excel file", "export") from None
    dictionary = build_dictionary()
    workbook = Workbook(write_only=True)
    sheets = [(table.name, [field.name for field in table.fields], read_rows(table)) for table in tables]
    sheets.append((DICTIONARY, [column.name for column in dictionary.columns], list(map(tuple, dictionary.rows))))

    def make_cell(sheet: Any, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= MOST_DIGITS:
            value = str(value)
        if not isinstance(value, str):
            return value
        cell = WriteOnlyCell(sheet, make_printable(value, 32_000))
        cell.data_type = "s"  # else "=1+1" would be a formula
        return cell

    for name, headings, rows in sheets:
        sheet = workbook.create_sheet(name)
        sheet.freeze_panes = "B2"
        sheet.append(headings)
        for row in rows:
            sheet.append([make_cell(sheet, value) for value in row])
    out = io.BytesIO()
    workbook.save(out)
    return out.getvalue()


Build = Callable[..., bytes]
# {extension: (function, whether the file can have all tables)}
FORMATS: dict[str, tuple[Build, bool]] = {
    ".sqlite": (build_sqlite, True),
    ".db": (build_sqlite, True),
    ".parquet": (build_parquet, False),
    ".csv": (build_csv, False),
    ".json": (build_json, True),
    ".jsonl": (build_jsonl, False),
    ".xlsx": (build_xlsx, True),
}
