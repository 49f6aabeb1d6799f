"""Tables of claims held against the zoo, and against themselves."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from paramcount import zoo
from paramcount.auditing import claim_tables
from paramcount.auditing.cells import LONGEST, NO_CLAIM, Claim, UnreadableClaim, clean_text, parse_claims
from paramcount.auditing.claim_tables import Line, Table, Tables
from paramcount.auditing.consistency import Doubt, find_doubts
from paramcount.auditing.facts import list_truths
from paramcount.auditing.headings import COUNTS, Heading
from paramcount.auditing.verdicts import Judgement, count_verdicts, describe_verdict, explain_claim, find_worst, format_true, judge
from paramcount.counting.count import SCHEMA_VERSION
from paramcount.errors import ParamcountError, find_nearest, make_printable
from paramcount.formats.files import expand_home
from paramcount.zoo.names import find_id, find_shared_entry, index_spellings, normalize_name

WORD = re.compile("[a-z]+")
MOST_EXPLAINED = 200  # names and numbers of a table that get more than a verdict
NOT_THERE = "not in the zoo"
EXPECTED = "the path of a CSV or Markdown file, a DataFrame, or rows as mappings of columns to values"


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
    def empty(self) -> bool:
        """Whether the cell claims nothing."""
        return self.note == NO_CLAIM

    @property
    def plain(self) -> str:
        """The claim without markup and footnotes."""
        return clean_text(self.claim) or self.claim

    @property
    def verdict_text(self) -> str:
        """The verdict in words, with the correct value if it is wrong."""
        detail = f"correct: {self.true_text}" if self.verdict == "wrong" else self.note if self.verdict == "rounded" else ""
        return f"{describe_verdict(self.verdict)} ({detail})" if detail else describe_verdict(self.verdict)

    @property
    def said(self) -> str:
        """An alias of `verdict_text` until 0.3."""
        return self.verdict_text

    @property
    def true_text(self) -> str:
        """The correct value as text, with its unit."""
        return "–" if self.true is None else format_true(self.column, self.true)


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

    @cached_property
    def verdict(self) -> str:
        """wrong where a cell is or where the claims contradict each other, else the least certain of what could be checked."""
        impossible = any(doubt.grade == "impossible" for doubt in self.doubts)
        return "wrong" if impossible else find_worst(cell.verdict for cell in self.cells)


@dataclass(frozen=True)
class Audit:
    """What became of tables of claims."""

    rows: tuple[Row, ...]
    left_out: tuple[str, ...]  # columns that are not understood
    skipped: tuple[str, ...]  # tables of something else, with the reason

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All claims, row by row, empty cells too."""
        return tuple(cell for row in self.rows for cell in row.cells)

    @cached_property
    def summary(self) -> dict[str, dict[str, int]]:
        """How many rows and how many claims have each verdict; cells that claim nothing stand beside."""
        claims = [cell.verdict for cell in self.cells if not cell.empty]
        return {"rows": count_verdicts(row.verdict for row in self.rows), "cells": count_verdicts(claims) | {"no claim": len(self.cells) - len(claims)}}

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
        return {
            "schema_version": SCHEMA_VERSION,
            "ok": self.ok,
            "summary": self.summary,
            "rows": rows,
            "left_out": list(self.left_out),
            "skipped": list(self.skipped),
        }


def audit_tables(found: Sequence[Tables]) -> Audit:
    """The same of the tables of several files."""
    every = [table for tables in found for table in tables.claims]
    patience = iter(range(MOST_EXPLAINED))
    rows = tuple(judge_row(table, line, patience) for table in every for line in table.lines)
    left_out = dict.fromkeys(text for table in every for text in table.left_out)
    return Audit(rows, tuple(left_out), tuple(text for tables in found for text in tables.skipped))


def read_tables(source: object) -> Tables:
    """The tables of claims in whatever `audit` takes."""
    if isinstance(source, str) and source == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise ParamcountError("standard input is empty", expected="the path of a file")
        return claim_tables.from_bytes(sys.stdin.buffer.read(claim_tables.MOST_BYTES + 1), "standard input")
    if isinstance(source, (str, Path)):
        return claim_tables.from_path(expand_home(str(source)))
    if hasattr(source, "columns") and hasattr(source, "to_dict"):
        source = source.to_dict("records")
    if isinstance(source, Iterable) and not isinstance(source, (bytes, Mapping)):
        return claim_tables.from_rows(source)
    raise ParamcountError(f"{type(source).__name__} is not a table of claims", expected=EXPECTED)


def judge_row(table: Table, line: Line, patience: Iterator[int]) -> Row:
    """The verdicts on one line of a table. `patience`: one for each name or number that is worth a longer look."""
    name = make_printable(clean_text(line.cells[table.model]), LONGEST)
    columns = [(text, heading) for text, heading in zip(line.cells, table.headings) if heading.kind not in (None, "model")]
    found = [(make_printable(text.strip(), LONGEST), heading, read_cell(text, heading)) for text, heading in columns]
    id, note, own = find_entry(name, [text for text, heading in columns if heading.kind == "total"])
    model = entry(id) if id else None
    if name and not id and next(patience, None) is not None:
        note = describe_unknown(name)
    cells: list[Cell] = []
    for text, heading, claims in found:
        if isinstance(claims, str):
            cells.append(Cell(str(heading.kind), heading.text, heading.label, text, "not checkable", None, claims))
            continue
        for claim in claims:
            verdict, true, why = judge(claim, heading, model, own) if model else Judgement("not checkable", None, note)
            if verdict == "wrong" and model and claim.kind in COUNTS and claim.amount and claim.relation == "=" and next(patience, None) is not None:
                why = why or explain_claim(claim.amount, int(true or 0), model)
            cells.append(Cell(claim.kind, heading.text, heading._replace(kind=claim.kind).label, text, verdict, true, why))
    said = [(claim, heading) for _, heading, claims in found if not isinstance(claims, str) for claim in claims]
    return Row(table.place, line.number, name, id, note, tuple(cells), find_doubts(said, has_experts(id)))


@lru_cache(maxsize=1024)
def entry(id: str) -> zoo.Model:
    """A zoo entry; a table may name it in every line."""
    return zoo.load_entry(id)


def has_experts(id: str | None) -> bool | None:
    """Whether a model of the zoo is a mixture of experts; None of what nobody knows."""
    return None if id is None or entry(id).estimate else bool(list_truths(id)["n_routed_experts"].value)


def read_cell(text: str, heading: Heading) -> tuple[Claim, ...] | str:
    """What a cell claims, or why it cannot be read."""
    try:
        return parse_claims(text, heading)
    except UnreadableClaim as reason:
        return str(reason)


def find_entry(name: str, sizes: Iterable[str]) -> tuple[str | None, str, bool]:
    """The zoo id of a model as a table names it, what is to be said of the name, and whether the entry is that release's own.

    A name that the claimed size completes to another (GPT-2 of 1.5B, Llama 2 of 70B) is taken with it.
    """
    plain = clean_text(name).strip("\"'“”‘’ ")
    if not plain:
        return None, "names no model", False
    for size in sizes:
        longer = f"{plain} {clean_text(size)}"
        if (id := match_id(longer)) and id != match_id(plain):
            return id, f"taken as {longer}", True
    alike = [plain, *(part.strip("\"'“”‘’ ") for part in plain.split(" or "))]
    found = {id: spelling for spelling in alike if (id := match_id(spelling))}
    if len(found) == 1:
        ((id, spelling),) = found.items()
        own = is_own(spelling)
        return id, "" if own else f"uses the zoo entry of {id}, which has the same sizes", own
    return None, NOT_THERE, False


@lru_cache(maxsize=4096)
def match_id(name: str) -> str | None:
    """The zoo id that a name is a spelling of."""
    return index_spellings().get(normalize_name(name[:LONGEST]))


@lru_cache(maxsize=4096)
def is_own(name: str) -> bool:
    """Whether an entry is that of the release that a name means, and not another's of the same sizes."""
    return find_shared_entry(name) is None


def describe_unknown(name: str) -> str:
    """Why a name is no model of the zoo, with the nearest that are."""
    try:
        find_id(clean_text(name))
    except ParamcountError as error:
        nearest = [id for id in error.nearest if zoo.find_path(id) and has_word_of(name, id)]
        return f"{NOT_THERE}; did you mean {' or '.join(nearest)}?" if nearest else NOT_THERE
    return NOT_THERE


def has_word_of(name: str, id: str) -> bool:
    """Whether a word of a name is nearly the first of an id, which tells the family."""
    first, *_ = WORD.findall(id)
    words = [word for word in WORD.findall(name[:LONGEST].casefold()) if len(word) > 1]
    return any(word.startswith(first) or first.startswith(word) for word in words) or bool(find_nearest(first, words))
