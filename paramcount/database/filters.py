"""Filters such as "total < 9e9 and n_kv_heads < n_heads and released >= 2025-01-01": a small grammar over columns.

    filter      = both ("or" both)*
    both        = condition ("and" condition)*
    condition   = "not" condition | "(" filter ")" | sum "is" ["not"] "null" | sum ("=" | "!=") "null"
                | sum (("<" | "<=" | ">" | ">=" | "=" | "==" | "!=") sum)*
    sum         = product (("+" | "-") product)*
    product     = factor (("*" | "/" | "//") factor)*
    factor      = "-" factor | "(" filter ")" | number | date | string | column

A chain such as 1e9 < total < 9e9 means both comparisons. Numbers are exact; nothing is evaluated as Python code.
"""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn

from paramcount.database.fields import find_field
from paramcount.errors import ParamcountError, make_printable, quote
from paramcount.zoo import Model
from paramcount.zoo.columns import Field

Row = Mapping[str, Any]
LONGEST = 2000  # characters
DEEPEST = 40  # parentheses, "not" and "-" inside each other
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
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
WORDS = ("and", "or", "not", "is", "null")
TYPES = {"integer": "number", "number": "number", "flag": "flag", "text": "string", "date": "date"}
EXAMPLES = {"number": "> 1", "date": ">= 2025-01-31", "string": "= 'x'"}  # of a comparison, by type
EXPECTED = 'a condition such as "total < 9e9 and released >= 2025-01-01"'


class Token(NamedTuple):
    """One word of a filter: its kind, its text and its value."""

    kind: str  # number | date | string | name | sign | end
    text: str
    value: Any = None


class Term(NamedTuple):
    """A part of a filter: its type, and its value for a row; None for an unknown value."""

    type: str  # number | date | string | flag
    compute: Callable[[Row], Any]
    text: str
    literal: Any = None  # of a string: a date may be written as one


class Filter(NamedTuple):
    """A filter over rows of models."""

    fields: tuple[Field, ...]  # the columns that it names
    matches: Callable[[Row], bool]


def parse_filter(text: str, models: Sequence[Model]) -> Filter:
    """The filter that a text states. Its names are those of `find_field`.

    >>> filter = parse_filter("9e9 > total and (tied or not d_model = 4Ki)", [])
    >>> [field.name for field in filter.fields]
    ['total', 'tied', 'd_model']
    >>> filter.matches({"total": 8 * 10**9, "tied": False, "d_model": 4096})
    False

    Raises: ParamcountError for anything else, with the place.
    """
    try:
        parser = Parser(read_tokens(text), models)
        term = parser.read_filter(0)
        if parser.token.kind != "end":
            parser.fail("and, or, or a comparison")
        check_flag(term)
    except ParamcountError as error:
        raise error if error.where else error.replace(where="where") from None
    return Filter(tuple(parser.fields.values()), lambda row: term.compute(row) is True)


def read_tokens(text: str) -> list[Token]:
    """The words of a filter, ending with one of the kind "end"."""
    if len(text) > LONGEST:
        raise ParamcountError(f"has {len(text):,} characters", expected=f"at most {LONGEST:,}")
    tokens: list[Token] = []
    i, end = 0, len(text.rstrip())
    while i < end:
        match = TOKEN.match(text, i)
        if match is None:
            raise ParamcountError(f"invalid text {quote(text[i : i + 20].strip())}", expected=EXPECTED)
        tokens.append(make_token(match))
        i = match.end()
    return [*tokens, Token("end", "")]


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
    """Reads a filter from its words, one word of lookahead."""

    def __init__(self, tokens: Sequence[Token], models: Sequence[Model]) -> None:
        self.tokens, self.i, self.models = tokens, 0, models
        self.fields: dict[str, Field] = {}

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
        raise ParamcountError(found if token.kind != "end" or self.i else "is empty", expected=expected)

    def read_filter(self, depth: int) -> Term:
        if depth > DEEPEST:
            raise ParamcountError(f"is nested more than {DEEPEST} deep", expected=EXPECTED)
        return self.read_words("or", lambda: self.read_words("and", lambda: self.read_condition(depth)))

    def read_words(self, word: str, read: Callable[[], Term]) -> Term:
        """Conditions joined by "and" or "or". An unknown one leaves the result open unless another one decides it."""
        terms = [read()]
        while self.take(word):
            terms.append(read())
        if len(terms) == 1:
            return terms[0]
        for term in terms:
            check_flag(term)
        decides = word == "or"

        def compute(row: Row) -> bool | None:
            values = [term.compute(row) for term in terms]
            if decides in values:
                return decides
            return None if None in values else not decides

        return Term("flag", compute, word)

    def read_condition(self, depth: int) -> Term:
        if depth > DEEPEST:
            raise ParamcountError(f"is nested more than {DEEPEST} deep", expected=EXPECTED)
        if self.take("not"):
            inner = self.read_condition(depth + 1)
            check_flag(inner)
            return Term("flag", lambda row: None if (value := inner.compute(row)) is None else not value, "not")
        terms = [self.read_sum(depth)]
        if self.take("is"):
            is_known = bool(self.take("not"))
            if not self.take("null"):
                self.fail("is null or is not null")
            return check_null(terms[0], is_known)
        signs: list[str] = []
        while sign := self.take(*COMPARE):
            if not signs and sign in ("=", "!=") and self.take("null"):
                return check_null(terms[0], sign == "!=")
            signs.append(sign)
            terms.append(self.read_sum(depth))
        if not signs:
            return terms[0]
        return compare_terms(terms, signs)

    def read_sum(self, depth: int) -> Term:
        return self.read_signs(("+", "-"), lambda: self.read_signs(("*", "/", "//"), lambda: self.read_factor(depth)))

    def read_signs(self, signs: tuple[str, ...], read: Callable[[], Term]) -> Term:
        term = read()
        while sign := self.take(*signs):
            term = calculate(sign, term, read())
        return term

    def read_factor(self, depth: int) -> Term:
        if depth > DEEPEST:
            raise ParamcountError(f"is nested more than {DEEPEST} deep", expected=EXPECTED)
        if self.take("-"):
            return calculate("-", Term("number", lambda row: 0, "0"), self.read_factor(depth + 1))
        if self.take("("):
            inner = self.read_filter(depth + 1)
            if not self.take(")"):
                self.fail("a closing parenthesis")
            return inner
        token = self.token
        if token.kind in ("number", "date", "string"):
            self.i += 1
            value = token.value.casefold() if token.kind == "string" else token.value
            return Term(token.kind, lambda row: value, token.text, token.value)
        if token.kind == "name":
            self.i += 1
            return self.read_name(token.text)
        return self.fail("a column, a number, a date or a string in quotes")

    def read_name(self, name: str) -> Term:
        """A column, or one of the constants true and false."""
        if name.lower() in ("true", "yes", "false", "no"):
            value = name.lower() in ("true", "yes")
            return Term("flag", lambda row: value, name)
        try:
            field = find_field(name, self.models)
        except ParamcountError as error:
            expected = f"a column, or {quote(name)} in quotes for a string"
            raise error if error.nearest else error.replace(expected=expected) from None
        self.fields[field.name] = field
        key = field.name
        if field.type == "text":
            return Term("string", lambda row: None if (value := row[key]) is None else value.casefold(), name)
        return Term(TYPES[field.type], lambda row: row[key], name)


def check_null(term: Term, is_known: bool) -> Term:
    """Whether the value of a term is unknown, or is known."""
    return Term("flag", lambda row: (term.compute(row) is not None) == is_known, "null")


def quote_once(text: str) -> str:
    """A name in quotes; a string in the quotes that it was written in."""
    return text if text[:1] in ("'", '"') else quote(text)


def check_flag(term: Term) -> None:
    """Raises: ParamcountError if a term is not true or false."""
    if term.type != "flag":
        example = EXAMPLES[term.type]
        raise ParamcountError(
            f"{quote(term.text)} is a {term.type}", expected=f"a comparison such as {term.text} {example}"
        )


def compare_terms(terms: Sequence[Term], signs: Sequence[str]) -> Term:
    """A chain of comparisons, which holds if each does; unknown if a value is."""
    terms = [convert_date(term, terms) for term in terms]
    for sign, left, right in zip(signs, terms, terms[1:]):
        if left.type != right.type:
            first, second = (f"{term.type} {quote_once(term.text)}" for term in (left, right))
            has_date = "date" in (left.type, right.type)
            raise ParamcountError(
                f"cannot compare the {first} with the {second}",
                expected="a date such as 2025-01-31" if has_date else "two values of one type, with strings in quotes",
            )
        if left.type == "flag" and sign not in ("=", "!="):
            raise ParamcountError(f"{quote(left.text)} is true or false", expected="= or !=")

    def compute(row: Row) -> bool | None:
        values = [term.compute(row) for term in terms]
        if None in values:
            return None
        return all(COMPARE[sign](left, right) for sign, left, right in zip(signs, values, values[1:]))

    return Term("flag", compute, signs[0])


def convert_date(term: Term, others: Sequence[Term]) -> Term:
    """A string that is compared with a date, as a date."""
    if term.type != "string" or term.literal is None or not any(other.type == "date" for other in others):
        return term
    value = parse_date(term.literal)
    return Term("date", lambda row: value, term.text)


def calculate(sign: str, left: Term, right: Term) -> Term:
    """A sum, difference, product or quotient of two numbers; unknown if one is, or for a division by 0."""
    for term in (left, right):
        if term.type != "number":
            raise ParamcountError(f"{quote(term.text)} is a {term.type}", expected=f"a number for {sign}")

    def compute(row: Row) -> int | Fraction | None:
        a, b = left.compute(row), right.compute(row)
        if a is None or b is None or (b == 0 and sign in ("/", "//")):
            return None
        match sign:
            case "+":
                return a + b  # type: ignore[no-any-return]
            case "-":
                return a - b  # type: ignore[no-any-return]
            case "*":
                return a * b  # type: ignore[no-any-return]
            case "//":
                return a // b  # type: ignore[no-any-return]
        return Fraction(a) / Fraction(b)

    return Term("number", compute, f"{left.text} {sign} {right.text}"[:40])
