"""A verification as a table: components and problems for text, every finding for CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from paramcount.checkpoints.classify import UNKNOWN, get_display_name, get_plural
from paramcount.checkpoints.findings import FindingLine
from paramcount.checkpoints.verify import Verification
from paramcount.errors import format_shape, make_printable
from paramcount.output.numbers import format_bytes
from paramcount.output.tables import Column, Table

MOST_LINES = 20
MOST_MODELS = 6


def build_table(verification: Verification, others: Sequence[str] = (), format: str = "json") -> Table:
    """A row per component: expected, found, difference; with the problems below.

    Args:
        others: models that the checkpoint contains instead
        format: data for JSON is built for that format only, because it may be as long as the header
    """
    found = verification.found
    counts = {name: (n, found[name]) for name, n in verification.expected.items() if n or found[name]}
    unexpected = sum(line.values or 0 for line in verification.lines if line.finding.kind in ("unexpected", "differs"))
    if unexpected:
        counts["unexpected"] = (0, unexpected)
    counts["total"] = (sum(n for n, _ in counts.values()), sum(n for _, n in counts.values()))
    rows = [[name, expected, n, n - expected] for name, (expected, n) in counts.items()]
    columns = [
        Column("component", "component", right=False),
        Column("expected", "expected"),
        Column("found", "found by name" if verification.only_names else "found"),
        Column("difference", "difference", show=format_difference, style=lambda text: "" if text == "0" else "red"),
    ]
    below = [] if any(found.values()) else [f"contains no tensor of {verification.model.name}"]
    below += list_problems(verification)
    if others:
        more = f" and {len(others) - MOST_MODELS} others" if len(others) > MOST_MODELS else ""
        below.append(f"contains the tensors of {', '.join(others[:MOST_MODELS])}{more}")
    below += list_notes(verification)
    data = verification.to_dict() | {"zoo": list(others)} if format == "json" else {}
    return Table(columns, rows, data, above=[format_headline(verification)], below=below, bold=("total",))


def build_rows(verification: Verification) -> Table:
    """All findings as rows of one table: components, then folded tensors, then faults."""
    names = ("finding", "what", "pattern", "tensors", "declared", "held", "expected", "found", "note")
    rows: list[list[object]] = []
    for name, n in verification.expected.items():
        rows.append(["component", name, None, None, None, None, n, verification.found[name], None])
    for line in verification.lines:
        finding = line.finding
        shapes = [format_known_shape(finding.declared_shape), format_known_shape(finding.file_shape)]
        rows.append([finding.kind, finding.what, line.pattern, line.tensors, *shapes, None, line.values, finding.note])
    rows += [["fault", fault, *[None] * (len(names) - 2)] for fault in verification.faults]
    return Table([Column(name, name) for name in names], rows, {})


def format_headline(verification: Verification) -> str:
    files = f"{verification.files:,} files, " if verification.files > 1 else ""
    path = make_printable(verification.checkpoint.path)
    return f"{verification.model.name} in {path}: {files}{verification.tensors:,} tensors   {verification.summary}"


def list_problems(verification: Verification, most: int = MOST_LINES, where: str = "use --json") -> list[str]:
    """The problems, one line each. `where`: what to do to list them all."""
    problems = [line for line in verification.lines if not line.finding.ok]
    n = len(verification.faults) + len(problems)
    listed = n if n <= most + 1 else most
    texts = list(verification.faults[:listed])
    texts += [describe_problem(line) for line in problems[: listed - len(texts)]]
    return texts if listed == n else [*texts, f"… and {n - listed:,} more; {where} to list all"]


def describe_problem(line: FindingLine) -> str:
    finding, pattern = line.finding, make_printable(line.pattern)
    times = f"{line.tensors:,} × " if line.tensors > 1 else ""
    what = get_display_name(finding.what)
    declared, in_file = format_known_shape(finding.declared_shape), format_known_shape(finding.file_shape)
    match finding.kind:
        case "wrong shape":
            return f"wrong shape: {pattern} {times}{in_file}, expected {declared} ({what})"
        case "missing":
            return f"missing: {pattern} {times}{declared} ({what})"
    note = f": {make_printable(finding.note)}" if finding.note else ""
    kind = f" ({what})" if finding.what != UNKNOWN else ""
    return f"{finding.kind}: {pattern} {times}{in_file}{kind}{note}"


def list_notes(verification: Verification) -> list[str]:
    """Values outside the total, notes on tensors, the size, and what was not checked."""
    notes = []
    if verification.beside:
        notes.append(format_not_included(verification.beside))
    lines = [line for line in verification.lines if line.finding.ok and line.finding.note]
    for line in lines[:MOST_LINES]:
        label = get_display_name(line.finding.what)
        notes.append(f"{make_printable(line.pattern)}: {label} {make_printable(line.finding.note)}")
    if verification.only_names:
        notes.append("shapes not checked: an index contains only names")
    elif not verification.shapes_checked:
        notes.append("shapes not checked for tensors in missing files")
    return [*notes, *describe_size(verification), *verification.notes]


def describe_size(verification: Verification) -> list[str]:
    """How the values are stored, and the predicted and actual size."""
    texts = []
    totals, size = verification.totals, verification.size
    if verification.scheme and totals.values is not None and totals.elements is not None:
        texts.append(f"{verification.scheme}: {totals.values:,} values in {totals.elements:,} stored elements")
    if size.found is not None:
        text = f"size: {size.found:,} bytes ({format_bytes(size.found)})"
        if size.predicted is not None:
            text += ", as expected" if size.predicted == size.found else f", expected {size.predicted:,}"
        texts.append(" · ".join((text, *format_bits(totals.bits))))
    return texts


def format_not_included(values: Mapping[str, int | None]) -> str:
    """Values that are not included in the total, by class."""
    terms = [get_plural(what) if n is None else f"{get_plural(what)} {n:,}" for what, n in values.items()]
    return f"not included in the total: {' · '.join(terms)}"


def format_bits(bits: Fraction | None) -> list[str]:
    """Bits per value with at most two decimals; empty if unknown.

    >>> format_bits(Fraction(9, 2)), format_bits(None)
    (['4.5 bits per value'], [])
    """
    if bits is None:
        return []
    hundredths = round(bits * 100)
    return [f"{hundredths // 100}.{hundredths % 100:02}".rstrip("0").rstrip(".") + " bits per value"]


def format_known_shape(shape: tuple[int, ...] | None) -> str:
    """A shape as text; empty if unknown.

    >>> format_known_shape((1024, 768)), format_known_shape(None)
    ('[1024, 768]', '')
    """
    return "" if shape is None else format_shape(shape)


def format_difference(n: int) -> str:
    return f"{n:+,}".replace("-", "−") if n else "0"
