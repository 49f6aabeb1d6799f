"""An audit as a table: what is wrong, for people; every cell with its verdict, for documents; a row for each claim, for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from paramcount.auditing.audit import Audit, Cell, Row
from paramcount.auditing.consistency import Doubt
from paramcount.auditing.verdicts import VERDICTS, count_verdict, count_verdicts, describe_verdict
from paramcount.errors import make_printable
from paramcount.explaining.causes import join_words
from paramcount.output.tables import Column, Table

LONGEST = 4000
COLOURS = {"right": "green", "matches when rounded": "green", "wrong": "red", "not checkable": "yellow"}


def table(audit: Audit, format: str) -> Table:
    """The table for one of the formats."""
    made = for_people(audit) if format == "table" else for_programs(audit) if format == "csv" else for_documents(audit)
    return made._replace(data=audit.to_dict() if format == "json" else None, below=below(audit))


def below(audit: Audit) -> list[str]:
    """The summary, and what was passed over."""
    rows, cells = audit.summary["rows"], audit.summary["cells"]
    lines = [f"{several(sum(rows.values()), 'row')}: {numbers(rows)}", f"{several(sum(cells[verdict] for verdict in VERDICTS), 'claim')}: {numbers(cells)}"]
    if audit.left_out:
        lines.append(f"unrecognised columns: {', '.join(make_printable(text, 60) for text in audit.left_out)}")
    return [*lines, *audit.skipped]


def several(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def numbers(counts: Mapping[str, int]) -> str:
    return ", ".join(count_verdict(counts[verdict], verdict) for verdict in VERDICTS if counts[verdict]) or "none"


def text(value: object) -> str:
    return make_printable(value, LONGEST)


def for_people(audit: Audit) -> Table:
    """A line for each model: what is wrong with it, and what could not be checked."""
    columns = [
        Column("model", "model", right=False, show=lambda name: make_printable(name, 40)),
        Column("verdict", "verdict", right=False, style=lambda verdict: COLOURS.get(verdict, "")),
        Column("findings", "findings", right=False, show=text),
    ]
    rows = [[row.model or "–", describe_verdict(row.verdict), "; ".join(findings(row))] for row in audit.rows]
    return Table(columns, rows, None, wraps=True)


def findings(row: Row) -> list[str]:
    """What a reader should know of a row: what is wrong, what cannot be checked, how much is right, what does not go together."""
    claims = [cell for cell in row.cells if not cell.empty]
    lines = [row.note] if row.note else []
    lines += [f"{cell.label} {cell.plain} (correct: {cell.true_text}){after(cell.note)}" for cell in claims if cell.verdict == "wrong"]
    open_ = [cell for cell in claims if cell.verdict == "not checkable" and cell.note != row.note]
    for note, cells in grouped(open_).items():
        lines.append(note if len(cells) == len(claims) else f"{named(cells)} not checkable: {note}")
    fine = count_verdicts(cell.verdict for cell in claims)
    lines.append(", ".join(count_verdict(fine[verdict], verdict) for verdict in ("right", "rounded") if fine[verdict]))
    fits = row.id is not None and row.verdict != "wrong"
    return [line for line in (*lines, *(remark(doubt) for doubt in row.doubts if not (fits and doubt.grade == "unusual"))) if line]


def grouped(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """{note: the cells that have it}"""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.note, []).append(cell)
    return found


def named(cells: Sequence[Cell]) -> str:
    return f"{cells[0].label} {cells[0].plain}" if len(cells) == 1 else join_words([cell.label for cell in cells])


def remark(doubt: Doubt) -> str:
    return f"{doubt.grade}: {doubt.text}"


def for_documents(audit: Audit) -> Table:
    """Every cell with its verdict, in the columns of the tables that were read."""
    labels = tuple(dict.fromkeys(label for row in audit.rows for label in by_column(row)))
    columns = [Column("model", "model", right=False, show=text), *(Column(label, label, right=False, show=text) for label in labels)]
    columns += [Column("verdict", "verdict", right=False), Column("remarks", "notes", right=False, show=text)]
    rows = []
    for row in audit.rows:
        found = by_column(row)
        remarks = "; ".join([*explained(row), *map(remark, row.doubts)])
        rows.append([row.model or "–", *("; ".join(found.get(label, ())) for label in labels), describe_verdict(row.verdict), remarks])
    return Table(columns, rows, None)


def by_column(row: Row) -> dict[str, list[str]]:
    """{column: what it claims and the verdict}. A claim that stands in another's cell is put in its own column."""
    found: dict[str, list[str]] = {}
    for cell in row.cells:
        found.setdefault(cell.label, []).extend([] if cell.empty else [f"{cell.plain} {cell.verdict_text}"])
    return found


def explained(row: Row) -> list[str]:
    """What is to be said of a row's name, and the notes of its cells, each once."""
    every = [cell for cell in row.cells if not cell.empty]
    notes = grouped(cell for cell in every if cell.note not in ("", row.note) and cell.verdict != "rounded")
    lines = [row.note] if row.note else []
    return lines + [note if len(cells) == len(every) else f"{join_words(cell.label for cell in cells)}{after(note)}" for note, cells in notes.items()]


def after(note: str) -> str:
    """A note behind what it is about."""
    return f" {note}" if note.startswith("=") else f": {note}" if note else ""


def for_programs(audit: Audit) -> Table:
    """A row for each claim, and for each thing that does not go together, whose column is `consistency`."""
    names = ("source", "line", "model", "id", "row_verdict", "column", "heading", "claim", "verdict", "true", "note")
    rows: list[Sequence[object]] = []
    for row in audit.rows:
        beside = [row.source, row.line, row.model, row.id, row.verdict]
        rows += [[*beside, cell.column, cell.heading, cell.claim, cell.verdict, cell.true, cell.note] for cell in row.cells]
        rows += [[*beside, "consistency", None, None, doubt.grade, None, doubt.text] for doubt in row.doubts]
    return Table([Column(name, name, right=False) for name in names], rows, None)
