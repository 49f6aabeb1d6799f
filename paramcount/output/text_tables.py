"""Tables as text for a terminal: aligned, wrapped and coloured."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from paramcount.output.tables import Column, Table, format_cells
from paramcount.output.terminal import measure_text, pad, paint, wrap

SHAPE = re.compile(r"\[[^][]*\]")  # [1024, 768]
INDENT = "    "
MISMATCH = "differs"  # the word in a line above a table from which the line is red


def render_text(table: Table, width: int, *, colour: bool = False, shortens: bool = False) -> str:
    """The table as text of at most `width` columns. A last column of prose wraps; other columns continue in panels.
    `shortens`: names are shortened and optional columns left out before there are several panels."""
    columns, cells = format_cells(table)
    if shortens and any(column.shortens for column in columns):
        columns, cells, table = shorten_columns(columns, cells, table, width)
    if table.drops:
        columns, cells, table = drop_columns(columns, cells, table, width)
    if table.headings:
        cells = [[column.label for column in columns], [], *cells]  # the empty row becomes the rule
    widths = [max((measure_text(row[i]) for row in cells if row), default=0) for i in range(len(columns))]
    available = width - sum(n + 2 for n in widths[:-1])
    is_below = table.wraps and available < min(widths[-1], table.narrowest)  # the last column continues below its row
    if table.wraps and not is_below:
        widths[-1] = min(widths[-1], available)
    lines = list(format_lines_above(table, width, colour=colour))
    keys = [i for i, column in enumerate(columns) if column.name in table.keys] or [0]
    for panel in split_panels(widths[:-1] if is_below else widths, width, keys):
        if len(panel) < len(columns) - is_below and lines:
            lines.append("")
        wraps = table.wraps and len(columns) - 1 in panel
        for row in cells:
            for texts in break_row(row or ["─" * n for n in widths], widths[-1] if wraps else None):
                padded = [pad(texts[i], widths[i], right=columns[i].right) for i in panel]
                if colour and row:
                    padded = [paint(text, get_style(table, columns[i], row, i)) for i, text in zip(panel, padded)]
                lines.append("  ".join(padded).rstrip())
            is_heading = table.headings and row is cells[0]
            if is_below and row and not is_heading:
                style = get_style(table, columns[-1], row, -1) if colour else ""
                lines += [INDENT + paint(text, style) for text in wrap_sum(row[-1], width - len(INDENT))]
    for line in table.below:
        lines += fold_line(line, width)
    return "\n".join(lines) + "\n"


def drop_columns(
    columns: list[Column], cells: list[list[str]], table: Table, width: int
) -> tuple[list[Column], list[list[str]], Table]:
    """The columns that fit the width, and the table with a note about the others. The first `table.first` columns stay,
    in several panels if they need them. The last of the others are left out first."""
    widths = [max(map(measure_text, (c.label, *(row[i] for row in cells)))) for i, c in enumerate(columns)]
    if table.wraps:
        widths[-1] = min(widths[-1], table.narrowest)
    n_panels, widest = measure_panels(widths[: table.first], width)
    shown = len(columns)
    while shown > table.first:
        panels, columns_needed = measure_panels(widths[:shown], width)
        if panels <= n_panels and columns_needed <= max(width, widest):
            break
        shown -= 1
    if shown == len(columns):
        return columns, cells, table
    missing = [column.name for column in columns[shown:]]
    note = format_missing(missing, "choose columns with --columns, or a file format such as --csv")
    table = table._replace(below=[*table.below, note], wraps=False)
    return columns[:shown], [row[:shown] for row in cells], table


def shorten_columns(
    columns: list[Column], cells: list[list[str]], table: Table, width: int
) -> tuple[list[Column], list[list[str]], Table]:
    """The columns that fit the width with shortened names, and the table with a note about the others."""
    from paramcount.output.shortening import fit_columns, shorten_names  # few tables need it

    shown, space = fit_columns(columns, cells, width)
    name = next(i for i, column in enumerate(columns) if column.shortens)
    short_names = shorten_names((row[name] for row in cells), space)
    rows = [[short_names[row[i]] if i == name else row[i] for i in shown] for row in cells]
    missing = [
        column.label or column.name
        for i, column in enumerate(columns)
        if i not in shown and any(row[i] for row in cells)
    ]
    if missing:
        table = table._replace(below=[*table.below, format_missing(missing, "use a file format such as --csv")])
    return [columns[i] for i in shown], rows, table


def format_missing(columns: Sequence[str], remedy: str) -> str:
    return f"note: not enough space for {', '.join(columns)}; {remedy}"


def get_style(table: Table, column: Column, row: list[str], i: int) -> str:
    """The style of a cell: bold in a row of totals, otherwise the column's."""
    if row[0] in table.bold:
        return "bold"
    return column.style(row[i]) if callable(column.style) else column.style


def format_lines_above(table: Table, width: int, *, colour: bool) -> Iterator[str]:
    """The folded lines above a table. With colour, the leading name and number are bold and mismatches are red."""
    for i, line in enumerate(table.above):
        is_mismatch = False
        for j, piece in enumerate(fold_line(line, width)):
            if not colour:
                yield piece
                continue
            before, sign, after = ("", "", piece) if is_mismatch else piece.partition(MISMATCH)
            yield (paint_title(before) if i == j == 0 else before) + paint(sign + after, "red")
            is_mismatch = is_mismatch or bool(sign)


def paint_title(line: str) -> str:
    words = line.split("   ")
    return "   ".join([*(paint(word, "bold") for word in words[:2]), *words[2:]])


def break_row(row: list[str], width: int | None) -> list[list[str]]:
    """A row as the lines that its last cell needs at a width; one line if the width is None."""
    if width is None or measure_text(row[-1]) <= width:
        return [row]
    first, *others = wrap_sum(row[-1], width)
    blanks = [""] * (len(row) - 1)
    return [[*row[:-1], first], *([*blanks, text] for text in others)]


def fold_line(line: str, width: int) -> list[str]:
    """A line folded to `width`: preferably at a gap of three spaces, otherwise between words."""
    if measure_text(line) > width and "   " in line:
        head, _, tail = line.rpartition("   ")
        return [*fold_line(head, width), *fold_line(f"  {tail.strip()}", width)]
    return wrap(line, max(width, 20), indent="  ") or [""]


def wrap_sum(text: str, width: int) -> list[str]:
    """A sum wrapped between its terms, never inside a shape."""
    joined = text.replace(" × ", "\u00a0×\u00a0").replace("\u00a0(", " (")
    joined = SHAPE.sub(lambda shape: shape[0].replace(" ", "\u00a0"), joined)
    if max(map(measure_text, joined.split(" ")), default=0) > width:
        joined = text
    return [line.replace("\u00a0", " ") for line in wrap(joined, width)]


def split_panels(widths: list[int], width: int, keys: list[int]) -> list[list[int]]:
    """Groups of columns that fit the width. Each but the first starts with the key columns before it, or with the first
    column if the keys leave no space.

    >>> split_panels([5, 5, 5, 5], 19, [0, 2]), split_panels([5, 5, 5, 5], 12, [0, 2])
    ([[0, 1, 2], [0, 2, 3]], [[0, 1], [0, 2], [0, 3]])
    """
    panels, n_repeated = [[0]], 1
    for i in range(1, len(widths)):
        panel = panels[-1]
        if measure_panel(widths, [*panel, i]) > width and len(panel) > n_repeated:
            repeated = [key for key in keys if key < i]
            panel = repeated if measure_panel(widths, [*repeated, i]) <= width else [0]
            n_repeated = len(panel)
            panels.append(panel)
        panel.append(i)
    return panels


def measure_panels(widths: list[int], width: int) -> tuple[int, int]:
    """(the number of panels of a table, the columns of a terminal that the widest one takes)."""
    panels = split_panels(widths, width, [0])
    return len(panels), max(measure_panel(widths, panel) for panel in panels)


def measure_panel(widths: list[int], panel: list[int]) -> int:
    return sum(widths[i] + 2 for i in panel) - 2
