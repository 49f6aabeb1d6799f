"""A verification as tables: for people the components and what does not fit; for CSV every line of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from paramcount.checkpoints.findings import Line
from paramcount.checkpoints.verify import Verification
from paramcount.errors import format_shape, make_printable
from paramcount.output.numbers import format_bytes
from paramcount.output.tables import Column, Table

MOST_LINES = 20
MOST_MODELS = 6


def table(found: Verification, others: Sequence[str] = (), format: str = "json") -> Table:
    """A row per component: expected, found, difference; below it every tensor that is not simply there. `others`: models that the
    checkpoint holds instead. Data for JSON, which may be as long as the header, is made for no other format."""
    counts = {name: (n, found.found[name]) for name, n in found.expected.items() if n or found.found[name]}
    if strange := sum(line.values or 0 for line in found.lines if line.finding.kind in ("unexpected", "differs")):
        counts["unexpected"] = (0, strange)
    counts["total"] = (sum(n for n, _ in counts.values()), sum(n for _, n in counts.values()))
    rows = [[name, expected, held, held - expected] for name, (expected, held) in counts.items()]
    columns = [Column("component", "component", right=False), Column("expected", "expected"), Column("found", "found by name" if found.only_names else "found")]
    columns.append(Column("difference", "difference", show=signed, style=lambda text: "" if text == "0" else "red"))
    below = [*nothing(found), *lines(found), *held_instead(others), *notes(found)]
    data = found.to_dict() | {"zoo": list(others)} if format == "json" else {}
    return Table(columns, rows, data, above=[headline(found)], below=below, bold=("total",))


def nothing(found: Verification) -> list[str]:
    return [] if any(found.found.values()) else [f"contains no tensor of {found.name}"]


def held_instead(models: Sequence[str]) -> list[str]:
    if not models:
        return []
    more = len(models) - MOST_MODELS
    return [f"contains the tensors of {', '.join(models[:MOST_MODELS])}{f' and {more} others' if more > 0 else ''}"]


def rows(found: Verification) -> Table:
    """Everything as rows of one table: components, then folded tensors."""
    names = ("finding", "what", "pattern", "tensors", "declared", "held", "expected", "found", "note")
    components = [["component", name, None, None, None, None, n, found.found[name], None] for name, n in found.expected.items()]
    tensors = [
        [
            *(line.finding.kind, line.finding.what, line.pattern, line.tensors),
            *(shape(line.finding.declared_shape), shape(line.finding.file_shape)),
            *(None, line.values, line.finding.note),
        ]
        for line in found.lines
    ]
    faults = [["fault", fault, *[None] * (len(names) - 2)] for fault in found.faults]
    return Table([Column(name, name) for name in names], [*components, *tensors, *faults], {})


def headline(found: Verification) -> str:
    files = f"{found.files:,} files, " if found.files > 1 else ""
    return f"{found.name} in {make_printable(found.path)}: {files}{found.tensors:,} tensors   {found.summary}"


def lines(found: Verification, most: int = MOST_LINES, where: str = "--json") -> list[str]:
    """What speaks against the file, a line each. `where` all of it is said."""
    against = [line for line in found.lines if not line.finding.ok]
    n = len(found.faults) + len(against)
    shown = n if n <= most + 1 else most
    told_all = [*found.faults[:shown], *map(describe, against[: max(0, shown - len(found.faults))])]
    return told_all if shown == n else [*told_all, f"… and {n - shown:,} more; {where} lists them all"]


def describe(line: Line) -> str:
    """A line of tensors as people read it."""
    said, times, pattern = line.finding, f"{line.tensors:,} × " if line.tensors > 1 else "", make_printable(line.pattern)
    what = said.what.replace("_", " ")
    match said.kind:
        case "wrong shape":
            return f"wrong shape: {pattern} {times}{shape(said.file_shape)}, expected {shape(said.declared_shape)} ({what})"
        case "missing":
            return f"missing: {pattern} {times}{shape(said.declared_shape)} ({what})"
    return f"{said.kind}: {pattern} {times}{shape(said.file_shape)} ({what}){f': {make_printable(said.note)}' if said.note else ''}"


def notes(found: Verification) -> list[str]:
    """What stands beside the parameters, the size, and what was not checked."""
    found_lines = []
    if found.beside:
        found_lines.append(beside(found.beside))
    noted = [line for line in found.lines if line.finding.ok and line.finding.note][:MOST_LINES]
    found_lines += [f"{make_printable(line.pattern)}: {line.finding.what} {make_printable(line.finding.note)}" for line in noted]
    if not found.shapes_checked:
        found_lines.append("shapes not checked: an index has names only" if found.only_names else "shapes not checked for tensors in missing files")
    return [*found_lines, *summarize_checkpoint(found), *found.notes]


def summarize_checkpoint(found: Verification) -> list[str]:
    """How the values are stored, and the size predicted and found."""
    told = []
    totals, size = found.totals, found.size
    if found.scheme and totals.values is not None and totals.elements is not None:
        told.append(f"{found.scheme}: {totals.values:,} values in {totals.elements:,} stored elements")
    if size.found is not None:
        text = f"{size.found:,} bytes ({format_bytes(size.found)})"
        if size.predicted is not None:
            same = size.predicted == size.found
            text = f"size: {text}, as predicted" if same else f"size: {text}, predicted {size.predicted:,}"
        told.append(" · ".join((text, *bits(totals.bits))))
    return told


def beside(values: Mapping[str, int | None]) -> str:
    """What stands beside the parameters, by what it is."""
    return f"not included in the total: {' · '.join(what if n is None else f'{what} {n:,}' for what, n in values.items())}"


def bits(each: Fraction | None) -> list[str]:
    """Bits of a value in two decimals at most; nothing where they are not known.

    >>> bits(Fraction(9, 2)), bits(None)
    (['4.5 bits per value'], [])
    """
    if each is None:
        return []
    hundredths = round(each * 100)
    return [f"{hundredths // 100}.{hundredths % 100:02}".rstrip("0").rstrip(".") + " bits per value"]


def shape(sizes: tuple[int, ...] | None) -> str:
    """A shape as people write it.

    >>> shape((1024, 768)), shape(None)
    ('[1024, 768]', '')
    """
    return "" if sizes is None else format_shape(sizes)


def signed(n: int) -> str:
    return f"{n:+,}".replace("-", "−") if n else "0"
