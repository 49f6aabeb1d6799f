"""Reads tables of claims from CSV files with any usual separator and from Markdown files."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from paramcount.auditing.cells import has_decimal_commas
from paramcount.auditing.headings import COUNTS, Heading, describe_expected, parse_heading
from paramcount.auditing.layout import Grid, arrange
from paramcount.errors import ParamcountError, locate_errors, make_printable, quote
from paramcount.formats.files import decode_text

MOST_BYTES = 4 * 2**20
MOST_COLUMNS = 500
MOST_CELLS = 100_000
ROWS = "the list of rows"
KIND_OF_FILE = "a CSV or Markdown file"
CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
SEPARATORS = ",;\t"
FENCES = ("```", "~~~")
MOST_NAMED = 5
LONGEST = 300


class ClaimLine(NamedTuple):
    """A line of a table."""

    number: int  # in the file, starting at 1
    cells: tuple[str, ...]


class ClaimTable(NamedTuple):
    """A table with a model column and at least one column of claims."""

    place: str  # the file
    headings: tuple[Heading, ...]
    lines: tuple[ClaimLine, ...]

    @property
    def model(self) -> int:
        """The index of the model column."""
        return next(i for i, heading in enumerate(self.headings) if heading.kind == "model")

    @property
    def left_out(self) -> tuple[str, ...]:
        """The unrecognised columns."""
        headings = [heading for i, heading in enumerate(self.headings) if i != self.model]
        unrecognised = [heading for heading in headings if heading.kind in (None, "model")]
        return tuple(heading.text for heading in unrecognised if heading.text or heading.kind)


class ClaimTables(NamedTuple):
    """The tables of claims in a file, and the tables that were skipped."""

    claims: tuple[ClaimTable, ...]
    skipped: tuple[str, ...] = ()  # one line per table


def from_bytes(data: bytes, place: str) -> ClaimTables:
    """The tables of claims in standard input."""
    with locate_errors(place):
        text = decode_text(data, KIND_OF_FILE, MOST_BYTES)
    return from_text(text, place)


def from_text(text: str, place: str) -> ClaimTables:
    """The tables of claims in a text.

    Raises: ParamcountError with the place and line if there is none.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if bad := CONTROL.search(text):
        number = text.count("\n", 0, bad.start()) + 1
        raise ParamcountError(
            f"contains the control character {quote(bad[0])}", where=f"{place}, line {number}", expected=KIND_OF_FILE
        )
    lines = text.split("\n")
    grids = list(parse_markdown(lines, place)) if any(map(is_rule, lines)) else [parse_csv(lines, place)]
    return select_tables([grid for grid in grids if grid], place)


def from_rows(rows: Iterable[Mapping[Any, Any]]) -> ClaimTables:
    """The table of claims in rows that map columns to values."""
    mappings: list[Mapping[Any, Any]] = []
    columns: dict[str, None] = {}
    for row in rows:
        if not isinstance(row, Mapping):
            raise ParamcountError(
                f"is of type {type(row).__name__}",
                where=f"row {len(mappings) + 1}",
                expected="a mapping of columns to values",
            )
        mappings.append(row)
        columns |= dict.fromkeys(map(str, row))
        check_size(len(columns), len(mappings) * len(columns), ROWS)
    if not mappings:
        raise ParamcountError("is empty", where=ROWS, expected="at least one row")
    grid: Grid = [(0, list(columns))]
    for i, row in enumerate(mappings, 1):
        texts = {str(name): format_cell(value) for name, value in row.items()}
        grid.append((i, [texts.get(name, "") for name in columns]))
    return select_tables([grid], ROWS)


def format_cell(value: object) -> str:
    """A value as the text of a cell; "" if missing."""
    if value is None or value != value:  # NaN differs from itself
        return ""
    if isinstance(value, float) and value.is_integer():  # pandas stores integers with a missing value as floats
        value = int(value)
    return make_printable(value, LONGEST)


def select_tables(grids: Sequence[Grid], place: str) -> ClaimTables:
    """The tables of claims, with a line for each other table."""
    claims, skipped, has_empty_table = [], [], False
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
            has_empty_table = True
        else:
            table_lines = tuple(ClaimLine(number, tuple(cells)) for number, cells in lines)
            claims.append(ClaimTable(place, set_decimal_commas(headings, lines), table_lines))
    if not claims:
        if has_empty_table:
            raise ParamcountError("contains no rows", where=place, expected="at least one row below the header")
        problem = "contains no table of claims" if grids else "contains no table"
        columns = f": its columns are {list_headings(grids[0][0][1])}" if len(grids) == 1 else ""
        raise ParamcountError(problem + columns, where=place, expected=describe_expected())
    return ClaimTables(tuple(claims), tuple(skipped))


def set_decimal_commas(headings: tuple[Heading, ...], lines: Grid) -> tuple[Heading, ...]:
    """The headings, marked if the numbers in the table have decimal commas."""
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
    """The table, with the separator (comma, semicolon or tab) that gives the most recognised columns."""
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
            n_columns = len(grid[0][1]) if grid else len(row)
            if not any(cell.strip() for cell in row[n_columns:]):
                row = row[:n_columns]
            cells += len(row)
            check_size(len(row), cells, place)
            if len(row) != n_columns:
                raise make_length_error(row, f"{place}, line {number}", f"{n_columns:,}, as in the first line")
            grid.append((number, row))
    except csv.Error as error:
        raise ParamcountError(f"invalid CSV: {error}", where=f"{place}, line {first + reader.line_num}") from None
    return grid


def make_length_error(row: Sequence[str], where: str, expected: str) -> ParamcountError:
    return ParamcountError(f"has {len(row):,} cell{'' if len(row) == 1 else 's'}", where=where, expected=expected)


def count_recognized(line: str, separator: str, place: str) -> tuple[int, int]:
    check_size(line.count(separator), 0, place)
    try:
        (cells,) = csv.reader([line], delimiter=separator, skipinitialspace=True)
    except (csv.Error, ValueError):
        return 0, 0
    return len([cell for cell in cells if parse_heading(cell).kind]), len(cells)


# ---- Markdown


def is_rule(line: str) -> bool:
    """Whether a line separates headings from rows, as "| --- | :-: |" does."""
    cells = split_row(line)
    return "|" in line and all("-" in cell and not cell.strip(":-") for cell in cells)


def split_row(line: str) -> list[str]:
    """The cells of a line; an escaped pipe is part of its cell."""
    text = line.strip().replace("\\|", "\0").removeprefix("|").removesuffix("|")
    return [cell.replace("\0", "|").strip() for cell in text.split("|")]


def parse_markdown(lines: Sequence[str], place: str) -> Iterator[Grid]:
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
                raise make_length_error(row, f"{place}, line {i}", f"at most {len(headings):,}, as in the header")
            cells += len(headings)
            check_size(len(headings), cells, place)
            grid.append((i, [*row, *[""] * (len(headings) - len(row))]))
        yield grid
