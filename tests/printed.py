"""Reads what an explanation prints and works it out anew, with nothing of the package: formulas as text and in LaTeX,
rows of a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

LEFT = 20  # columns of a terminal before a formula
SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
TEXT = re.compile(
    r"(?P<number>\d[\d,]*)(?: [A-Za-z_][A-Za-z_/ -]*)?|(?P<name>[A-Za-z_][A-Za-z0-9_.]*)"
    r"|(?P<power>[⁰¹²³⁴⁵⁶⁷⁸⁹]+)|(?P<sign>[·×+−()])|\s+"
)
LATEX = re.compile(
    r"(?P<number>\d+(?:\{,\}\d{3})*)(?:\\ \\text\{[^{}]*\})?"
    r"|(?P<name>[a-z]_\{\\mathrm\{(?:[A-Za-z0-9]|\\_)+\}\}|\\mathrm\{(?:[A-Za-z0-9.]|\\_)+\})"
    r"|\}\^\{(?P<power>\d+)\}|(?P<sign>\\cdot|\\times|[+\-(){])|\s+"
)
SIGNS = {"·": "*", "×": "*", "\\cdot": "*", "\\times": "*", "−": "-"}


class Token(NamedTuple):
    kind: str
    text: str


def tokenize_formula(formula: str, grammar: re.Pattern[str]) -> list[Token]:
    """The formula cut up; whatever the grammar does not know raises."""
    found, at = [], 0
    while at < len(formula):
        match = grammar.match(formula, at)
        if match is None or match.end() == at:
            raise ValueError(f"not understood: {formula[at:]!r} of {formula!r}")
        if match.lastgroup:
            text = match[match.lastgroup]
            found.append(Token(match.lastgroup, SIGNS.get(text, text)))
        at = match.end()
    return found


def evaluate_formula(formula: str, value: Callable[[str], int], grammar: re.Pattern[str]) -> int:
    """The value of a formula: sums of products of numbers, names, powers and brackets."""
    left = [token for token in tokenize_formula(formula, grammar) if token.text != "{"]

    def parse_sum() -> int:
        total = parse_term() if not take_sign("-") else -parse_term()
        while left and left[0].text in "+-":
            total = total + parse_term() if left.pop(0).text == "+" else total - parse_term()
        return total

    def parse_term() -> int:
        n = parse_factor()
        while take_sign("*"):
            n *= parse_factor()
        return n

    def parse_factor() -> int:
        kind, text = left.pop(0)
        if text == "(":
            n = parse_sum()
            assert left.pop(0).text == ")"
        else:
            n = int(text.replace(",", "").replace("{}", "")) if kind == "number" else value(text)
        if left and left[0].kind == "power":
            n **= int(left.pop(0).text.translate(SUPERSCRIPT))
        return n

    def take_sign(sign: str) -> bool:
        return bool(left) and left[0] == Token("sign", sign) and bool(left.pop(0))

    found = parse_sum()
    assert not left, left
    return found


def evaluate_text(formula: str, sizes: Mapping[str, int]) -> int:
    return evaluate_formula(formula, lambda name: sizes[name], TEXT)


def evaluate_latex(formula: str, sizes: Mapping[str, int]) -> int:
    def value(name: str) -> int:
        first, _, rest = name.partition("_{\\mathrm{") if name[0] != "\\" else ("", "", name.removeprefix("\\mathrm{"))
        return sizes[(f"{first}_" if first else "") + rest.rstrip("}").replace("\\_", "_")]

    return evaluate_formula(formula, value, LATEX)


# ---- a terminal


class Row(NamedTuple):
    formula: str
    numbers: str
    value: int


class Page(NamedTuple):
    """What stands on a terminal."""

    sizes: dict[str, int]
    rows: list[Row]  # formula, numbers, value
    total: int
    sums: list[tuple[str, str, int]]  # what experts sum to: (what, arithmetic, value)


def parse_page(text: str) -> Page:
    """A page of `explain`, read row by row."""
    blocks = text.split("\n\n")[1:]
    sizes: dict[str, int] = {}
    if blocks[0].startswith("size"):
        for row in blocks.pop(0).splitlines()[2:]:
            name, number, *_ = [*row.split(), "", ""]
            if row[0] != " " and re.fullmatch(r"[\d,]+", number):
                sizes[name] = parse_integer(number)
    formulas, *others = blocks
    *rows, total = formulas.splitlines()
    sums = [
        found for block in others if "\n  one expert" in block for found in parse_arithmetic(block.splitlines()[1:])
    ]
    return Page(sizes, list(parse_lines(rows)), parse_integer(re.fullmatch(r"total +([\d,]+)", total)[1]), sums)  # type: ignore[index]


def parse_integer(text: str) -> int:
    return int(text.replace(",", ""))


def parse_lines(rows: list[str]) -> list[Row]:
    """Formulas, each over one row or more, with their numbers and the value below."""
    found: list[Row] = []
    formula, numbers = "", ""
    for row in rows:
        right = row[LEFT:].rstrip()
        if row[LEFT - 1 : LEFT].strip() or (row[:LEFT].strip() and not formula and not re.match(r"\S", right)):
            continue  # a long label, or what several lines sum to
        if right.startswith("= "):
            numbers = right[2:]
        elif numbers:
            numbers += (
                "  " if right.startswith("   ") else " "
            ) + right.strip()  # a value that had no room, or more of the numbers
        elif right:
            formula = f"{formula} {right.strip()}".strip()
        if numbers and (match := re.fullmatch(r"(.*?)\s{2,}([\d,]+)", numbers)):
            found.append(Row(formula, match[1].strip(), parse_integer(match[2])))
            formula = numbers = ""
        elif formula.startswith("tied to"):
            assert re.fullmatch(r"tied to .*  0", formula), formula
            formula = ""
    assert not formula and not numbers, (formula, numbers)
    return found


def parse_arithmetic(rows: list[str]) -> list[tuple[str, str, int]]:
    found: list[tuple[str, str, int]] = []
    what = sum_ = ""
    for row in rows:
        right = row[LEFT:].rstrip()
        what, sum_ = (
            row[:LEFT].strip() or what,
            (sum_ + ("  " if right.startswith("   ") else " ") + right.strip()).strip(),
        )
        if match := re.fullmatch(r"(.*?)\s{2,}([\d,]+)", sum_):
            found.append((what, match[1], parse_integer(match[2])))
            sum_ = ""
    return found
