"""Tables of claims in CSV files with any usual separator, and in Markdown files with text around the tables."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from paramcount.auditing.cells import has_decimal_commas
from paramcount.auditing.headings import COUNTS, Heading, describe_expected, parse_heading
from paramcount.auditing.layout import Grid, arrange
from paramcount.errors import ParamcountError, make_printable, quote
from paramcount.formats.files import decode_text, read_text

MOST_BYTES = 4 * 2**20
MOST_COLUMNS = 500
MOST_CELLS = 100_000
KIND_OF_FILE = "a CSV or Markdown file"
CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
SEPARATORS = ",;\t"
FENCES = ("```", "~~~")
MOST_NAMED = 5
LONGEST = 300


class Line(NamedTuple):
    """A line of a table."""

    number: int  # in the file, from 1
    cells: tuple[str, ...]


class Table(NamedTuple):
    """A table with a column of models and at least one column of claims."""

    place: str  # the file
    headings: tuple[Heading, ...]
    lines: tuple[Line, ...]

    @property
    def model(self) -> int:
        """The column of models."""
        return next(i for i, heading in enumerate(self.headings) if heading.kind == "model")

    @property
    def left_out(self) -> tuple[str, ...]:
        """The unrecognised columns."""
        return tuple(
            h.text
            for i, h in enumerate(self.headings)
            if (h.kind is None and h.text) or (h.kind == "model" and i != self.model)
        )


class Tables(NamedTuple):
    """The tables of claims in a file, and the tables that were skipped."""

    claims: tuple[Table, ...]
    skipped: tuple[str, ...] = ()  # one line per table


def from_path(path: Path) -> Tables:
    """The tables of claims in a file.

    Raises: ParamcountError with the file and line if it cannot be read, is not a table, or has no claims.
    """
    place = make_printable(path)
    try:
        return from_text(read_text(path, KIND_OF_FILE, MOST_BYTES), place)
    except csv.Error as error:
        raise ParamcountError(f"is not valid CSV: {error}", where=place) from None


def from_bytes(data: bytes, place: str) -> Tables:
    """The tables of claims in standard input."""
    try:
        text = decode_text(data, KIND_OF_FILE, MOST_BYTES)
    except ParamcountError as error:
        raise error.add_location(place) from None
    return from_text(text, place)


def from_text(text: str, place: str) -> Tables:
    """The tables of claims in a text."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if bad := CONTROL.search(text):
        number = text.count("\n", 0, bad.start()) + 1
        raise ParamcountError(
            f"contains the control character {quote(bad[0])}", where=f"{place}, line {number}", expected=KIND_OF_FILE
        )
    lines = text.split("\n")
    grids = list(parse_markdown(lines, place)) if is_markdown(lines) else [parse_csv(lines, place)]
    return select_tables([grid for grid in grids if grid], place)


def from_rows(rows: Iterable[Mapping[Any, Any]]) -> Tables:
    """The table of claims given as mappings of columns to values."""
    found: list[Mapping[Any, Any]] = []
    columns: dict[str, None] = {}
    for row in rows:
        if not isinstance(row, Mapping):
            raise ParamcountError(
                f"the row is of type {type(row).__name__}",
                where=f"row {len(found) + 1}",
                expected="mappings of columns to values",
            )
        found.append(row)
        columns |= dict.fromkeys(map(str, row))
        check_size(len(columns), len(found) * len(columns), "rows")
    texts = [{str(name): format_cell(value) for name, value in row.items()} for row in found]
    return select_tables(
        [[(0, list(columns)), *((i, [row.get(name, "") for name in columns]) for i, row in enumerate(texts, 1))]],
        "rows",
    )


def format_cell(value: object) -> str:
    """A value as the text of a cell; empty if missing."""
    if value is None or value != value:  # NaN differs from itself
        return ""
    if isinstance(value, float) and value.is_integer():  # pandas stores integers with a missing value as floats
        value = int(value)
    return make_printable(value, LONGEST)


def select_tables(grids: Sequence[Grid], place: str) -> Tables:
    """Separate tables of claims from other tables.

    Raises: ParamcountError if there is no table of claims.
    """
    claims, skipped = [], []
    for grid in grids:
        number, texts = grid[0]
        headings, lines = arrange(grid)
        kinds = {heading.kind for heading in headings}
        where = f"{place}, line {number}" if number else place
        if "model" not in kinds:
            skipped.append(f"{where}: skipped a table without a model column: {list_headings(texts)}")
        elif kinds <= {"model", None}:
            skipped.append(f"{where}: skipped a table without recognised columns: {list_headings(texts)}")
        elif not lines:
            skipped.append(f"{where}: skipped a table without rows")
        else:
            claims.append(
                Table(
                    place,
                    set_decimal_commas(headings, lines),
                    tuple(Line(number, tuple(cells)) for number, cells in lines),
                )
            )
    if not claims:
        found = "contains no table of claims" if grids else "contains no table"
        columns = f": its columns are {list_headings(grids[0][0][1])}" if len(grids) == 1 else ""
        raise ParamcountError(found + columns, where=place, expected=describe_expected())
    return Tables(tuple(claims), tuple(skipped))


def set_decimal_commas(headings: tuple[Heading, ...], lines: Grid) -> tuple[Heading, ...]:
    """The headings, marked if the numbers of the table have decimal commas."""
    measured = [i for i, heading in enumerate(headings) if heading.kind in (*COUNTS, "bytes")]
    if not has_decimal_commas(cells[i] for _, cells in lines for i in measured):
        return headings
    return tuple(heading._replace(decimal_comma=True) for heading in headings)


def list_headings(texts: Sequence[str]) -> str:
    headings = ", ".join(make_printable(text.strip() or "–", 30) for text in texts[:MOST_NAMED])
    return f"{headings}, … ({len(texts):,} in total)" if len(texts) > MOST_NAMED else headings


def check_size(columns: int, cells: int, place: str) -> None:
    """Raises: ParamcountError if a table is too large."""
    if columns > MOST_COLUMNS:
        raise ParamcountError(f"has {columns:,} columns", where=place, expected=f"at most {MOST_COLUMNS}")
    if cells > MOST_CELLS:
        raise ParamcountError(f"has more than {MOST_CELLS:,} cells", where=place, expected=f"at most {MOST_CELLS:,}")


# ---- CSV


def parse_csv(lines: Sequence[str], place: str) -> Grid:
    """A table parse_csv by commas, semicolons or tabs, whichever gives the first line the most recognised columns."""
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if first is None:
        raise ParamcountError("is empty", where=place, expected=describe_expected())
    separator = max(SEPARATORS, key=lambda mark: count_recognized(lines[first], mark, place))
    grid: Grid = []
    cells = 0
    reader = csv.reader(
        (f"{line}\n" for line in lines[first:]), delimiter=separator, skipinitialspace=True, strict=True
    )
    try:
        for row in reader:
            number = first + reader.line_num
            if not any(cell.strip() for cell in row):
                continue
            if grid and len(row) > len(grid[0][1]) and not any(cell.strip() for cell in row[len(grid[0][1]) :]):
                row = row[: len(grid[0][1])]
            cells += len(row)
            check_size(len(row), cells, place)
            if grid and len(row) != len(grid[0][1]):
                raise ParamcountError(
                    f"has {len(row):,} cells",
                    where=f"{place}, line {number}",
                    expected=f"{len(grid[0][1]):,}, as in the first line",
                )
            grid.append((number, row))
    except csv.Error as error:
        raise ParamcountError(f"is not valid CSV: {error}", where=f"{place}, line {first + reader.line_num}") from None
    return grid


def count_recognized(line: str, separator: str, place: str) -> tuple[int, int]:
    """The numbers of recognised columns and of all columns with this separator."""
    check_size(line.count(separator), 0, place)
    try:
        (cells,) = csv.reader([line], delimiter=separator, skipinitialspace=True)
    except (csv.Error, ValueError):
        return 0, 0
    return len([cell for cell in cells if parse_heading(cell).kind]), len(cells)


# ---- Markdown


def is_markdown(lines: Sequence[str]) -> bool:
    return any(is_rule(line) for line in lines)


def is_rule(line: str) -> bool:
    """Whether a line separates headings from rows: | --- | :-: |"""
    cells = split_row(line)
    return "|" in line and all("-" in cell and not cell.strip(":-") for cell in cells)


def split_row(line: str) -> list[str]:
    """The cells of a line; an escaped pipe belongs to its cell."""
    cells_text = line.strip().replace("\\|", "\0")
    cells_text = cells_text.removeprefix("|")
    cells_text = cells_text.removesuffix("|")
    return [cell.replace("\0", "|").strip() for cell in cells_text.split("|")]


def parse_markdown(lines: Sequence[str], place: str) -> Iterator[Grid]:
    """The tables of a Markdown text, except those in code blocks."""
    fence, cells, i = "", 0, 0
    while i < len(lines):
        line = lines[i].strip()
        i += 1
        if fence or line.startswith(FENCES):
            fence = ("" if line.startswith(fence) else fence) if fence else line[:3]
            continue
        if "|" not in line or i >= len(lines) or not is_rule(lines[i]):
            continue
        headings = split_row(line)
        check_size(len(headings), 0, place)
        if len(split_row(lines[i])) != len(headings):
            continue
        grid: Grid = [(i, headings)]
        i += 1
        while i < len(lines) and "|" in lines[i]:
            row = split_row(lines[i])
            i += 1
            if len(row) > len(headings):
                raise ParamcountError(
                    f"has {len(row):,} cells",
                    where=f"{place}, line {i}",
                    expected=f"at most {len(headings):,}, as in the header",
                )
            cells += len(headings)
            check_size(len(headings), cells, place)
            grid.append((i, [*row, *[""] * (len(headings) - len(row))]))
        yield grid
