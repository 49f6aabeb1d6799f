"""LaTeX tables with booktabs, a caption and a label."""

from __future__ import annotations

import re

from paramcount.output.tables import Table, format_cells

LONGEST_CELL = 40  # characters of running text on one line; a column of longer texts is a paragraph
MATH = {
    "×": r"\times", "≠": r"\neq", "−": "-", "→": r"\rightarrow", "√": r"\surd", "≈": r"\approx", "≤": r"\leq", "≥": r"\geq", "Σ": r"\Sigma", "ᵀ": "^{T}",
    **{digit: f"^{{{i}}}" for i, digit in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}, "²": "^{2}", "³": "^{3}", "¹": "^{1}",
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
    }
    | {
        "–": "--",
        "—": "---",
        "…": r"\ldots{}",
        "·": r"\textperiodcentered{}",
        "‹": r"\guilsinglleft{}",
        "›": r"\guilsinglright{}",
        "‖": r"\ensuremath{\Vert}",
    }
    | {c: rf"\ensuremath{{{text}}}" for c, text in MATH.items()}
)


def escape_latex(text: str) -> str:
    r"""Text escaped for LaTeX, without ligatures.

    >>> print(escape_latex("d_model × 2 & --layer"))
    d\_model \ensuremath{\times} 2 \& -{}-layer
    """
    plain = text.replace("--", "-\0-").replace("``", "`\0`").replace("''", "'\0'")
    return plain.translate(TEX).replace("\0", "{}")


def render_latex(table: Table) -> str:
    """The table as a LaTeX float: caption, rows between booktabs rules, and notes in small print."""
    columns, cells = format_cells(table)
    runs_on = bool(cells) and max(len(row[-1]) for row in cells) > LONGEST_CELL
    widths = ["r" if column.right else "l" for column in columns]
    if runs_on:
        widths[-1] = r"p{0.45\linewidth}"
    caption = table.caption or " ".join(" ".join(table.above).split()) or "Counted by paramcount"
    head = (
        [rf"{' & '.join(escape_latex(column.label) for column in columns)} \\", r"\midrule"] if table.headings else []
    )
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(caption)}}}",
        rf"\label{{tab:{make_label(caption)}}}",
        rf"\begin{{tabular}}{{{''.join(widths)}}}",
        r"\toprule",
        *map(protect_row, head),
        *(protect_row(rf"{' & '.join(map(escape_latex, row))} \\") for row in cells),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par\smallskip {{\footnotesize {escape_latex(line)}}}" for line in table.below),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def protect_row(row: str) -> str:
    r"""A row, protected if it begins with [ or *, which the preceding `\\` or rule would read as its argument."""
    return f"{{}}{row}" if row.lstrip().startswith(("[", "*")) else row


def make_label(caption: str) -> str:
    """The label of a table: the first words of its caption, up to the first number.

    >>> make_label("Llama 3.1 8B 8,030,261,248 parameters"), make_label("通义千问")
    ('llama-3.1-8b', 'parameters')
    """
    begin = re.split(r"\s\d[\d,]{3,}|[:;→(=]", caption)[0]
    return re.sub(r"[^a-z0-9.]+", "-", begin.casefold())[:60].strip("-.") or "parameters"
