"""Compares tables of claims with the zoo and checks them for contradictions."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import paramcount.zoo as zoo
from paramcount.auditing import claim_tables
from paramcount.auditing.cells import LONGEST, NO_CLAIM, CellClaim, UnreadableClaim, clean_text, parse_claims
from paramcount.auditing.claim_tables import ClaimLine, ClaimTable, ClaimTables
from paramcount.auditing.consistency import Doubt, find_doubts
from paramcount.auditing.facts import list_truths
from paramcount.auditing.headings import COUNTS, Heading
from paramcount.auditing.verdicts import Judgement, count_verdicts, explain_claim, find_worst, format_true, judge
from paramcount.counting.results import SCHEMA_VERSION, JsonResult, alias, describe_result
from paramcount.errors import ParamcountError, find_nearest, join_words, make_printable
from paramcount.formats.files import expand_home, read_text
from paramcount.output.numbers import describe_verdict
from paramcount.zoo.names import find_id, find_shared_entry, index_spellings, normalize_name

WORD = re.compile("[a-z]+")
MOST_EXPLAINED = 200  # names and numbers per call for which an explanation is searched
NOT_IN_ZOO = "not in the zoo"
EXPECTED = "the path of a CSV or Markdown file, a DataFrame, or rows as mappings of columns to values"


@dataclass(frozen=True)
class Cell:
    """One claim. A table cell with two claims becomes two cells."""

    column: str  # the claimed quantity: total, n_layers, …
    heading: str  # heading of the column, as written in the table
    label: str  # display name of the column
    claim: str  # as written in the table
    verdict: str  # right | rounded | wrong | not checkable
    true: int | None  # None if unknown; file sizes in bytes, `tied` as 0 or 1
    note: str = ""  # how it matches, what it counts instead, or why it cannot be checked

    def __repr__(self) -> str:
        return describe_result(self, "column", "claim", "verdict", "true")

    @property
    def empty(self) -> bool:
        """Whether the cell contains no claim."""
        return self.note == NO_CLAIM

    @property
    def plain(self) -> str:
        """The claim without markup and footnotes."""
        return clean_text(self.claim) or self.claim

    @property
    def verdict_text(self) -> str:
        """The verdict in words, with the correct value if it is wrong."""
        details = {"wrong": f"correct: {self.true_text}", "rounded": self.note}
        detail = details.get(self.verdict)
        return f"{describe_verdict(self.verdict)} ({detail})" if detail else describe_verdict(self.verdict)

    said = alias("verdict_text")

    @property
    def true_text(self) -> str:
        """The correct value as text, with its unit."""
        return "–" if self.true is None else format_true(self.column, self.true)


@dataclass(frozen=True)
class AuditRow:
    """The claims about one model."""

    source: str  # the file
    line: int
    model: str  # as written in the table
    id: str | None  # zoo id; None if not in the zoo
    note: str  # about the name, if needed
    cells: tuple[Cell, ...]
    doubts: tuple[Doubt, ...]  # contradictions between the claims

    def __repr__(self) -> str:
        return describe_result(self, "model", "id", "verdict")

    @cached_property
    def verdict(self) -> str:
        """wrong if a cell is wrong or claims contradict each other, otherwise the worst verdict on a checkable cell."""
        is_impossible = any(doubt.grade == "impossible" for doubt in self.doubts)
        return "wrong" if is_impossible else find_worst(cell.verdict for cell in self.cells)


@dataclass(frozen=True, repr=False)
class Audit(JsonResult):
    """The result of an audit."""

    shown = ("ok", "summary")
    html_table = "paramcount.auditing.render:build_text_table"

    rows: tuple[AuditRow, ...]
    left_out: tuple[str, ...]  # unrecognised columns
    skipped: tuple[str, ...]  # tables without claims, each with the reason

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All claims row by row, including empty cells."""
        return tuple(cell for row in self.rows for cell in row.cells)

    @cached_property
    def summary(self) -> dict[str, dict[str, int]]:
        """{rows or cells: {verdict: number}}; cells without a claim are counted as `no claim`."""
        claims = [cell.verdict for cell in self.cells if not cell.empty]
        return {
            "rows": count_verdicts(row.verdict for row in self.rows),
            "cells": count_verdicts(claims) | {"no claim": len(self.cells) - len(claims)},
        }

    @property
    def ok(self) -> bool:
        """Whether no row is wrong. Claims that cannot be checked are not wrong."""
        return all(row.verdict != "wrong" for row in self.rows)

    @property
    def unlikely(self) -> bool:
        """Whether a row has claims that are unlike every zoo model."""
        return any(doubt.grade == "unlikely" for row in self.rows for doubt in row.doubts)

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain data for JSON."""
        rows = []
        for row in self.rows:
            cells = [{name: value for name, value in vars(cell).items() if name != "label"} for cell in row.cells]
            facts = {name: getattr(row, name) for name in ("source", "line", "model", "id", "verdict", "note")}
            rows.append(facts | {"cells": cells, "consistency": [doubt._asdict() for doubt in row.doubts]})
        return {
            "schema_version": SCHEMA_VERSION,
            "ok": self.ok,
            "summary": self.summary,
            "rows": rows,
            "left_out": list(self.left_out),
            "skipped": list(self.skipped),
        }


def audit_tables(files: Sequence[ClaimTables]) -> Audit:
    """The audit of the tables in several files."""
    tables = [table for file in files for table in file.claims]
    budget = iter(range(MOST_EXPLAINED))
    rows = tuple(judge_row(table, line, budget) for table in tables for line in table.lines)
    left_out = dict.fromkeys(text for table in tables for text in table.left_out)
    return Audit(rows, tuple(left_out), tuple(text for file in files for text in file.skipped))


def read_tables(source: object) -> ClaimTables:
    """The tables in any source that `audit` accepts."""
    if isinstance(source, str) and source == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise ParamcountError("no data on standard input", expected="piped data or the path of a file")
        return claim_tables.from_bytes(sys.stdin.buffer.read(claim_tables.MOST_BYTES + 1), "standard input")
    if isinstance(source, (str, Path)):
        path = expand_home(str(source))
        text = read_text(path, claim_tables.KIND_OF_FILE, claim_tables.MOST_BYTES)
        return claim_tables.from_text(text, make_printable(path))
    if hasattr(source, "columns") and hasattr(source, "to_dict"):
        source = source.to_dict("records")
    if isinstance(source, Iterable) and not isinstance(source, (bytes, Mapping)):
        return claim_tables.from_rows(source)
    raise ParamcountError(f"{type(source).__name__} is not a table of claims", expected=EXPECTED)


def judge_row(table: ClaimTable, line: ClaimLine, budget: Iterator[int]) -> AuditRow:
    """The verdicts on one line of a table. `budget`: one item per explanation that may still be searched."""
    name = make_printable(clean_text(line.cells[table.model]), LONGEST)
    columns = [
        (text, heading) for text, heading in zip(line.cells, table.headings) if heading.kind not in (None, "model")
    ]
    totals = [text for text, heading in columns if heading.kind == "total"]
    id, note, is_own = find_entry(name, totals)
    model = load_cached_entry(id) if id else None
    if name and not id and next(budget, None) is not None:
        note = describe_unknown(name)

    cells: list[Cell] = []
    claims_of_row: list[tuple[CellClaim, Heading]] = []
    for text, heading in columns:
        claim_text = make_printable(text.strip(), LONGEST)
        try:
            claims = parse_claims(text, heading)
        except UnreadableClaim as reason:
            kind = str(heading.kind)
            cells.append(Cell(kind, heading.text, heading.label, claim_text, "not checkable", None, str(reason)))
            continue
        for claim in claims:
            claims_of_row.append((claim, heading))
            if model:
                judgement = judge_with_explanation(claim, heading, model, is_own, budget)
            else:
                judgement = Judgement("not checkable", None, note)
            label = heading._replace(kind=claim.kind).label
            cells.append(Cell(claim.kind, heading.text, label, claim_text, *judgement))
    doubts = find_doubts(claims_of_row, has_experts(id), id)
    return AuditRow(table.place, line.number, name, id, note, tuple(cells), doubts)


def judge_with_explanation(
    claim: CellClaim, heading: Heading, model: zoo.Model, is_own: bool, budget: Iterator[int]
) -> Judgement:
    """The verdict on a claim; for a wrong number of parameters, with an explanation as long as the budget lasts."""
    judgement = judge(claim, heading, model, is_own)
    if judgement.verdict != "wrong" or claim.kind not in COUNTS or not claim.amount or claim.relation != "=":
        return judgement
    if next(budget, None) is None or judgement.note:
        return judgement
    return judgement._replace(note=explain_claim(claim.amount, int(judgement.true or 0), model))


@lru_cache(maxsize=1024)
def load_cached_entry(id: str) -> zoo.Model:
    """A zoo entry, cached because every line of a table may name it."""
    return zoo.load_entry(id)


def has_experts(id: str | None) -> bool | None:
    """Whether a zoo model is a mixture of experts; None if unknown."""
    return None if id is None or load_cached_entry(id).estimate else bool(list_truths(id)["n_routed_experts"].value)


def find_entry(name: str, sizes: Iterable[str]) -> tuple[str | None, str, bool]:
    """The zoo id for a name in a table, a note on the name, and whether the zoo entry describes this very release.

    The claimed size is appended to the name if the result is another zoo name, such as "GPT-2 1.5B" or "Llama 2 70B".
    """
    plain = clean_text(name).strip("\"'“”‘’ ")
    if not plain:
        return None, "no model name", False
    for size in sizes:
        longer = f"{plain} {clean_text(size)}"
        if (id := match_id(longer)) and id != match_id(plain):
            return id, f"interpreted as {longer}", True
    spellings = [plain, *(part.strip("\"'“”‘’ ") for part in plain.split(" or "))]
    matches = {id: spelling for spelling in spellings if (id := match_id(spelling))}
    if len(matches) == 1:
        ((id, spelling),) = matches.items()
        is_own = is_own_entry(spelling)
        return id, "" if is_own else f"uses the zoo entry of {id}, which has the same sizes", is_own
    return None, NOT_IN_ZOO, False


@lru_cache(maxsize=4096)
def match_id(name: str) -> str | None:
    return index_spellings().get(normalize_name(name[:LONGEST]))


@lru_cache(maxsize=4096)
def is_own_entry(name: str) -> bool:
    """Whether the zoo entry for a name describes this release, not another release with the same sizes."""
    return find_shared_entry(name) is None


def describe_unknown(name: str) -> str:
    try:
        find_id(clean_text(name))
    except ParamcountError as error:
        nearest = [id for id in error.nearest if zoo.find_path(id) and has_word_of(name, id)]
        return f"{NOT_IN_ZOO}; did you mean {join_words(nearest)}?" if nearest else NOT_IN_ZOO
    return NOT_IN_ZOO


def has_word_of(name: str, id: str) -> bool:
    """Whether a name contains a word similar to the family, which is the first word of an id."""
    first, *_ = WORD.findall(id)
    words = [word for word in WORD.findall(name[:LONGEST].casefold()) if len(word) > 1]
    return any(word.startswith(first) or first.startswith(word) for word in words) or bool(find_nearest(first, words))
