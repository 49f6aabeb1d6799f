"""The parser of what users type: expressions of sizes, and conditions on columns.

    condition   = both ("or" both)*
    both        = test ("and" test)*
    test        = "not" test | sum "is" ["not"] "null" | sum ("=" | "!=") "null"
                | sum (("<" | "<=" | ">" | ">=" | "=" | "==" | "!=") sum)*
    sum         = product (("+" | "-") product)*
    product     = operand (("*" | "/" | "//") operand)*
    operand     = "-" operand | "(" condition ")" | number | date | string | name

A chain such as 1e9 < total < 9e9 means both comparisons. Numbers are exact; nothing is evaluated as Python code. It is
no Python either: 9B, 2025-01-31, `KV heads`, "=" and "is null" are none, and errors name the word that is wrong.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple, NoReturn

from paramcount.errors import ParamcountError, make_printable, quote
from paramcount.symbolic.trees import Literal, Tree, TreeOperation

DEEPEST = 40  # parentheses, "not", "-" and quotients inside each other
MOST_DIGITS = 40
SUFFIXES = {
    "": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12, "kb": 10**3, "mb": 10**6, "gb": 10**9,
    "tb": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40, "kib": 2**10, "mib": 2**20, "gib": 2**30,
    "tib": 2**40,
}  # fmt: skip
TOKEN = re.compile(
    r"""\s*(?:(?P<date>\d{4}-\d{2}-\d{2}(?![\w-]))
    |(?P<number>\d+(?:_\d+)*(?:\.\d+)?(?:[eE][+-]?\d{1,2})?)(?P<suffix>[A-Za-z]*)(?!\w)
    |(?P<string>"[^"]*"|'[^']*')
    |`(?P<quoted>[^`]+)`
    |(?P<name>[^\W\d][\w.]*)
    |(?P<sign><=|>=|==|!=|<>|//|[<>=≤≥≠+*/()×−-]))""",
    re.VERBOSE,
)
SIGNS = {"==": "=", "<>": "!=", "≤": "<=", "≥": ">=", "≠": "!=", "×": "*", "−": "-"}
COMPARISONS = ("<", "<=", ">", ">=", "=", "!=")
WORDS = ("and", "or", "not", "is", "null")


class Grammar(NamedTuple):
    """What may be typed somewhere."""

    expected: str  # the whole text
    operand: str
    longest: int  # characters
    has_conditions: bool  # rather than sums of integers and names


class Token(NamedTuple):
    """A word of a text: its kind, its text and its value."""

    kind: str  # number | date | string | name | word | sign | end
    text: str
    value: int | Fraction | str = ""


def parse(text: str, grammar: Grammar) -> Tree:
    """The expression that a text states. Names are as typed; what is not an integer is a Literal.

    Raises: ParamcountError for anything else, without a place.
    """
    if len(text) > grammar.longest:
        raise ParamcountError(f"has {len(text):,} characters", expected=f"at most {grammar.longest:,}")
    parser = Parser(list(split_tokens(text, grammar)), grammar)
    tree = parser.read_condition(0) if grammar.has_conditions else parser.read_sum(0)
    if parser.token.kind != "end":
        parser.fail("and, or, or a comparison")
    return tree


def split_tokens(text: str, grammar: Grammar) -> Iterator[Token]:
    """The words of a text, ending with one of the kind "end"."""
    i, end = 0, len(text.rstrip())
    while i < end:
        match = TOKEN.match(text, i)
        if match is None:
            raise ParamcountError(f"invalid text {quote(text[i : i + 20].strip())}", expected=grammar.expected)
        yield make_token(match)
        i = match.end()
    yield Token("end", "")


def make_token(match: re.Match[str]) -> Token:
    text = match[0].strip()
    if match["date"]:
        return Token("date", text, parse_date(text))
    if match["number"]:
        return Token("number", text, parse_number(match["number"], match["suffix"]))
    if match["string"]:
        return Token("string", text, match["string"][1:-1])
    if match["quoted"] or match["name"]:
        kind = "word" if match["name"] and text.lower() in WORDS else "name"
        return Token(kind, match["quoted"] or (text.lower() if kind == "word" else text))
    return Token("sign", SIGNS.get(text, text))


def parse_date(text: str) -> str:
    """A date as a string, so that dates compare as columns do."""
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise ParamcountError(f"invalid date {quote(text)}", expected="a date such as 2025-01-31") from None


def parse_number(text: str, suffix: str) -> int | Fraction:
    """An exact number: 9e9, 9B, 4Ki or 0.5."""
    factor = SUFFIXES.get(suffix.lower())
    if factor is None or sum(map(str.isdigit, text)) > MOST_DIGITS:
        raise ParamcountError(
            f"invalid number {quote(text + suffix)}", expected="a number such as 9000000000, 9e9, 9B, 24GB or 128Ki"
        )
    number = Fraction(text.replace("_", "")) * factor
    return int(number) if number.denominator == 1 else number


class Parser:
    """Reads an expression from its words, one word of lookahead."""

    def __init__(self, tokens: list[Token], grammar: Grammar) -> None:
        self.tokens, self.i, self.grammar = tokens, 0, grammar

    @property
    def token(self) -> Token:
        return self.tokens[self.i]

    def take(self, *texts: str) -> str:
        """The text of the next word if it is one of these signs or words, which is then read; otherwise empty."""
        token = self.token
        if token.kind not in ("sign", "word") or token.text not in texts:
            return ""
        self.i += 1
        return token.text

    def fail(self, expected: str) -> NoReturn:
        token = self.token
        found = "ends too early" if token.kind == "end" else f"unexpected {quote(make_printable(token.text, 40))}"
        expected = expected if self.grammar.has_conditions else self.grammar.expected
        raise ParamcountError(found if token.kind != "end" or self.i else "is empty", expected=expected)

    def descend(self, depth: int) -> int:
        if depth == DEEPEST:
            raise ParamcountError(f"is nested more than {DEEPEST} deep", expected=self.grammar.expected)
        return depth + 1

    def read_condition(self, depth: int) -> Tree:
        return self.read_words("or", lambda: self.read_words("and", lambda: self.read_test(depth)))

    def read_words(self, word: str, read: Callable[[], Tree]) -> Tree:
        operands = [read()]
        while self.take(word):
            operands.append(read())
        return TreeOperation(word, tuple(operands)) if len(operands) > 1 else operands[0]

    def read_test(self, depth: int) -> Tree:
        if self.take("not"):
            return TreeOperation("not", (self.read_test(self.descend(depth)),))
        terms = [self.read_sum(depth)]
        if self.take("is"):
            is_known = bool(self.take("not"))
            if not self.take("null"):
                self.fail("is null or is not null")
            return test_null(terms[0], is_known)
        tests: list[Tree] = []
        while sign := self.take(*COMPARISONS):
            if not tests and sign in ("=", "!=") and self.take("null"):
                return test_null(terms[0], sign == "!=")
            terms.append(self.read_sum(depth))
            tests.append(TreeOperation(sign, (terms[-2], terms[-1])))
        if not tests:
            return terms[0]
        return tests[0] if len(tests) == 1 else TreeOperation("and", tuple(tests))

    def read_sum(self, depth: int) -> Tree:
        terms = [self.read_product(depth)]
        while sign := self.take("+", "-"):
            term = self.read_product(depth)
            terms.append(TreeOperation("-", (term,)) if sign == "-" else term)
        return TreeOperation("+", tuple(terms)) if len(terms) > 1 else terms[0]

    def read_product(self, depth: int) -> Tree:
        tree = self.read_operand(depth)
        while sign := self.take("*", "//", *(["/"] if self.grammar.has_conditions else [])):
            right = self.read_operand(depth)
            if isinstance(tree, TreeOperation) and sign == tree.sign == "*":
                tree = TreeOperation("*", (*tree.operands, right))
            else:
                depth = self.descend(depth)
                tree = TreeOperation(sign, (tree, right))
        return tree

    def read_operand(self, depth: int) -> Tree:
        if self.take("-"):
            return TreeOperation("-", (self.read_operand(self.descend(depth)),))
        if self.take("("):
            depth = self.descend(depth)
            inner = self.read_condition(depth) if self.grammar.has_conditions else self.read_sum(depth)
            if not self.take(")"):
                self.fail("a closing parenthesis")
            return inner
        kind, text, value = self.token
        is_plain = kind == "name" or type(value) is int
        if kind not in ("name", "number", "date", "string") or not (is_plain or self.grammar.has_conditions):
            self.fail(self.grammar.operand)
        self.i += 1
        if kind == "name":
            return text
        is_value = type(value) is int and (text == str(value) or not self.grammar.has_conditions)
        return value if is_value else Literal(value, text)  # type: ignore[return-value]


def test_null(tree: Tree, is_known: bool) -> Tree:
    unknown = TreeOperation("null", (tree,))
    return TreeOperation("not", (unknown,)) if is_known else unknown
