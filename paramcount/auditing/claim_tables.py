"""Tables of claims in files: CSV with any of the usual separators, and Markdown with text around its tables."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from paramcount.auditing.cells import has_decimal_commas
from paramcount.auditing.headings import COUNTS, Heading, expected, parse_heading
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
MOST_SAID = 5
LONGEST = 300


class Line(NamedTuple):
    """A line of a table."""

    number: int  # in its file, from 1
    cells: tuple[str, ...]


class Table(NamedTuple):
    """A table in which some column names models and another claims something of them."""

    place: str  # the file it stands in
    headings: tuple[Heading, ...]
    lines: tuple[Line, ...]

    @property
    def model(self) -> int:
        """The column of models."""
        return next(i for i, heading in enumerate(self.headings) if heading.kind == "model")

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns that claim nothing that is understood."""
        return tuple(h.text for i, h in enumerate(self.headings) if (h.kind is None and h.text) or (h.kind == "model" and i != self.model))


class Tables(NamedTuple):
    """The tables of a file, and what was passed over."""

    claims: tuple[Table, ...]
    skipped: tuple[str, ...] = ()  # tables of something else, a line each


def from_path(path: Path) -> Tables:
    """The tables of claims in a file.

    Raises: ParamcountError with the file, and the line where there is one, if it cannot be read, is no table, or has no claims.
    """
    place = make_printable(path)
    try:
        return from_text(read_text(path, KIND_OF_FILE, MOST_BYTES), place)
    except csv.Error as error:
        raise ParamcountError(f"is not valid CSV: {error}", where=place) from None


def from_bytes(data: bytes, place: str) -> Tables:
    """The tables of claims in what standard input held."""
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
        raise ParamcountError(f"contains the control character {quote(bad[0])}", where=f"{place}, line {number}", expected=KIND_OF_FILE)
    lines = text.split("\n")
    grids = list(markdown(lines, place)) if is_markdown(lines) else [separated(lines, place)]
    return sorted_out([grid for grid in grids if grid], place)


def from_rows(rows: Iterable[Mapping[Any, Any]]) -> Tables:
    """The table of claims that mappings of columns to values are."""
    found: list[Mapping[Any, Any]] = []
    columns: dict[str, None] = {}
    for row in rows:
        if not isinstance(row, Mapping):
            raise ParamcountError(f"the row is of type {type(row).__name__}", where=f"row {len(found) + 1}", expected="mappings of columns to values")
        found.append(row)
        columns |= dict.fromkeys(map(str, row))
        bounded(len(columns), len(found) * len(columns), "rows")
    texts = [{str(name): as_text(value) for name, value in row.items()} for row in found]
    return sorted_out([[(0, list(columns)), *((i, [row.get(name, "") for name in columns]) for i, row in enumerate(texts, 1))]], "rows")


def as_text(value: object) -> str:
    """A value as a table would print it; what is missing as nothing."""
    if value is None or value != value:  # NaN is not itself
        return ""
    if isinstance(value, float) and value.is_integer():  # a column of ints in which one is missing
        value = int(value)
    return make_printable(value, LONGEST)


def sorted_out(grids: Sequence[Grid], place: str) -> Tables:
    """Which tables claim something of models.

    Raises: ParamcountError where none does.
    """
    claims, skipped = [], []
    for grid in grids:
        number, texts = grid[0]
        headings, lines = arrange(grid)
        kinds = {heading.kind for heading in headings}
        where = f"{place}, line {number}" if number else place
        if "model" not in kinds:
            skipped.append(f"{where}: skipped a table without a model column: {listed(texts)}")
        elif kinds <= {"model", None}:
            skipped.append(f"{where}: skipped a table without recognised columns: {listed(texts)}")
        elif not lines:
            skipped.append(f"{where}: skipped a table without rows")
        else:
            claims.append(Table(place, with_commas(headings, lines), tuple(Line(number, tuple(cells)) for number, cells in lines)))
    if not claims:
        found = "contains no table of claims" if grids else "contains no table"
        columns = f": its columns are {listed(grids[0][0][1])}" if len(grids) == 1 else ""
        raise ParamcountError(found + columns, where=place, expected=expected())
    return Tables(tuple(claims), tuple(skipped))


def with_commas(headings: tuple[Heading, ...], lines: Grid) -> tuple[Heading, ...]:
    """The headings with what their table shows of its numbers: whether they have decimal commas."""
    measured = [i for i, heading in enumerate(headings) if heading.kind in (*COUNTS, "bytes")]
    if not has_decimal_commas(cells[i] for _, cells in lines for i in measured):
        return headings
    return tuple(heading._replace(decimal_comma=True) for heading in headings)


def listed(texts: Sequence[str]) -> str:
    named = ", ".join(make_printable(text.strip() or "–", 30) for text in texts[:MOST_SAID])
    return f"{named}, … ({len(texts):,} in total)" if len(texts) > MOST_SAID else named


def bounded(columns: int, cells: int, place: str) -> None:
    """Raises: ParamcountError where a table is too large."""
    if columns > MOST_COLUMNS:
        raise ParamcountError(f"has {columns:,} columns", where=place, expected=f"at most {MOST_COLUMNS}")
    if cells > MOST_CELLS:
        raise ParamcountError(f"has more than {MOST_CELLS:,} cells", where=place, expected=f"at most {MOST_CELLS:,}")


# ---- CSV


def separated(lines: Sequence[str], place: str) -> Grid:
    """A table whose cells are separated by commas, semicolons or tabs: by whatever gives its first line most columns that are understood."""
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if first is None:
        raise ParamcountError("is empty", where=place, expected=expected())
    separator = max(SEPARATORS, key=lambda mark: known(lines[first], mark, place))
    grid: Grid = []
    cells = 0
    reader = csv.reader((f"{line}\n" for line in lines[first:]), delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            number = first + reader.line_num
            if not any(cell.strip() for cell in row):
                continue
            if grid and len(row) > len(grid[0][1]) and not any(cell.strip() for cell in row[len(grid[0][1]) :]):
                row = row[: len(grid[0][1])]
            cells += len(row)
            bounded(len(row), cells, place)
            if grid and len(row) != len(grid[0][1]):
                raise ParamcountError(f"has {len(row):,} cells", where=f"{place}, line {number}", expected=f"{len(grid[0][1]):,}, as in the first line")
            grid.append((number, row))
    except csv.Error as error:
        raise ParamcountError(f"is not valid CSV: {error}", where=f"{place}, line {first + reader.line_num}") from None
    return grid


def known(line: str, separator: str, place: str) -> tuple[int, int]:
    """How many columns are understood if this separates them, and how many there are."""
    bounded(line.count(separator), 0, place)
    try:
        (cells,) = csv.reader([line], delimiter=separator, skipinitialspace=True)
    except (csv.Error, ValueError):
        return 0, 0
    return len([cell for cell in cells if parse_heading(cell).kind]), len(cells)


# ---- Markdown


def is_markdown(lines: Sequence[str]) -> bool:
    return any(is_rule(line) for line in lines)


def is_rule(line: str) -> bool:
    """Whether a line stands between headings and rows: | --- | :-: |"""
    cells = split_row(line)
    return "|" in line and all("-" in cell and not cell.strip(":-") for cell in cells)


def split_row(line: str) -> list[str]:
    """The cells of a line; a pipe behind a backslash belongs to its cell."""
    held = line.strip().replace("\\|", "\0")
    held = held.removeprefix("|")
    held = held.removesuffix("|")
    return [cell.replace("\0", "|").strip() for cell in held.split("|")]


def markdown(lines: Sequence[str], place: str) -> Iterator[Grid]:
    """The tables of a Markdown text, those in blocks of code left out."""
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
        bounded(len(headings), 0, place)
        if len(split_row(lines[i])) != len(headings):
            continue
        grid: Grid = [(i, headings)]
        i += 1
        while i < len(lines) and "|" in lines[i]:
            row = split_row(lines[i])
            i += 1
            if len(row) > len(headings):
                raise ParamcountError(f"has {len(row):,} cells", where=f"{place}, line {i}", expected=f"at most {len(headings):,}, as in the header")
            cells += len(headings)
            bounded(len(headings), cells, place)
            grid.append((i, [*row, *[""] * (len(headings) - len(row))]))
        yield grid
