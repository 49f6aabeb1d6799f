"""Tables as text for a terminal: aligned, wrapped and coloured."""

from __future__ import annotations

import re
from collections.abc import Iterator

from paramcount.output.tables import Column, Table, format_cells
from paramcount.output.terminal import pad, paint, text_width, wrap

SHAPE = re.compile(r"\[[^][]*\]")  # [1024, 768]
NARROWEST = 14  # what a column of running text gets at least, else its text stands below the row
INDENT = "    "


def render_text(table: Table, width: int, *, colour: bool = False) -> str:
    """The table as text of at most `width` columns: a last column of prose wraps, other columns continue in panels below."""
    columns, cells = format_cells(table)
    if table.headings:
        cells = [[column.label for column in columns], [], *cells]
    widths = [max((text_width(row[i]) for row in cells if row), default=0) for i in range(len(columns))]
    room = width - sum(n + 2 for n in widths[:-1])
    below = table.wraps and room < min(widths[-1], NARROWEST)  # the last column has no room beside the others
    if table.wraps and not below:
        widths[-1] = min(widths[-1], room)
    lines = [*lines_above(table, width, colour=colour)]
    for panel in split_panels(widths[:-1] if below else widths, width):
        if len(panel) < len(columns) - below and lines:
            lines.append("")
        for row in cells:
            last = len(columns) - 1 in panel
            for texts in break_lines(row or ["─" * n for n in widths], widths[-1] if table.wraps and last else None):
                padded = [pad(texts[i], widths[i], right=columns[i].right) for i in panel]
                if colour and row:
                    padded = [paint(text, get_style(table, columns[i], row, i)) for i, text in zip(panel, padded)]
                lines.append("  ".join(padded).rstrip())
            if below and not table.drops and row and not (table.headings and row is cells[0]):
                lines += [
                    INDENT + paint(text, get_style(table, columns[-1], row, -1) if colour else "")
                    for text in sum_lines(row[-1], width - len(INDENT))
                ]
    lines += [piece for line in table.below for piece in fold_cell(line, width)]
    return "\n".join(lines) + "\n"


def get_style(table: Table, column: Column, row: list[str], i: int) -> str:
    """The style of a cell: bold in a row of totals, otherwise the column's."""
    if row[0] in table.bold:
        return "bold"
    return column.style(row[i]) if callable(column.style) else column.style


def lines_above(table: Table, width: int, *, colour: bool) -> Iterator[str]:
    """The lines above a table. With colour, the leading name and number are bold and mismatches are red."""
    for i, line in enumerate(table.above):
        differs = False
        for j, piece in enumerate(fold_cell(line, width)):
            if not colour:
                yield piece
                continue
            before, sign, after = ("", "", piece) if differs else piece.partition("≠")
            yield (bold_title(before) if i == j == 0 else before) + paint(sign + after, "red")
            differs = differs or bool(sign)


def bold_title(line: str) -> str:
    """The first line above a table, with its name and number in bold."""
    words = line.split("   ")
    return "   ".join([*(paint(word, "bold") for word in words[:2]), *words[2:]])


def break_lines(row: list[str], room: int | None) -> list[list[str]]:
    """A row split into as many lines as its last cell needs at a width of `room`."""
    if room is None or text_width(row[-1]) <= room:
        return [row]
    first, *others = sum_lines(row[-1], room)
    return [[*row[:-1], first], *([*[""] * (len(row) - 1), text] for text in others)]


def fold_cell(line: str, width: int) -> list[str]:
    """A line folded to `width`: preferably at a gap of three spaces, otherwise between words."""
    if text_width(line) > width and "   " in line:
        head, _, tail = line.rpartition("   ")
        return [*fold_cell(head, width), *fold_cell(f"  {tail.strip()}", width)]
    return wrap(line, max(width, 20), indent="  ") or [""]


def sum_lines(text: str, room: int) -> list[str]:
    """A sum wrapped between its terms, never inside a shape."""
    held = text.replace(" × ", "\u00a0×\u00a0").replace("\u00a0(", " (")
    held = SHAPE.sub(lambda shape: shape[0].replace(" ", "\u00a0"), held)
    if max(map(text_width, held.split(" ")), default=0) > room:
        held = text
    return [line.replace("\u00a0", " ") for line in wrap(held, room)]


def split_panels(widths: list[int], width: int) -> list[list[int]]:
    """Groups of columns that fit the width, each starting with the first column."""
    panels, used = [[0]], widths[0]
    for i in range(1, len(widths)):
        if used + 2 + widths[i] > width and len(panels[-1]) > 1:
            panels.append([0])
            used = widths[0]
        panels[-1].append(i)
        used += 2 + widths[i]
    return panels
