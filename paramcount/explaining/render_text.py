"""An explanation for people: on a terminal, as Markdown, as LaTeX."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from html import escape
from itertools import zip_longest

from paramcount.errors import make_printable
from paramcount.explaining.explanation import Component, Explanation, Line, Size, Visit
from paramcount.output.numbers import format_count
from paramcount.output.tables import Column, Table, render
from paramcount.symbolic.factoring import escape_name, group_digits, latex_name, latex_number

LEFT = 20  # columns for what a line is of
NARROWEST = 60
GAP = "\u00a0"  # holds together what no line break may part


def title(e: Explanation) -> str:
    of = f", {e.subject}" if e.subject else ""
    return f"{e.name}{of}   {e.total:,} parameters{f' ({format_count(e.total)})' if e.total >= 1000 else ''}"


def labels(line: Line, within: Sequence[Line], component: str) -> list[str]:
    """What tells a line from the others of its component, less what its formula says."""
    words = []
    if line.component != component:
        words.append(line.component)
    if len({other.part for other in within}) > 1:
        words.append(line.part)
    if line.detail:
        words.append(line.detail.removeprefix(f"{line.component}."))
    if line.layers and not line.formula.startswith(line.layers):
        words.append(line.layers)
    if line.of == "biases":
        words.append(line.of)
    return words


def expert_factors(visit: Visit, experts: int) -> str:
    """58 layers × 256 experts × 3 × 7,168 × 2,048."""
    one = group_digits(visit.one) if re.search(r" [+−] ", visit.numbers) else visit.numbers
    layers = f"{visit.layers:,} layer{'s' * (visit.layers != 1)} × " if visit.layers != 1 else ""
    return f"{layers}{experts:,} expert{'s' * (experts != 1)} × {one}"


def rows_of(visit: Visit) -> list[tuple[str, str, int]]:
    """(what, the arithmetic, the value) of experts, expert by expert."""
    return [
        ("one expert", visit.numbers, visit.one),
        ("all", expert_factors(visit, visit.experts), visit.all),
        ("visited", expert_factors(visit, visit.visited), visit.used),
        ("not visited", expert_factors(visit, visit.experts - visit.visited), visit.rest),
    ]


def heading(visit: Visit) -> str:
    where = f" in {visit.layers:,} {visit.kind + ' ' if visit.kind else ''}layer{'s' * (visit.layers != 1)}" if visit.layers != 1 else ""
    least = f"{visit.least:,} to " if visit.least != visit.visited else ""
    return f"{visit.component}: a token visits {least}{visit.visited:,} of {visit.experts:,}{where}"


def active_sum(e: Explanation) -> str:
    return " − ".join([group_digits(e.total), *(group_digits(visit.rest) for visit in e.visits)])


# ---- on a terminal


def text(e: Explanation, width: int) -> str:
    """The legend, the formulas with their numbers below them, the total, how the active figure arises, what stands beside."""
    width = max(width, NARROWEST)
    blocks = [[row for line in (title(e), *e.changes) for row in wrapped(line, width)]]
    if e.sizes:
        blocks.append(render(legend(e.sizes), "table", width).splitlines())
    formulas = [row for component in e.components for row in component_rows(component, width)]
    blocks.append([*formulas, summed("total", "", e.total, width)])
    blocks += [[heading(visit), *(row for what, sum_, n in rows_of(visit) for row in arithmetic(f"  {what}", sum_, n, width))] for visit in e.visits]
    if e.visits:
        blocks[-1] += arithmetic("active", active_sum(e), e.active, width)
    for component in e.beside:
        said = component.name if e.of == "head" else f"{component.name} (in no total)"
        blocks.append(component_rows(component._replace(name=said), width, apart=True))
    blocks.append([row for line in said_below(e) for row in wrapped(line, width)])
    return "\n\n".join("\n".join(block) for block in blocks if block).replace(GAP, " ") + "\n"


def wrapped(line: str, width: int) -> list[str]:
    """A line over as many rows as it needs, what stands behind a gap on one of its own."""
    halves = line.split("   ") if len(line) > width else [line]
    return [row for half in halves for row in textwrap.wrap(half, width, subsequent_indent="  ", break_on_hyphens=False)]


def said_below(e: Explanation) -> list[str]:
    kept = [f"numbers on which the structure depends: {', '.join(f'{size.name} = {size.value:,}' for size in e.kept)}"] if e.kept else []
    return [*kept, *map(make_printable, e.remarks)]


def legend(sizes: Sequence[Size]) -> Table:
    """Names, values, and what they mean with the keys they are read from."""
    columns = [Column("size", "size", right=False), Column("value", "value"), Column("meaning", "meaning, and key of config.json", right=False)]
    return Table(columns, [[size.name, size.value, told(size)] for size in sizes], None, wraps=True)


def told(size: Size) -> str:
    return f"{size.meaning} ({size.key})" if size.meaning and size.key else size.meaning or size.key or "derived"


def component_rows(component: Component, width: int, *, apart: bool = False) -> list[str]:
    """A component's lines; of several also what they sum to."""
    first = component.lines[0]
    words = labels(first, component.lines, component.name)
    if len(component.lines) == 1 and not apart and words in ([], [first.layers]):
        return line_rows([component.name, *words], first, width)
    rows = [summed(component.name, "", component.value, width)]
    for line in component.lines:
        told = ", ".join(labels(line, component.lines, component.name))
        biased = any(other.of == "biases" for other in component.lines)
        rows += line_rows([told or (line.of if biased else "")], line, width, indent="  ")
    return rows


def line_rows(left: list[str], line: Line, width: int, indent: str = "") -> list[str]:
    """What a line is of beside the formula and, below it, the numbers with the value."""
    if not line.formula:
        return [summed(indent + left[0], line.note, line.value, width)]
    room = LEFT - 1 - len(indent)
    words = [piece for word in left for piece in textwrap.wrap(word, room, break_long_words=False, break_on_hyphens=False)]
    right = [*folded(line.formula, width - LEFT), *valued(folded("= " + line.numbers, width - LEFT), line.value, width - LEFT)]
    if any(len(word) > room for word in words):  # a tensor's name
        return [indent + " ".join(words), *(" " * LEFT + row for row in right)]
    return [f"{indent + word:<{LEFT}}{row}".rstrip() for word, row in zip_longest(words, right, fillvalue="")]


def arithmetic(left: str, sum_: str, value: int, width: int) -> list[str]:
    """Arithmetic and its value beside what they are of."""
    rows = valued(folded(sum_, width - LEFT), value, width - LEFT)
    return [f"{left if i == 0 else '':<{LEFT}}{row}" for i, row in enumerate(rows)]


def summed(left: str, note: str, value: int, width: int) -> str:
    start = f"{left:<{LEFT}}{note}" if note else left
    return start + f"{value:,}".rjust(max(width - len(start), len(f"{value:,}") + 2))


def valued(rows: list[str], value: int, width: int) -> list[str]:
    """The value at the right end of the last row, or below it where it has no room."""
    shown = f"{value:,}"
    if len(rows[-1]) + 2 + len(shown) > width:
        rows = [*rows, ""]
    return [*rows[:-1], rows[-1] + shown.rjust(width - len(rows[-1]))]


def folded(formula: str, width: int) -> list[str]:
    """A formula over as many rows as it needs, parted before a sign, in no bracket that fits on a row."""
    held = re.sub(r"(?<=\d) (?=[A-Za-z])|(?<=[A-Za-z_]) (?=[A-Za-z])", GAP, formula)
    held = re.sub(r"\([^()]*\)", lambda bracket: bracket[0].replace(" ", GAP) if len(bracket[0]) < width - 8 else bracket[0], held)
    held = re.sub(r" ([·×+−=]) ", rf" \1{GAP}", held).replace("= ", f"={GAP}")
    held = " ".join(word.replace("·", "· ") if len(word) > width - 2 else word for word in held.split(" "))
    return textwrap.wrap(held, width, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False) or [""]


# ---- for a model card


def markdown(e: Explanation) -> str:
    """A section of a model card."""
    head = ["component", "formula", "with these sizes", "parameters"]
    rows = [row for component in e.components for row in cells(component, component.name)]
    lines = [f"### {plain(title(e).replace('   ', ': '))}", ""] + [text for line in e.changes for text in (plain(line), "")]
    if e.sizes:
        sizes = [[code(size.name), group_digits(size.value), code(size.key), plain(size.meaning)] for size in e.sizes]
        lines += [*pipes(["size", "value", "config.json", "meaning"], sizes, 1), ""]
    lines += pipes(head, [*rows, ["**total**", "", "", f"**{e.total:,}**"]], 3)
    for visit in e.visits:
        sums = [[what, sum_, group_digits(n)] for what, sum_, n in rows_of(visit)]
        lines += ["", f"{plain(heading(visit))}:", "", *pipes(["experts", "arithmetic", "parameters"], sums, 2)]
    if e.visits:
        lines += ["", f"Active: {active_sum(e)} = **{e.active:,}**"]
    for component in e.beside:
        said = "" if e.of == "head" else ", in no total"
        lines += ["", f"{plain(component.name)}{said}: {component.value:,}", "", *pipes(head, cells(component), 3)]
    lines += [text for said in said_below(e) for text in ("", plain(said))]
    return "\n".join(lines) + "\n"


def cells(component: Component, *before: str) -> list[list[str]]:
    """A row for each line of a component."""
    rows = []
    for line in component.lines:
        words = ", ".join([*before, *labels(line, component.lines, component.name)]) or line.of
        rows.append([plain(words), code(line.formula) or plain(line.note), code(line.numbers), group_digits(line.value)])
    return rows


def plain(words: str) -> str:
    return re.sub(r"([\\|`*_\[\]#])", r"\\\1", escape(make_printable(words, 400), quote=False))


def code(words: str) -> str:
    return f"`{words}`" if words else ""


def pipes(head: list[str], rows: Sequence[Sequence[str]], right: int) -> list[str]:
    """A table of Markdown. `right`: the column of numbers."""
    rule = ["---:" if i == right else "---" for i in range(len(head))]
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]


# ---- for a paper


def latex(e: Explanation) -> str:
    """Aligned equations: the sizes, the formulas with their numbers and values, the total."""
    blocks = [[rf"{latex_name(size.name)} &= {latex_number(size.value)} && {upright(told(size))}" for size in e.sizes]]
    formulas = []
    for component in e.components:
        for line in component.lines:
            words = upright(", ".join([component.name, *labels(line, component.lines, component.name)]))
            if line.formula:
                formulas += [rf"{words} &= {line.latex}", rf"&= {line.latex_numbers}", rf"&= {latex_number(line.value)}"]
            else:
                formulas.append(rf"{words} &= 0 && {upright(line.note)}")
    blocks.append([*formulas, rf"{upright('total')} &= {latex_number(e.total)}"])
    for visit in e.visits:
        rows = [rf"{upright(f'{visit.component}, {what}')} &= {products(sum_)} = {latex_number(n)}" for what, sum_, n in rows_of(visit)]
        blocks.append(rows)
    if e.visits:
        blocks[-1].append(rf"{upright('active')} &= {products(active_sum(e))} = {latex_number(e.active)}")
    made = [f"% {make_printable(line)}" for line in (title(e), *e.changes, *said_below(e))] + [r"% needs \usepackage{amsmath}"]
    for block in blocks:
        if block:
            made += [r"\begin{align*}", " \\\\\n".join(block), r"\end{align*}"]
    return "\n".join(made) + "\n"


def upright(words: str) -> str:
    return rf"\text{{{escape_name(words)}}}" if words else ""


def products(sum_: str) -> str:
    """Arithmetic as mathematics: words behind numbers stand upright."""
    held = re.sub(r"(?<=\d) (layers?|experts?)", r"\\ \\text{\1}", sum_.replace(",", "{,}"))
    return held.replace("×", r"\times ").replace("−", "-").replace("²", "^{2}").replace("  ", " ")
