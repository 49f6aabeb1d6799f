"""Tables in Markdown and HTML, and the tabulate call that all markup shares.

Text for a terminal does not use tabulate, which can neither wrap a sum between its terms nor continue columns in a
second panel, needs another dependency to align wide characters, and would slow `paramcount gpt2-small` from 153 to
167 ms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from tabulate import TableFormat, tabulate

from paramcount.output.tables import Column, Table, format_cells, punctuate

CSS = (
    "table { border-collapse: collapse } "
    "th, td { padding: .15em .6em; text-align: left; font-variant-numeric: tabular-nums } "
    "tr { border-bottom: thin solid }"
)


def tabulate_cells(
    labels: Sequence[str], cells: list[list[str]], style: str | TableFormat, align: Sequence[str] = ()
) -> str:
    """The cells as a table in one of tabulate's formats. `align`: left or right per column; if empty, no padding."""
    return tabulate(
        cells,
        labels,
        tablefmt=style,
        colalign=align if cells and align else None,
        stralign="left" if align else None,
        disable_numparse=True,
    )


def _list_alignments(columns: Sequence[Column]) -> list[str]:
    return ["right" if column.right else "left" for column in columns]


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\|`*_\[\]])", r"\\\1", escape(text, quote=False))


def render_markdown(table: Table) -> str:
    """The table in Markdown, between the lines above and below it."""
    columns, cells = format_cells(table)
    body = tabulate_cells(
        [_escape_markdown(column.label) for column in columns],
        [[_escape_markdown(cell) for cell in row] for row in cells],
        "pipe",
        _list_alignments(columns),
    )
    lines = [*map(_escape_markdown, map(punctuate, table.above)), "", body]
    for line in table.below:
        lines += ["", _escape_markdown(line)]
    return "\n".join(lines).strip("\n") + "\n"


def render_html(table: Table) -> str:
    title = escape(table.above[0].partition("   ")[0] if table.above else "paramcount")
    head = f'<!doctype html>\n<meta charset="utf-8">\n<title>{title}</title>\n<style>{CSS}</style>\n'
    return head + render_html_fragment(table)


def render_html_fragment(table: Table) -> str:
    """The table and the lines above and below it as an HTML fragment, for notebooks."""
    columns, cells = format_cells(table)
    body = tabulate_cells([column.label for column in columns], cells, "html", _list_alignments(columns))
    above = [f"<p>{escape(punctuate(line))}</p>" for line in table.above]
    below = [f"<p>{escape(line)}</p>" for line in table.below]
    return "\n".join([*above, body, *below]) + "\n"
