"""Tables in all formats: text, Markdown, LaTeX and HTML with grouped digits; CSV and JSON with exact integers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from paramcount.errors import make_printable

FORMATS = ("table", "markdown", "csv", "json", "latex", "html")
FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # in a spreadsheet; make_printable escapes tabs
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def format_value(value: Any) -> str:
    """A value as text: digits in groups of three, yes or no, and a dash for None."""
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
    only: str = ""  # "csv", or "text" for all formats but CSV; both by default
    style: str | Callable[[str], str] = ""  # one of terminal.STYLES, or a function of a cell's text
    shortens: bool = False  # whether its names may be shortened in the middle on a terminal; of one column at most
    optional: int = 0  # a terminal without space leaves out the columns with the highest numbers first


class Table(NamedTuple):
    """Columns and rows of plain values, lines of text above and below, and `data` for JSON."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    data: Any
    above: Sequence[str] = ()
    below: Sequence[str] = ()
    headings: bool = True
    wraps: bool = False  # whether the last column may wrap to several lines
    keys: Sequence[str] = ()  # the columns that tell the rows apart, repeated in each panel; by default the first one
    narrowest: int = 14  # columns; a last column with less space continues below its row
    drops: bool = False  # whether a narrow terminal shows fewer columns, with a note below
    first: int = 1  # the number of columns, from the first one, that a narrow terminal shows nevertheless
    texts: Mapping[
        str, Callable[[int, bool, bool], str]
    ] = {}  # {format: render(width, colour, shortens)}, instead of rows
    bold: Collection[Any] = ()  # the first cells of rows that are bold on a terminal
    caption: str = ""  # of a LaTeX table; by default the lines above
    label: str = ""  # of a LaTeX table; by default made from the caption


def punctuate(line: str) -> str:
    """A line above a table, whose parts three spaces separate in a terminal, with punctuation.

    >>> punctuate("GPT-2 small   124,439,808 parameters   matches reference implementation")
    'GPT-2 small: 124,439,808 parameters, matches reference implementation'
    """
    first, *parts = line.split("   ")
    return f"{first}: {', '.join(parts)}" if parts else first


def number_sources(sources: Iterable[str]) -> dict[str, str]:
    """{source: its number in brackets}, for a column that refers to the lines below a table.

    >>> number_sources(["arXiv:1", "arXiv:2", "arXiv:1"])
    {'arXiv:1': '[1]', 'arXiv:2': '[2]'}
    """
    return {source: f"[{i}]" for i, source in enumerate(dict.fromkeys(sources), 1)}


def render(table: Table, format: str, width: int, *, colour: bool = False, shortens: bool = False) -> str:
    """The table in one of FORMATS. `width` (terminal columns), `colour` and `shortens` (whether long names are
    shortened and optional columns left out) only apply to the format `table`."""
    if format in table.texts:
        return table.texts[format](width, colour, shortens)
    match format:
        case "json":
            return _render_json(table)
        case "csv":
            return _render_csv(table)
        case "table":
            from paramcount.output.text_tables import render_text

            return render_text(table, width, colour=colour, shortens=shortens)
        case "latex":
            from paramcount.output.latex_tables import render_latex

            return render_latex(table)
        case "markdown":
            from paramcount.output.markup_tables import render_markdown

            return render_markdown(table)
        case _:
            from paramcount.output.markup_tables import render_html

            return render_html(table)


def _render_json(table: Table) -> str:
    """The table as JSON, with control and bidirectional characters escaped to protect terminals."""
    import json

    text = json.dumps(table.data, ensure_ascii=False, indent=2) + "\n"
    if text.replace("\n", "").isprintable():
        return text
    return re.sub(r"[^\n -~]", lambda c: c[0] if c[0].isprintable() else json.dumps(c[0])[1:-1], text)


def _render_csv(table: Table) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns, rows = _select_columns(table, "csv")
    writer.writerow(format_csv_value(column.name) for column in columns)
    writer.writerows([format_csv_value(value) for value in row] for row in rows)
    return out.getvalue()


def _select_columns(table: Table, kind: str) -> tuple[list[Column], list[list[Any]]]:
    """The columns and rows for one of "csv" and "text"."""
    indices = [i for i, column in enumerate(table.columns) if column.only in ("", kind)]
    return [table.columns[i] for i in indices], [[row[i] for i in indices] for row in table.rows]


def format_csv_value(value: Any) -> str | int:
    """A value for CSV: an exact integer, true or false, text, or an empty string for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return value
    return _neutralise_formula(make_printable(value, 2000))


def _neutralise_formula(text: str) -> str:
    """Text that a spreadsheet does not run as a formula, with a leading apostrophe if it would.

    >>> _neutralise_formula("=1+1"), _neutralise_formula("gpt2"), _neutralise_formula("-5")
    ("'=1+1", 'gpt2', '-5')
    """
    return f"'{text}" if text.startswith(FORMULA_STARTS) and not NUMBER.fullmatch(text) else text


def format_cells(table: Table) -> tuple[list[Column], list[list[str]]]:
    """The columns of all formats but CSV and JSON, and their cells as text."""
    columns, rows = _select_columns(table, "text")
    return columns, [[column.show(value) for column, value in zip(columns, row, strict=True)] for row in rows]
