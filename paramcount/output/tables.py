"""Tables in every format: text for people, Markdown, LaTeX and HTML with grouped digits; CSV and JSON with exact integers."""

from __future__ import annotations

import os
import re
import stat
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from paramcount.errors import ParamcountError, near, printable

FORMATS = ("table", "markdown", "csv", "json", "latex", "html")
STYLE = (
    "table { border-collapse: collapse } th, td { padding: .15em .6em; text-align: left; font-variant-numeric: tabular-nums } tr { border-bottom: thin solid }"
)
SHAPE = re.compile(r"\[[^][]*\]")  # [1024, 768]
Chosen = TypeVar("Chosen")
NARROWEST = 8  # what a column of running text gets at least
ENDINGS = {".txt": "table", ".md": "markdown", ".markdown": "markdown", ".csv": "csv", ".json": "json", ".tex": "latex", ".html": "html", ".htm": "html"}


def grouped(value: Any) -> str:
    """A value as people read it: digits in groups, yes or no, an unknown one as a dash."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case _:
            return printable(value)


class Column(NamedTuple):
    """A column: its name in CSV and JSON, its heading for people, and how they read its values."""

    name: str
    label: str
    right: bool = True
    show: Callable[[Any], str] = grouped
    only: str = ""  # "people": not in CSV (shares, arithmetic); "csv": not in tables for people
    paint: Callable[[str], str] | None = None  # what a terminal does to a cell, which is as wide before and after


class Table(NamedTuple):
    """Rows of plain values under columns, with lines above and below for people and `data` for JSON."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    data: Any
    above: Sequence[str] = ()
    below: Sequence[str] = ()
    headings: bool = True
    wraps: bool = False  # whether the last column's text may run over several lines
    texts: Mapping[str, Callable[[int], str]] = {}  # {format: its text for a width}, where rows and columns would not do


def render(table: Table, format: str, width: int) -> str:
    """The table as text in one of FORMATS. `width`: columns of the terminal, which only `table` respects."""
    if format in table.texts:
        return table.texts[format](width)
    if format == "json":
        return _json(table)
    if format == "csv":
        return _csv(table)
    if format == "table":
        return _text(table, width)
    return {"markdown": _markdown, "latex": _latex, "html": _html}[format](table)


def _json(table: Table) -> str:
    """Names may hold what moves a terminal's cursor or turns the direction of a text: that is written by its number."""
    import json

    text = json.dumps(table.data, ensure_ascii=False, indent=2) + "\n"
    if text.replace("\n", "").isprintable():
        return text
    return re.sub(r"[^\n -~]", lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text)


def _csv(table: Table) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns, rows = _kept(table, "people")
    writer.writerow(column.name for column in columns)
    writer.writerows([_plain(value) for value in row] for row in rows)
    return out.getvalue()


def _kept(table: Table, not_for: str) -> tuple[list[Column], list[list[Any]]]:
    kept = [i for i, column in enumerate(table.columns) if column.only != not_for]
    return [table.columns[i] for i in kept], [[row[i] for i in kept] for row in table.rows]


def _plain(value: Any) -> Any:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else value if isinstance(value, int) else printable(value, 2000)


def as_read(table: Table) -> tuple[list[Column], list[list[str]]]:
    """The columns and cells that people see, each cell as they read it."""
    columns, rows = _kept(table, "csv")
    return columns, [[column.show(value) for column, value in zip(columns, row, strict=True)] for row in rows]


def _tabulate(columns: Sequence[Column], cells: list[list[str]], style: str) -> str:
    from tabulate import tabulate

    align = ["right" if column.right else "left" for column in columns]
    return tabulate(cells, [column.label for column in columns], tablefmt=style, colalign=align if cells else None, disable_numparse=True)


def _text(table: Table, width: int) -> str:
    columns, cells = as_read(table)
    if table.headings or not cells:
        cells = [[column.label for column in columns], [], *cells]
    widths = [max(len(row[i]) for row in cells if row) for i in range(len(columns))]
    if table.wraps:
        widths[-1] = max(NARROWEST, min(widths[-1], width - sum(n + 2 for n in widths[:-1])))
    lines = [piece for line in table.above for piece in _folded(line, width)]
    for panel in _panels(widths, width):
        if len(panel) < len(columns) and lines:
            lines.append("")
        for row in cells:
            for texts in _broken(row or ["─" * n for n in widths], widths[-1] if table.wraps and len(row) - 1 in panel else None):
                padded = [(columns[i].paint or str)(texts[i].rjust(widths[i]) if columns[i].right else texts[i].ljust(widths[i])) for i in panel]
                lines.append("  ".join(padded).rstrip())
    lines += [piece for line in table.below for piece in _folded(line, width)]
    return "\n".join(lines) + "\n"


def _broken(row: list[str], room: int | None) -> list[list[str]]:
    """A row over as many lines as its last text needs in `room`."""
    if room is None or len(row[-1]) <= room:
        return [row]
    first, *others = _sum_lines(row[-1], room)
    return [[*row[:-1], first], *([*[""] * (len(row) - 1), text] for text in others)]


def _folded(line: str, width: int) -> list[str]:
    """A line that is too long goes on, indented, first at a gap of three blanks, else between words."""
    if len(line) > width and "   " in line:
        head, _, tail = line.rpartition("   ")
        return [*_folded(head, width), *_folded(f"  {tail.strip()}", width)]
    return textwrap.wrap(line, max(width, 20), subsequent_indent="  ", break_on_hyphens=False) or [""]


def _sum_lines(text: str, room: int) -> list[str]:
    """A sum over several lines, broken between its terms where they are short enough, and never inside a shape."""
    held = text.replace(" × ", "\u00a0×\u00a0").replace("\u00a0(", " (")
    held = SHAPE.sub(lambda shape: shape[0].replace(" ", "\u00a0"), held)
    if max(map(len, held.split(" ")), default=0) > room:
        held = text
    return [line.replace("\u00a0", " ") for line in textwrap.wrap(held, room, break_on_hyphens=False)]


def _panels(widths: list[int], width: int) -> list[list[int]]:
    """Columns side by side as far as the width goes, the first one repeated before each further group."""
    panels, used = [[0]], widths[0]
    for i in range(1, len(widths)):
        if used + 2 + widths[i] > width and len(panels[-1]) > 1:
            panels.append([0])
            used = widths[0]
        panels[-1].append(i)
        used += 2 + widths[i]
    return panels


def _markdown(table: Table) -> str:
    from html import escape

    def safe(text: str) -> str:
        return re.sub(r"([\\|`*_\[\]])", r"\\\1", escape(text, quote=False))

    columns, cells = as_read(table)
    body = _tabulate([Column(c.name, safe(c.label), c.right) for c in columns], [[safe(cell) for cell in row] for row in cells], "pipe")
    lines = [*map(safe, table.above), "", body, *(text for line in table.below for text in ("", safe(line)))]
    return "\n".join(lines).strip("\n") + "\n"


TEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "×": r"\ensuremath{\times}", "≠": r"\ensuremath{\neq}"}
    | {"−": r"\ensuremath{-}", "–": "--", "…": r"\ldots{}", "·": r"\textperiodcentered{}", "→": r"\ensuremath{\rightarrow}"}
)


def _latex(table: Table) -> str:
    """A tabular between its lines of text. Needs the package booktabs."""
    columns, cells = as_read(table)
    escaped = [[cell.translate(TEX) for cell in row] for row in cells]
    body = _tabulate([Column(c.name, c.label.translate(TEX), c.right) for c in columns], escaped, "latex_raw")
    rules = iter((r"\toprule", r"\midrule", r"\bottomrule"))
    body = "\n".join(next(rules) if line == r"\hline" else line for line in body.splitlines())
    above, below = ([line.translate(TEX) + r"\par" for line in lines] for lines in (table.above, table.below))
    return "\n".join([r"% needs \usepackage{booktabs}", *above, body, *([r"\par"] if below else []), *below]) + "\n"


def _html(table: Table) -> str:
    """A page that says its encoding, plain enough to be pasted into another."""
    from html import escape

    title = escape(table.above[0].partition("   ")[0] if table.above else "paramcount")
    lines = ["<!doctype html>", '<meta charset="utf-8">', f"<title>{title}</title>", f"<style>{STYLE}</style>"]
    lines += [f"<p>{escape(line)}</p>" for line in table.above]
    lines.append(_tabulate(*as_read(table), "html"))
    return "\n".join([*lines, *(f"<p>{escape(line)}</p>" for line in table.below)]) + "\n"


def chosen_format(format: str | None, flags: Sequence[str], output: str | None) -> str:
    """The one format asked for: by --format, a short form, or the output file's ending.

    Raises: ParamcountError where two are asked for or the ending is unknown.
    """
    asked = [*([format] if format else []), *flags]
    if len(set(asked)) > 1:
        raise ParamcountError(f"two formats at once: {' and '.join(asked)}", accepted="one of them")
    if asked:
        return asked[0]
    if output in (None, "-"):
        return "table"
    return by_ending(str(output), ENDINGS, "format", more=", or --format")


def by_ending(path: str, endings: Mapping[str, Chosen], what: str, *, where: str = "-o", more: str = "") -> Chosen:
    """What a file's ending chooses.

    >>> by_ending("sizes.PNG", {".png": "png", ".svg": "svg"}, "plot")
    'png'

    Raises: ParamcountError for any other ending. `what`: of which none has it; `where`: the option; `more`: what is accepted besides.
    """
    ending = Path(path).suffix.lower()
    if ending not in endings:
        found = f"no {what} has the ending {printable(ending or 'none', 20)!r}"
        raise ParamcountError(found, where=where, accepted=", ".join(endings) + more, nearest=near(ending, endings))
    return endings[ending]


def terminal_width() -> int:
    """Columns of the terminal; 80 where there is none."""
    import shutil

    return shutil.get_terminal_size((80, 24)).columns


OPEN = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")  # may be a file that somebody is writing


def write_whole(path: str, content: str | bytes, option: str = "-o") -> None:
    """Write a file whole or not at all. A device, a pipe or what is open already takes it as it comes. `option` asked for it.

    Raises: ParamcountError where it cannot be written; what stood there before still does.
    """
    import tempfile

    try:
        data = content.encode("utf-8") if isinstance(content, str) else content
    except UnicodeEncodeError as error:
        raise ParamcountError(f"cannot be written: {error.reason} at character {error.start:,}", where=f"{option} {printable(path)}") from None
    scratch = None
    try:
        target = Path(path).expanduser()
        try:
            mode = target.stat().st_mode
        except FileNotFoundError:
            mode = None
        if path.startswith(OPEN) or (mode is not None and not stat.S_ISREG(mode)):
            with target.open("ab") as file:
                file.write(data)
            return
        if mode is not None and not os.access(target, os.W_OK):
            raise PermissionError(13, "is read-only")
        target = target.resolve()
        handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=".paramcount-")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(scratch).chmod(0o666 & ~mask if mode is None else mode & 0o777)
        os.replace(scratch, target)
        sync_directory(target.parent)
    except BrokenPipeError:
        raise
    except ValueError:  # a NUL, a lone surrogate; Python's own words differ from version to version
        raise ParamcountError("cannot be written: no file can have this name", where=f"{option} {printable(path)}") from None
    except (OSError, RuntimeError) as error:
        raise ParamcountError(f"cannot be written: {getattr(error, 'strerror', None) or error}", where=f"{option} {printable(path)}") from None
    finally:
        if scratch:
            Path(scratch).unlink(missing_ok=True)


def sync_directory(folder: Path) -> None:
    """Make a rename in a directory last through a power cut, on systems that can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
