"""Tables of claims held against the zoo, and against themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from paramcount import zoo
from paramcount.auditing import claim_tables
from paramcount.auditing.cells import LONGEST, Claim, Unread, cleaned, read
from paramcount.auditing.claim_tables import Line, Table, Tables
from paramcount.auditing.consistency import Doubt, doubts
from paramcount.auditing.headings import Heading
from paramcount.auditing.judging import Judgement, judged, tally, worst, written
from paramcount.counting import SCHEMA_VERSION
from paramcount.errors import ParamcountError, printable, quoted
from paramcount.files import expanded
from paramcount.names import find, other_entry

ACCEPTED = "the path of a CSV or Markdown file, or rows: mappings of columns to values, a DataFrame"


@dataclass(frozen=True)
class Cell:
    """One claim. A cell that claims two things is two of these."""

    column: str  # what is claimed: total, n_layers, …
    heading: str  # of its column, as printed
    label: str  # of its column, as people read it
    claim: str  # as printed
    verdict: str  # right | rounded | wrong | not checkable
    true: int | None  # where it is known; of sizes of files in bytes, of `tied` 0 or 1
    note: str = ""  # how it fits, what it counts instead, why it cannot be checked

    @property
    def said(self) -> str:
        """The verdict as people read it."""
        return f"wrong (true: {written(self.column, self.true)})" if self.verdict == "wrong" and self.true is not None else self.verdict


@dataclass(frozen=True)
class Row:
    """The claims about one model."""

    source: str  # the file
    line: int
    model: str  # as printed
    id: str | None  # of the zoo; None where it is not there
    note: str  # where the name needs words
    cells: tuple[Cell, ...]
    doubts: tuple[Doubt, ...]  # what does not go together, whatever the model

    @property
    def verdict(self) -> str:
        """wrong where a cell is or where the claims contradict each other, else the least certain of what could be checked."""
        impossible = any(doubt.grade == "impossible" for doubt in self.doubts)
        return "wrong" if impossible else worst(cell.verdict for cell in self.cells)


@dataclass(frozen=True)
class Audit:
    """What became of tables of claims."""

    rows: tuple[Row, ...]
    left_out: tuple[str, ...]  # columns that are not understood
    skipped: tuple[str, ...]  # tables of something else, with the reason

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All claims, row by row."""
        return tuple(cell for row in self.rows for cell in row.cells)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong. What could not be checked is not wrong."""
        return all(row.verdict != "wrong" for row in self.rows)

    @property
    def unlikely(self) -> bool:
        """Whether a row is unlike every model of the zoo."""
        return any(doubt.grade == "unlikely" for row in self.rows for doubt in row.doubts)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        rows = []
        for row in self.rows:
            cells = [{name: value for name, value in vars(cell).items() if name != "label"} for cell in row.cells]
            beside = {name: getattr(row, name) for name in ("source", "line", "model", "id", "verdict", "note")}
            rows.append(beside | {"cells": cells, "consistency": [doubt._asdict() for doubt in row.doubts]})
        summary = {"rows": dict(tally(row.verdict for row in self.rows)), "cells": dict(tally(cell.verdict for cell in self.cells))}
        return {
            "schema_version": SCHEMA_VERSION,
            "ok": self.ok,
            "summary": summary,
            "rows": rows,
            "left_out": list(self.left_out),
            "skipped": list(self.skipped),
        }


def audit(source: object) -> Audit:
    """Whether a table of claims about models is right, cell by cell.

    `source`: the path of a CSV or Markdown file ("-": standard input), or rows: mappings of columns to values, a DataFrame. Columns go by
    their common names; parameters may be printed in any round figure, sizes have to be exact.

    >>> found = audit([{"model": "GPT-2 Large", "params": "774M", "layers": 36, "d_model": 1536}])
    >>> found.ok, [(cell.column, cell.verdict, cell.true) for cell in found.cells]
    (False, [('total', 'rounded', 774030080), ('n_layers', 'right', 36), ('d_model', 'wrong', 1280)])

    Raises: ParamcountError where it cannot be read or claims nothing.
    """
    return audited([tables(source)])


def audited(found: Sequence[Tables]) -> Audit:
    """The same of the tables of several files."""
    every = [table for tables in found for table in tables.claims]
    rows = tuple(row(table, line) for table in every for line in table.lines)
    left_out = dict.fromkeys(text for table in every for text in table.left_out)
    return Audit(rows, tuple(left_out), tuple(text for tables in found for text in tables.skipped))


def tables(source: object) -> Tables:
    """The tables of claims in whatever `audit` takes."""
    if isinstance(source, str) and source == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise ParamcountError("nothing is piped into standard input", accepted="the path of a file")
        return claim_tables.from_bytes(sys.stdin.buffer.read(claim_tables.MOST_BYTES + 1), "standard input")
    if isinstance(source, (str, Path)):
        return claim_tables.from_path(expanded(str(source)))
    if hasattr(source, "columns") and hasattr(source, "to_dict"):
        source = source.to_dict("records")
    if isinstance(source, Iterable) and not isinstance(source, (bytes, Mapping)):
        return claim_tables.from_rows(source)
    raise ParamcountError(f"{type(source).__name__} is no table of claims", accepted=ACCEPTED)


def row(table: Table, line: Line) -> Row:
    """The verdicts on one line of a table."""
    name = printable(line.cells[table.model].strip(), LONGEST)
    columns = [(text, heading) for text, heading in zip(line.cells, table.headings) if heading.kind not in (None, "model")]
    read_cells = [(text, heading, claims_of(text, heading)) for text, heading in columns]
    claims = [(claim, heading) for _, heading, found in read_cells if not isinstance(found, str) for claim in found]
    id, note, own = entry_of(name, [text for text, heading in columns if heading.kind == "total"])
    model = zoo.entry(id) if id else None
    cells: list[Cell] = []
    for text, heading, found in read_cells:
        printed = printable(text.strip(), LONGEST)
        if isinstance(found, str):
            cells.append(Cell(str(heading.kind), heading.text, heading.label, printed, "not checkable", None, found))
            continue
        for claim in found:
            judgement = judged(claim, heading, model, own) if model else Judgement("not checkable", None, note)
            about = heading if claim.kind == heading.kind else heading._replace(kind=claim.kind)
            cells.append(Cell(claim.kind, heading.text, about.label, printed, *judgement))
    return Row(table.place, line.number, name, id, note, tuple(cells), doubts(claims))


def claims_of(text: str, heading: Heading) -> tuple[Claim, ...] | str:
    """What a cell claims, or why it cannot be read."""
    try:
        return read(text, heading)
    except Unread as reason:
        return str(reason)


def entry_of(name: str, sizes: Iterable[str]) -> tuple[str | None, str, bool]:
    """The zoo id of a model as a table names it, what is to be said of the name, and whether the entry is that release's own.

    A name that the claimed size completes to another (GPT-2 of 1.5B, Llama 2 of 70B) is taken with it.
    """
    plain = cleaned(name).strip("\"'“”‘’ ")
    if not plain:
        return None, "no model is named", False
    for size in sizes:
        longer = f"{plain} {cleaned(size)}"
        if (id := known(longer)) and id != known(plain):
            return id, f"read as {longer}", other_entry(longer) is None
    spellings = [plain, *(part.strip("\"'“”‘’ ") for part in plain.split(" or "))]
    ids = {id for spelling in spellings if (id := known(spelling))}
    if len(ids) == 1:
        (id,) = ids
        other = next((other for spelling in spellings if known(spelling) and (other := other_entry(spelling))), None)
        return id, f"the sizes of {id}, whose entry this is" if other else "", other is None
    return None, unknown(plain), False


def known(name: str) -> str | None:
    try:
        return find(name)
    except ParamcountError:
        return None


def unknown(name: str) -> str:
    """Why a name is no model of the zoo, with the nearest that are."""
    try:
        find(name)
    except ParamcountError as error:
        nearest = [id for id in error.nearest if zoo.path_of(id)]
        if not nearest:
            return "not in the zoo" if error.nearest or "family" not in error.found else "names a whole family"
        return f"not in the zoo; did you mean {' or '.join(nearest)}?"
    return f"{quoted(name)} names several models"
