"""A verification as a table: components and problems for text, every finding for CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from paramcount.checkpoints.classify import get_display_name
from paramcount.checkpoints.findings import Line
from paramcount.checkpoints.verify import Verification
from paramcount.errors import format_shape, make_printable
from paramcount.output.numbers import format_bytes
from paramcount.output.tables import Column, Table

MOST_LINES = 20
MOST_MODELS = 6


def build_table(found: Verification, others: Sequence[str] = (), format: str = "json") -> Table:
    """A row per component: expected, found, difference; with the problems below. `others`: models that the checkpoint contains instead.
    Data for JSON is built for that format only, because it may be as long as the header."""
    counts = {name: (n, found.found[name]) for name, n in found.expected.items() if n or found.found[name]}
    if unexpected := sum(line.values or 0 for line in found.lines if line.finding.kind in ("unexpected", "differs")):
        counts["unexpected"] = (0, unexpected)
    counts["total"] = (sum(n for n, _ in counts.values()), sum(n for _, n in counts.values()))
    differences = [[name, n, found_n, found_n - n] for name, (n, found_n) in counts.items()]
    columns = [
        Column("component", "component", right=False),
        Column("expected", "expected"),
        Column("found", "found by name" if found.only_names else "found"),
    ]
    columns.append(
        Column("difference", "difference", show=format_difference, style=lambda text: "" if text == "0" else "red")
    )
    below = [*describe_empty(found), *list_problems(found), *describe_other_models(others), *list_notes(found)]
    data = found.to_dict() | {"zoo": list(others)} if format == "json" else {}
    return Table(columns, differences, data, above=[format_headline(found)], below=below, bold=("total",))


def describe_empty(found: Verification) -> list[str]:
    return [] if any(found.found.values()) else [f"contains no tensor of {found.name}"]


def describe_other_models(models: Sequence[str]) -> list[str]:
    if not models:
        return []
    more = len(models) - MOST_MODELS
    return [f"contains the tensors of {', '.join(models[:MOST_MODELS])}{f' and {more} others' if more > 0 else ''}"]


def build_rows(found: Verification) -> Table:
    """All findings as rows of one table: components, then folded tensors, then faults."""
    names = ("finding", "what", "pattern", "tensors", "declared", "held", "expected", "found", "note")
    components = [
        ["component", name, None, None, None, None, n, found.found[name], None] for name, n in found.expected.items()
    ]
    tensors = [
        [
            *(line.finding.kind, line.finding.what, line.pattern, line.tensors),
            *(format_known_shape(line.finding.declared_shape), format_known_shape(line.finding.file_shape)),
            *(None, line.values, line.finding.note),
        ]
        for line in found.lines
    ]
    faults = [["fault", fault, *[None] * (len(names) - 2)] for fault in found.faults]
    return Table([Column(name, name) for name in names], [*components, *tensors, *faults], {})


def format_headline(found: Verification) -> str:
    files = f"{found.files:,} files, " if found.files > 1 else ""
    return f"{found.name} in {make_printable(found.path)}: {files}{found.tensors:,} tensors   {found.summary}"


def list_problems(found: Verification, most: int = MOST_LINES, where: str = "--json") -> list[str]:
    """The problems, one line each. `where`: the option or command that lists them all."""
    problems = [line for line in found.lines if not line.finding.ok]
    n = len(found.faults) + len(problems)
    shown = n if n <= most + 1 else most
    texts = [*found.faults[:shown], *map(describe_line, problems[: max(0, shown - len(found.faults))])]
    return texts if shown == n else [*texts, f"… and {n - shown:,} more; {where} lists them all"]


def describe_line(line: Line) -> str:
    """A problem as text."""
    finding, times, pattern = (
        line.finding,
        f"{line.tensors:,} × " if line.tensors > 1 else "",
        make_printable(line.pattern),
    )
    what = get_display_name(finding.what).replace("_", " ")
    match finding.kind:
        case "wrong shape":
            return f"wrong shape: {pattern} {times}{format_known_shape(finding.file_shape)}, expected {format_known_shape(finding.declared_shape)} ({what})"
        case "missing":
            return f"missing: {pattern} {times}{format_known_shape(finding.declared_shape)} ({what})"
    return f"{finding.kind}: {pattern} {times}{format_known_shape(finding.file_shape)} ({what}){f': {make_printable(finding.note)}' if finding.note else ''}"


def list_notes(found: Verification) -> list[str]:
    """Values outside the total, notes on tensors, the size, and what was not checked."""
    found_lines = []
    if found.beside:
        found_lines.append(format_not_included(found.beside))
    for line in [line for line in found.lines if line.finding.ok and line.finding.note][:MOST_LINES]:
        what = get_display_name(line.finding.what)
        found_lines.append(f"{make_printable(line.pattern)}: {what} {make_printable(line.finding.note)}")
    if not found.shapes_checked:
        found_lines.append(
            "shapes not checked: an index has names only"
            if found.only_names
            else "shapes not checked for tensors in missing files"
        )
    return [*found_lines, *describe_size(found), *found.notes]


def describe_size(found: Verification) -> list[str]:
    """How the values are stored, and the predicted and actual size."""
    texts = []
    totals, size = found.totals, found.size
    if found.scheme and totals.values is not None and totals.elements is not None:
        texts.append(f"{found.scheme}: {totals.values:,} values in {totals.elements:,} stored elements")
    if size.found is not None:
        text = f"{size.found:,} bytes ({format_bytes(size.found)})"
        if size.predicted is not None:
            predicted = "as predicted" if size.predicted == size.found else f"predicted {size.predicted:,}"
            text = f"size: {text}, {predicted}"
        texts.append(" · ".join((text, *format_bits(totals.bits))))
    return texts


def format_not_included(values: Mapping[str, int | None]) -> str:
    """Values that are not included in the total, by class."""
    names = {get_display_name(what): n for what, n in values.items()}
    return (
        f"not included in the total: {' · '.join(name if n is None else f'{name} {n:,}' for name, n in names.items())}"
    )


def format_bits(each: Fraction | None) -> list[str]:
    """Bits per value with at most two decimals; empty if unknown.

    >>> format_bits(Fraction(9, 2)), format_bits(None)
    (['4.5 bits per value'], [])
    """
    if each is None:
        return []
    hundredths = round(each * 100)
    return [f"{hundredths // 100}.{hundredths % 100:02}".rstrip("0").rstrip(".") + " bits per value"]


def format_known_shape(sizes: tuple[int, ...] | None) -> str:
    """A shape as text; empty if unknown.

    >>> format_known_shape((1024, 768)), format_known_shape(None)
    ('[1024, 768]', '')
    """
    return "" if sizes is None else format_shape(sizes)


def format_difference(n: int) -> str:
    return f"{n:+,}".replace("-", "−") if n else "0"
