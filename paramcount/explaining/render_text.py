"""Renders an explanation as text for a terminal, as Markdown and as LaTeX."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from html import escape
from itertools import zip_longest
from typing import NamedTuple

from paramcount.errors import make_printable
from paramcount.explaining.explanation import Component, ExpertGroup, Explanation, Line, Size
from paramcount.output.numbers import format_count
from paramcount.output.tables import Column, Table, render
from paramcount.output.terminal import paint
from paramcount.symbolic.factoring import escape_name, format_latex_name, format_latex_number, group_digits

LEFT = 20  # columns for the label of a formula
NARROWEST = 60
GAP = "\u00a0"  # a non-breaking space
MIXER_LABELS = {"xbc": "x, B and C", "step": "time step", "out": "output projection"}
NOT_INCLUDED = "not included in the total"


def format_title(e: Explanation) -> str:
    subject = f", {e.subject}" if e.subject else ""
    rounded = f" ({format_count(e.total)})" if e.total >= 1000 else ""
    return f"{e.name}{subject}   {e.total:,} parameters{rounded}"


def list_labels(line: Line, lines: Sequence[Line], component: str) -> list[str]:
    """The words that distinguish a line from the other lines of its component and that its formula lacks."""
    labels = []
    if line.component != component:
        labels.append(line.component)
    if len({other.part for other in lines}) > 1:
        labels.append(line.part)
    if line.detail:
        detail = line.detail.removeprefix(f"{line.component}.").rpartition("{layer}.")[2].removeprefix("model.")
        labels.append(MIXER_LABELS.get(detail, detail) if line.component == "mixer" else detail)
    if line.layers and not line.formula.startswith(line.layers):
        labels.append(line.layers)
    if line.of == "biases":
        labels.append(line.of)
    return labels


def format_experts(group: ExpertGroup, experts: int) -> str:
    """58 layers × 256 experts × 3 × 7,168 × 2,048."""
    one = group_digits(group.one) if re.search(r" [+−] ", group.numbers) else group.numbers
    layers = f"{group.layers:,} layers × " if group.layers != 1 else ""
    return f"{layers}{experts:,} expert{'s' * (experts != 1)} × {one}"


def list_expert_sums(group: ExpertGroup) -> list[tuple[str, str, int]]:
    """(label, arithmetic, value) for one expert, all experts, active experts and inactive experts."""
    return [
        ("one expert", group.numbers, group.one),
        ("all experts", format_experts(group, group.experts), group.all),
        ("active experts", format_experts(group, group.visited), group.used),
        ("inactive experts", format_experts(group, group.experts - group.visited), group.rest),
    ]


def describe_experts(group: ExpertGroup) -> str:
    """The line above these sums: "experts: 8 of 256 active per token in 58 MoE layers"."""
    kind = f"{group.kind} " if group.kind else ""
    layers = f" in {group.layers:,} {kind}layers" if group.layers != 1 else ""
    most = "up to " if group.least != group.visited else ""
    return f"{group.component}: {most}{group.visited:,} of {group.experts:,} active per token{layers}"


def format_active_sum(e: Explanation) -> str:
    return " − ".join([group_digits(e.total), *(group_digits(group.rest) for group in e.expert_groups)])


def name_not_included(e: Explanation, component: Component) -> str:
    """The name of a component outside the total, which is stated for models and layers only."""
    return component.name if e.of == "head" else f"{component.name} ({NOT_INCLUDED})"


def list_notes(e: Explanation) -> list[str]:
    sizes = ", ".join(f"{size.name} = {size.value:,}" for size in e.fixed_sizes)
    fixed = [f"fixed because the structure depends on it: {sizes}"] if sizes else []
    return [*fixed, *map(make_printable, e.notes)]


def explain_size(size: Size) -> str:
    """hidden size (n_embd)"""
    return f"{size.meaning} ({size.key})" if size.meaning and size.key else size.meaning or size.key or "derived"


# ---- on a terminal


def render_text(e: Explanation, width: int, colour: bool = False) -> str:
    """Sizes, formulas with their values, the total, the active parameters, and components outside the total."""
    layout = TextLayout(max(width, NARROWEST), colour)
    blocks = [[row for line in (format_title(e), *e.changes) for row in wrap_line(line, layout.width)]]
    if colour:
        blocks[0] = paint_title(blocks[0], len(wrap_line(format_title(e), layout.width)))
    if e.sizes:
        blocks.append(render(make_size_table(e.sizes, layout.width), "table", layout.width).splitlines())
    formulas = [row for component in e.components for row in layout.format_component(component)]
    blocks.append([*formulas, layout.paint(layout.format_value("total", "", e.total), "bold")])
    for group in e.expert_groups:
        sums = [row for label, terms, n in list_expert_sums(group) for row in layout.format_sum(f"  {label}", terms, n)]
        blocks.append([describe_experts(group), *sums])
    if e.expert_groups:
        blocks[-1] += layout.format_sum("active", format_active_sum(e), e.active, style="bold")
    for component in e.not_included:
        renamed = component._replace(name=name_not_included(e, component))
        blocks.append(layout.format_component(renamed, with_sum=True))
    blocks.append([row for line in list_notes(e) for row in wrap_line(line, layout.width)])
    return "\n\n".join("\n".join(block) for block in blocks if block).replace(GAP, " ") + "\n"


def paint_title(rows: list[str], n: int) -> list[str]:
    return [*(paint(row, "bold") for row in rows[:n]), *rows[n:]]


def wrap_line(line: str, width: int) -> list[str]:
    pieces = line.split("   ") if len(line) > width else [line]
    return [
        row for piece in pieces for row in textwrap.wrap(piece, width, subsequent_indent="  ", break_on_hyphens=False)
    ]


def make_size_table(sizes: Sequence[Size], width: int) -> Table:
    names = max(len(size.name) for size in sizes)
    values = max(len("value"), *(len(f"{size.value:,}") for size in sizes))
    room = width - names - values - 4
    meanings = [break_keys(explain_size(size), room) for size in sizes]
    columns = [
        Column("size", "size", right=False),
        Column("value", "value"),
        Column("meaning", "meaning (config.json key)", right=False),
    ]
    rows = [[size.name, size.value, meaning] for size, meaning in zip(sizes, meanings)]
    return Table(columns, rows, None, wraps=True)


def break_keys(text: str, room: int) -> str:
    """The text with a space after the section of each key that is too long for a line, so that the line breaks there.

    >>> break_keys("(text_config.num_hidden_layers)", 24)
    '(text_config. num_hidden_layers)'
    """
    return " ".join(word.replace(".", ". ") if len(word) > room else word for word in text.split(" "))


class TextLayout(NamedTuple):
    """Formats the rows of an explanation for a terminal of `width` columns."""

    width: int
    colour: bool

    def paint(self, text: str, style: str) -> str:
        return paint(text, style) if self.colour else text

    def format_component(self, component: Component, *, with_sum: bool = False) -> list[str]:
        """The rows of a component: the sum if there are several lines, then each line."""
        lines = component.lines
        first = lines[0]
        labels = list_labels(first, lines, component.name)
        if len(lines) == 1 and not with_sum and labels in ([], [first.layers]):
            return self.format_line([component.name, *labels], first)
        rows = [self.format_value(component.name, "", component.value)]
        has_biases = any(line.of == "biases" for line in lines)
        for line in lines:
            label = ", ".join(list_labels(line, lines, component.name)) or (line.of if has_biases else "")
            rows += self.format_line([label], line, indent="  ")
        return rows

    def format_line(self, labels: list[str], line: Line, indent: str = "") -> list[str]:
        """The rows of a line: labels on the left, on the right the formula and below it the numbers and the value."""
        if not line.formula:
            return [self.format_value(indent + labels[0], line.note, line.value)]
        room = LEFT - 1 - len(indent)
        words = [
            piece
            for label in labels
            for piece in textwrap.wrap(label, room, break_long_words=False, break_on_hyphens=False)
        ]
        rows = [
            *fold_formula(line.formula, self.width - LEFT),
            *self.format_arithmetic("= " + line.numbers, line.value),
        ]
        if any(len(word) > room for word in words):  # a tensor's name
            return [indent + " ".join(words), *(" " * LEFT + row for row in rows)]
        return [f"{indent + word:<{LEFT}}{row}".rstrip() for word, row in zip_longest(words, rows, fillvalue="")]

    def format_sum(self, label: str, terms: str, value: int, style: str = "") -> list[str]:
        first, *others = self.format_arithmetic(terms, value)
        return [self.paint(f"{label:<{LEFT}}", style) + first, *(" " * LEFT + row for row in others)]

    def format_value(self, label: str, note: str, value: int) -> str:
        start = f"{label:<{LEFT}}{note}" if note else label
        number = f"{value:,}"
        return start + number.rjust(max(self.width - len(start), len(number) + 2))

    def format_arithmetic(self, terms: str, value: int) -> list[str]:
        """Dim arithmetic, with the value at the right end of the last row, or of an extra row if there is no room."""
        width, number = self.width - LEFT, f"{value:,}"
        rows = fold_formula(terms, width)
        if len(rows[-1]) + 2 + len(number) > width:
            rows.append("")
        *others, last = rows
        return [*(self.paint(row, "dim") for row in others), self.paint(last, "dim") + number.rjust(width - len(last))]


def fold_formula(formula: str, width: int) -> list[str]:
    """A formula in as many rows as it needs, broken before operators, and inside brackets only if they exceed a row."""

    def join_bracket(bracket: re.Match[str]) -> str:
        return bracket[0].replace(" ", GAP) if len(bracket[0]) < width - 8 else bracket[0]

    text = re.sub(r"(?<=\d) (?=[A-Za-z])|(?<=[A-Za-z_]) (?=[A-Za-z])", GAP, formula)
    text = re.sub(r"\([^()]*\)", join_bracket, text)
    text = re.sub(r" ([·×+−=]) ", rf" \1{GAP}", text).replace("= ", f"={GAP}")
    text = " ".join(word.replace("·", "· ") if len(word) > width - 2 else word for word in text.split(" "))
    rows = textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
    return rows or [""]


# ---- Markdown


def render_markdown(e: Explanation) -> str:
    """A section of a model card."""
    head = ["component", "formula", "with values", "parameters"]
    lines = [f"### {escape_markdown(format_title(e).replace('   ', ': '))}", ""]
    for line in e.changes:
        lines += [escape_markdown(line), ""]
    if e.sizes:
        sizes = [
            [format_code(size.name), group_digits(size.value), format_code(size.key), escape_markdown(size.meaning)]
            for size in e.sizes
        ]
        lines += [*make_pipe_table(["size", "value", "config.json", "meaning"], sizes, 1), ""]
    rows = [row for component in e.components for row in make_cells(component, component.name)]
    lines += make_pipe_table(head, [*rows, ["**total**", "", "", f"**{e.total:,}**"]], 3)
    for group in e.expert_groups:
        sums = [[label, terms, group_digits(n)] for label, terms, n in list_expert_sums(group)]
        lines += ["", f"{escape_markdown(describe_experts(group))}:", ""]
        lines += make_pipe_table(["experts", "arithmetic", "parameters"], sums, 2)
    if e.expert_groups:
        lines += ["", f"Active: {format_active_sum(e)} = **{e.active:,}**"]
    for component in e.not_included:
        lines += ["", f"{escape_markdown(name_not_included(e, component))}: {component.value:,}", ""]
        lines += make_pipe_table(head, make_cells(component), 3)
    for note in list_notes(e):
        lines += ["", escape_markdown(note)]
    return "\n".join(lines) + "\n"


def make_cells(component: Component, *labels: str) -> list[list[str]]:
    rows = []
    for line in component.lines:
        label = ", ".join([*labels, *list_labels(line, component.lines, component.name)]) or line.of
        formula = format_code(line.formula) or escape_markdown(line.note)
        rows.append([escape_markdown(label), formula, format_code(line.numbers), group_digits(line.value)])
    return rows


def escape_markdown(text: str) -> str:
    return re.sub(r"([\\|`*_\[\]#])", r"\\\1", escape(make_printable(text, 400), quote=False))


def format_code(text: str) -> str:
    return f"`{text}`" if text else ""


def make_pipe_table(head: list[str], rows: Sequence[Sequence[str]], right: int) -> list[str]:
    """A Markdown table. `right`: the index of the right-aligned column."""
    rule = ["---:" if i == right else "---" for i in range(len(head))]
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]


# ---- LaTeX


def render_latex(e: Explanation) -> str:
    """Aligned equations: the sizes, the formulas with numbers and values, the total."""
    sizes = [
        rf"{format_latex_name(size.name)} &= {format_latex_number(size.value)} && {format_upright(explain_size(size))}"
        for size in e.sizes
    ]
    formulas = []
    for component in e.components:
        for line in component.lines:
            label = format_upright(", ".join([component.name, *list_labels(line, component.lines, component.name)]))
            if line.formula:
                formulas.append(rf"{label} &= {line.latex}")
                formulas.append(rf"&= {line.latex_numbers}")
                formulas.append(rf"&= {format_latex_number(line.value)}")
            else:
                formulas.append(rf"{label} &= 0 && {format_upright(line.note)}")
    blocks = [sizes, [*formulas, rf"{format_upright('total')} &= {format_latex_number(e.total)}"]]
    for group in e.expert_groups:
        sums = [
            rf"{format_upright(name_sum(group, label))} &= {format_products(terms)} = {format_latex_number(n)}"
            for label, terms, n in list_expert_sums(group)
        ]
        blocks.append(sums)
    if e.expert_groups:
        total = format_products(format_active_sum(e))
        blocks[-1].append(rf"{format_upright('active')} &= {total} = {format_latex_number(e.active)}")
    lines = [f"% {make_printable(line)}" for line in (format_title(e), *e.changes, *list_notes(e))]
    lines.append(r"% needs \usepackage{amsmath}")
    for block in filter(None, blocks):
        lines += [r"\begin{align*}", " \\\\\n".join(block), r"\end{align*}"]
    return "\n".join(lines) + "\n"


def name_sum(group: ExpertGroup, label: str) -> str:
    return label if label.endswith(f" {group.component}") else f"{group.component}, {label}"


def format_upright(text: str) -> str:
    return rf"\text{{{escape_name(text)}}}" if text else ""


def format_products(terms: str) -> str:
    """Arithmetic in LaTeX, with upright words."""
    text = re.sub(r"(?<=\d) (layers?|experts?)", r"\\ \\text{\1}", terms.replace(",", "{,}"))
    return text.replace("×", r"\times ").replace("−", "-").replace("²", "^{2}").replace("  ", " ")
