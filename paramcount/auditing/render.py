"""Renders an audit: findings per model as text, a verdict per cell in documents, a row per claim in CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from paramcount.auditing.audit import Audit, AuditRow, Cell
from paramcount.auditing.consistency import Doubt
from paramcount.auditing.verdicts import VERDICTS, count_verdict, count_verdicts
from paramcount.errors import count_noun, join_words, make_printable
from paramcount.output.numbers import describe_verdict
from paramcount.output.tables import Column, Table

LONGEST = 4000
COLOURS = {"right": "green", "matches when rounded": "green", "wrong": "red", "not checkable": "yellow"}


def build_table(audit: Audit, format: str) -> Table:
    """The table of an audit for an output format."""
    builders = {"table": build_text_table, "csv": build_csv_table}
    table = builders.get(format, build_document_table)(audit)
    return table._replace(data=audit.to_dict() if format == "json" else None, below=summarize_audit(audit))


def summarize_audit(audit: Audit) -> list[str]:
    rows, cells = audit.summary["rows"], audit.summary["cells"]
    n_claims = sum(cells[verdict] for verdict in VERDICTS)
    lines = [
        f"{count_noun(sum(rows.values()), 'row')}: {format_verdicts(rows)}",
        f"{count_noun(n_claims, 'claim')}: {format_verdicts(cells)}",
    ]
    if audit.left_out:
        lines.append(f"unrecognised columns: {', '.join(make_printable(text, 60) for text in audit.left_out)}")
    return [*lines, *audit.skipped]


def format_verdicts(counts: Mapping[str, int]) -> str:
    return ", ".join(count_verdict(counts[verdict], verdict) for verdict in VERDICTS if counts[verdict]) or "none"


def format_text(value: object) -> str:
    return make_printable(value, LONGEST)


def build_text_table(audit: Audit) -> Table:
    """The table for a terminal: a row per model with verdict and findings."""
    columns = [
        Column("model", "model", right=False, show=lambda name: make_printable(name, 40)),
        Column("verdict", "verdict", right=False, style=lambda verdict: COLOURS.get(verdict, "")),
        Column("findings", "findings", right=False, show=format_text),
    ]
    rows = [[row.model or "–", describe_verdict(row.verdict), "; ".join(list_findings(row))] for row in audit.rows]
    return Table(columns, rows, None, wraps=True)


def list_findings(row: AuditRow) -> list[str]:
    """The findings in a row: wrong claims, claims that cannot be checked, the number of right claims, and doubts."""
    claims = [cell for cell in row.cells if not cell.empty]
    lines = [row.note] if row.note else []
    lines += [
        f"{cell.label} {cell.plain} (correct: {cell.true_text}){format_note(cell.note)}"
        for cell in claims
        if cell.verdict == "wrong"
    ]
    unchecked = [cell for cell in claims if cell.verdict == "not checkable" and cell.note != row.note]
    for note, cells in group_by_note(unchecked).items():
        lines.append(note if len(cells) == len(claims) else f"{name_cells(cells)} not checkable: {note}")
    counts = count_verdicts(cell.verdict for cell in claims)
    lines.append(
        ", ".join(count_verdict(counts[verdict], verdict) for verdict in ("right", "rounded") if counts[verdict])
    )
    is_confirmed = row.id is not None and row.verdict != "wrong"
    lines += [describe_doubt(doubt) for doubt in row.doubts if not (is_confirmed and doubt.grade == "unusual")]
    return [line for line in lines if line]


def group_by_note(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """{note: cells with this note}"""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.note, []).append(cell)
    return groups


def name_cells(cells: Sequence[Cell]) -> str:
    if len(cells) == 1:
        return f"{cells[0].label} {cells[0].plain}"
    return join_words((cell.label for cell in cells), "and")


def describe_doubt(doubt: Doubt) -> str:
    return f"{doubt.grade}: {doubt.text}"


def build_document_table(audit: Audit) -> Table:
    labels = tuple(dict.fromkeys(label for row in audit.rows for label in group_by_column(row)))
    columns = [
        Column("model", "model", right=False, show=format_text),
        *(Column(label, label, right=False, show=format_text) for label in labels),
    ]
    columns += [Column("verdict", "verdict", right=False), Column("notes", "notes", right=False, show=format_text)]
    rows = []
    for row in audit.rows:
        claims = group_by_column(row)
        cells = ["; ".join(claims.get(label, ())) for label in labels]
        notes = "; ".join([*list_notes(row), *map(describe_doubt, row.doubts)])
        rows.append([row.model or "–", *cells, describe_verdict(row.verdict), notes])
    return Table(columns, rows, None)


def group_by_column(row: AuditRow) -> dict[str, list[str]]:
    """{column: claims with verdicts}. A claim in the cell of another column is moved to its own column."""
    columns: dict[str, list[str]] = {}
    for cell in row.cells:
        claims = columns.setdefault(cell.label, [])
        if not cell.empty:
            claims.append(f"{cell.plain} {cell.verdict_text}")
    return columns


def list_notes(row: AuditRow) -> list[str]:
    """The note on the name of a model, and the notes on its cells without repetition."""
    claims = [cell for cell in row.cells if not cell.empty]
    notes = group_by_note(cell for cell in claims if cell.note not in ("", row.note) and cell.verdict != "rounded")
    lines = [row.note] if row.note else []
    for note, cells in notes.items():
        labels = join_words((cell.label for cell in cells), "and")
        lines.append(note if len(cells) == len(claims) else f"{labels}{format_note(note)}")
    return lines


def format_note(note: str) -> str:
    """A note as a suffix: " = total − …", ": note" or ""."""
    return f" {note}" if note.startswith("=") else f": {note}" if note else ""


def build_csv_table(audit: Audit) -> Table:
    """The table for CSV: a row per claim and, with the column `consistency`, a row per doubt."""
    names = ("source", "line", "model", "id", "row_verdict", "column", "heading", "claim", "verdict", "true", "note")
    rows: list[Sequence[object]] = []
    for row in audit.rows:
        facts = [row.source, row.line, row.model, row.id, row.verdict]
        rows += [
            [*facts, cell.column, cell.heading, cell.claim, cell.verdict, cell.true, cell.note] for cell in row.cells
        ]
        rows += [[*facts, "consistency", None, None, doubt.grade, None, doubt.text] for doubt in row.doubts]
    return Table([Column(name, name, right=False) for name in names], rows, None)
