"""LaTeX tables with booktabs, a caption and a label."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tabulate import DataRow, Line, TableFormat

from paramcount.output.markup_tables import tabulate_cells
from paramcount.output.tables import Table, format_cells, punctuate

LONGEST_CELL = 40  # characters on one line; a last column of longer text becomes a paragraph
MATH = {
    "×": r"\times", "≠": r"\neq", "−": "-", "→": r"\rightarrow", "√": r"\surd", "≈": r"\approx", "≤": r"\leq",
    "≥": r"\geq", "Σ": r"\Sigma", "‖": r"\Vert", "ᵀ": "^{T}",
    "α": r"\alpha", "β": r"\beta", "ε": r"\epsilon", "Λ": r"\Lambda",
    **{digit: f"^{{{i}}}" for i, digit in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
}  # fmt: skip
TEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "–": "--",
        "—": "---",
        "…": r"\ldots{}",
        "·": r"\textperiodcentered{}",
        "‹": r"\guilsinglleft{}",
        "›": r"\guilsinglright{}",
    }
    | {c: rf"\ensuremath{{{text}}}" for c, text in MATH.items()}
)
BOOKTABS = TableFormat(
    lineabove=Line(r"\toprule", "", "", ""),
    linebelowheader=Line(r"\midrule", "", "", ""),
    linebetweenrows=None,
    linebelow=Line(r"\bottomrule", "", "", ""),
    headerrow=DataRow("", " & ", r" \\"),
    datarow=DataRow("", " & ", r" \\"),
    padding=0,
    with_header_hide=None,
)


def escape_latex(text: str) -> str:
    r"""Text escaped for LaTeX, without ligatures.

    >>> print(escape_latex("d_model × 2 & --layer"))
    d\_model \ensuremath{\times} 2 \& -{}-layer
    """
    plain = text.replace("--", "-\0-").replace("``", "`\0`").replace("''", "'\0'")
    return plain.translate(TEX).replace("\0", "{}")


def render_latex(table: Table) -> str:
    """The table as a LaTeX float: caption, rows between booktabs rules, and the lines below in small print."""
    columns, cells = format_cells(table)
    widths = ["r" if column.right else "l" for column in columns]
    if max((len(row[-1]) for row in cells), default=0) > LONGEST_CELL:
        widths[-1] = r"p{0.45\linewidth}"
    caption = table.caption or "; ".join(punctuate(line).strip() for line in table.above) or "Counted by paramcount"
    labels = [column.label for column in columns] if table.headings else []
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(caption)}}}",
        rf"\label{{{table.label or f'tab:{make_label(caption)}'}}}",
        rf"\begin{{tabular}}{{{''.join(widths)}}}",
        tabulate_cells(escape_row(labels), [escape_row(row) for row in cells], BOOKTABS),
        r"\end{tabular}",
        *(rf"\par\smallskip {{\footnotesize {escape_latex(line)}}}" for line in table.below),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape_row(row: Sequence[str]) -> list[str]:
    r"""Cells escaped for LaTeX. A first cell that starts with [ or * is protected from the preceding `\\` or rule."""
    cells = [escape_latex(cell) for cell in row]
    if cells and cells[0].lstrip().startswith(("[", "*")):
        cells[0] = "{}" + cells[0]
    return cells


def make_label(caption: str) -> str:
    """The label of a table: the beginning of its caption, up to the first number.

    >>> make_label("Llama 3.1 8B 8,030,261,248 parameters"), make_label("通义千问")
    ('llama-3.1-8b', 'parameters')
    """
    beginning = re.split(r"\s\d[\d,]{3,}|[:;→(=]", caption)[0]
    return re.sub(r"[^a-z0-9.]+", "-", beginning.casefold())[:60].strip("-.") or "parameters"
