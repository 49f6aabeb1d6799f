"""Reads what an explanation prints and works it out anew, with nothing of the package: formulas as text and in
LaTeX.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

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
