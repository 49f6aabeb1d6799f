"""Tables in all formats: text, Markdown, LaTeX and HTML with grouped digits; CSV and JSON with exact integers."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from paramcount.errors import ParamcountError, find_nearest, make_printable

FORMATS = ("table", "markdown", "csv", "json", "latex", "html")
STYLE = "table { border-collapse: collapse } th, td { padding: .15em .6em; text-align: left; font-variant-numeric: tabular-nums } tr { border-bottom: thin solid }"
FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "＝",
    "＋",
    "－",
    "＠",
)  # beginnings of what a spreadsheet runs; tabs and line breaks are escaped
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
Chosen = TypeVar("Chosen")
ENDINGS = {
    ".txt": "table",
    ".md": "markdown",
    ".markdown": "markdown",
    ".csv": "csv",
    ".json": "json",
    ".tex": "latex",
    ".html": "html",
    ".htm": "html",
}


def format_value(value: Any) -> str:
    """A value as text: grouped digits, yes or no, and a dash for unknown."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case _:
            return make_printable(value)


class Column(NamedTuple):
    """A column: its name in CSV and JSON, its heading, and how to format its values."""

    name: str
    label: str
    right: bool = True
    show: Callable[[Any], str] = format_value
    only: str = ""  # "people": not in CSV (shares, arithmetic); "csv": not in tables for people
    style: str | Callable[[str], str] = (
        ""  # on a terminal, one of terminal.STYLES: of all cells, or of a cell by its text
    )


class Table(NamedTuple):
    """Columns and rows of plain values, lines of text above and below, and `data` for JSON."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    data: Any
    above: Sequence[str] = ()
    below: Sequence[str] = ()
    headings: bool = True
    wraps: bool = False  # whether the last column's text may run over several lines
    drops: bool = False  # whether a terminal that has no room for the last column does without it
    texts: Mapping[
        str, Callable[[int, bool], str]
    ] = {}  # {format: text for a width, in colour or not}, instead of rows
    bold: Collection[Any] = ()  # on a terminal: the rows that begin with one of these cells
    caption: str = ""  # of a LaTeX table; the lines above if empty


def render(table: Table, format: str, width: int, *, colour: bool = False) -> str:
    """The table in one of FORMATS. `width` (terminal columns) and `colour` only apply to the format `table`."""
    if format in table.texts:
        return table.texts[format](width, colour)
    if format == "table":
        from paramcount.output.text_tables import render_text

        return render_text(table, width, colour=colour)
    if format == "latex":
        from paramcount.output.latex_tables import render_latex

        return render_latex(table)
    return {"json": _render_json, "csv": _render_csv, "markdown": _render_markdown, "html": _render_html}[format](table)


def _render_json(table: Table) -> str:
    """The table as JSON, with control and bidirectional characters escaped to protect terminals."""
    import json

    text = json.dumps(table.data, ensure_ascii=False, indent=2) + "\n"
    if text.replace("\n", "").isprintable():
        return text
    return re.sub(r"[^\n -~]", lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text)


def _render_csv(table: Table) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns, rows = _select_columns(table, "people")
    writer.writerow(_csv_value(column.name) for column in columns)
    writer.writerows([_csv_value(value) for value in row] for row in rows)
    return out.getvalue()


def _select_columns(table: Table, not_for: str) -> tuple[list[Column], list[list[Any]]]:
    kept = [i for i, column in enumerate(table.columns) if column.only != not_for]
    return [table.columns[i] for i in kept], [[row[i] for i in kept] for row in table.rows]


def _csv_value(value: Any) -> Any:
    """A value for CSV."""
    return (
        ""
        if value is None
        else str(value).lower()
        if isinstance(value, bool)
        else value
        if isinstance(value, int)
        else _neutralise_formula(make_printable(value, 2000))
    )


def _neutralise_formula(text: str) -> str:
    """Text that no spreadsheet runs as a formula: prefixed with an apostrophe if necessary.

    >>> _neutralise_formula("=1+1"), _neutralise_formula("gpt2"), _neutralise_formula("-5")
    ("'=1+1", 'gpt2', '-5')
    """
    return f"'{text}" if text.startswith(FORMULA) and not NUMBER.fullmatch(text) else text


def format_cells(table: Table) -> tuple[list[Column], list[list[str]]]:
    """The visible columns, and the cells as text."""
    columns, rows = _select_columns(table, "csv")
    return columns, [[column.show(value) for column, value in zip(columns, row, strict=True)] for row in rows]


def _tabulate(columns: Sequence[Column], cells: list[list[str]], style: str) -> str:
    from tabulate import tabulate

    align = ["right" if column.right else "left" for column in columns]
    return tabulate(
        cells,
        [column.label for column in columns],
        tablefmt=style,
        colalign=align if cells else None,
        disable_numparse=True,
    )


def _render_markdown(table: Table) -> str:
    from html import escape

    def safe(text: str) -> str:
        return re.sub(r"([\\|`*_\[\]])", r"\\\1", escape(text, quote=False))

    columns, cells = format_cells(table)
    body = _tabulate(
        [Column(c.name, safe(c.label), c.right) for c in columns],
        [[safe(cell) for cell in row] for row in cells],
        "pipe",
    )
    lines = [*map(safe, table.above), "", body, *(text for line in table.below for text in ("", safe(line)))]
    return "\n".join(lines).strip("\n") + "\n"


def _render_html(table: Table) -> str:
    """The table as a minimal HTML page."""
    from html import escape

    title = escape(table.above[0].partition("   ")[0] if table.above else "paramcount")
    lines = ["<!doctype html>", '<meta charset="utf-8">', f"<title>{title}</title>", f"<style>{STYLE}</style>"]
    return "\n".join([*lines, html_fragment(table)])


def html_fragment(table: Table) -> str:
    """The table and its lines of text as an HTML fragment, for notebooks."""
    from html import escape

    lines = [f"<p>{escape(line)}</p>" for line in table.above]
    lines.append(_tabulate(*format_cells(table), "html"))
    return "\n".join([*lines, *(f"<p>{escape(line)}</p>" for line in table.below)]) + "\n"


def choose_format(format: str | None, flags: Sequence[str], output: str | None) -> str:
    """The requested format: from --format, a short option or the extension of the output file.

    Raises: ParamcountError if two are asked for, if the ending contradicts the format, or if it is unknown and no format is given.
    """
    asked = [*([format] if format else []), *flags]
    if len(set(asked)) > 1:
        raise ParamcountError(f"two formats at once: {' and '.join(asked)}", expected="one of them")
    if output in (None, "-"):
        return asked[0] if asked else "table"
    if asked:
        ending = Path(str(output)).suffix.lower()
        if ending != ".txt" and ENDINGS.get(ending, asked[0]) != asked[0]:  # plain text may hold any format
            fitting = " or ".join([*(known for known, format in ENDINGS.items() if format == asked[0]), ".txt"])
            raise ParamcountError(
                f"{make_printable(output, 60)} is not a name for {asked[0]}",
                where="-o",
                expected=f"a file that ends in {fitting}, or no format",
            )
        return asked[0]
    return choose_by_extension(str(output), ENDINGS, "format", more=", or --format")


def choose_by_extension(
    path: str, endings: Mapping[str, Chosen], what: str, *, where: str = "-o", more: str = ""
) -> Chosen:
    """The choice for a file's extension.

    >>> choose_by_extension("sizes.PNG", {".png": "png", ".svg": "svg"}, "plot")
    'png'

    Raises: ParamcountError for any other ending. `what`: of which none has it; `where`: the option; `more`: what is expected besides.
    """
    ending = Path(path).suffix.lower()
    if ending not in endings:
        found = f"no {what} has the ending {make_printable(ending or 'none', 20)!r}"
        raise ParamcountError(
            found, where=where, expected=", ".join(endings) + more, nearest=find_nearest(ending, endings)
        )
    return endings[ending]


def terminal_width() -> int:
    """Terminal width in columns; 80 without a terminal."""
    import shutil

    return shutil.get_terminal_size((80, 24)).columns


SYSTEM = ("/dev", "/proc", "/sys")  # nothing is created here; /dev/shm holds ordinary files


def is_system_path(path: Path) -> bool:
    """Whether a path is in a directory of devices or kernel files, existing or not."""
    place = Path(os.path.abspath(path))  # a link such as /dev/stdout is not followed
    return any(place.is_relative_to(root) for root in SYSTEM) and not place.is_relative_to("/dev/shm")  # noqa: S108


def open_existing(path: str, flags: int) -> int:
    """A file descriptor of an existing file, never a new one."""
    return os.open(path, flags & ~os.O_CREAT)


def is_special(path: Path) -> bool:
    """Whether a path exists and is not a regular file: a device, a pipe or a directory."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False


def write_atomically(path: str, content: str | bytes, option: str = "-o") -> None:
    """Write a file atomically; devices, pipes and open files are written directly. `option`: named in errors.

    Raises: ParamcountError if it cannot be written; an existing file is then unchanged.
    """
    import tempfile

    try:
        data = content.encode("utf-8") if isinstance(content, str) else content
    except UnicodeEncodeError as error:
        raise ParamcountError(
            f"cannot be written: {error.reason} at character {error.start:,}", where=f"{option} {make_printable(path)}"
        ) from None
    scratch = None
    try:
        target = Path(path).expanduser()
        try:
            mode = target.stat().st_mode
        except FileNotFoundError:
            mode = None
        if is_system_path(target) or (mode is not None and not stat.S_ISREG(mode)):
            with open(target, "ab", opener=open_existing) as file:
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
        if is_system_path(target) or is_special(target):  # a device may have come back meanwhile
            raise PermissionError(13, "it is not a regular file")
        os.replace(scratch, target)
        sync_directory(target.parent)
    except BrokenPipeError:
        raise
    except ValueError:  # a NUL, a lone surrogate; Python's own words differ from version to version
        raise ParamcountError(
            "cannot be written: no file can have this name", where=f"{option} {make_printable(path)}"
        ) from None
    except (OSError, RuntimeError) as error:
        raise ParamcountError(
            f"cannot be written: {getattr(error, 'strerror', None) or error}", where=f"{option} {make_printable(path)}"
        ) from None
    finally:
        if scratch:
            Path(scratch).unlink(missing_ok=True)


def sync_directory(folder: Path) -> None:
    """Flush a directory to disk, so that a rename survives a power failure, if the system supports it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
