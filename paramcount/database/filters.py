"""Filters such as "total < 9e9 and n_kv_heads < n_heads and released >= 2025-01-01": conditions on columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from paramcount.database.fields import find_field
from paramcount.errors import ParamcountError, quote
from paramcount.symbolic.parsing import COMPARISONS, Grammar, parse, parse_date
from paramcount.symbolic.quantities import is_length, parse_quantity
from paramcount.symbolic.trees import Literal, Tree, TreeOperation, evaluate
from paramcount.zoo import Model
from paramcount.zoo.columns import TableField

Row = Mapping[str, Any]
TYPES = {"integer": "number", "number": "number", "flag": "flag", "text": "string", "date": "date"}
EXAMPLES = {"number": "> 1", "date": ">= 2025-01-31", "string": "= 'x'"}  # of a comparison, by type
FLAGS = {"true": True, "yes": True, "false": False, "no": False}
FILTER = Grammar(
    'a condition such as "total < 9e9 and released >= 2025-01-01"',
    "a column, a number, a date or a string in quotes",
    longest=2000,
    has_conditions=True,
)


class Term(NamedTuple):
    """A part of a filter whose names are those of columns, and its type."""

    type: str  # number | date | string | flag
    tree: Tree
    text: str


class Filter(NamedTuple):
    """A filter over rows of models."""

    fields: tuple[TableField, ...]  # the columns that it names
    matches: Callable[[Row], bool]


FindField = Callable[[str, Sequence[Model]], TableField]


def parse_filter(text: str, models: Sequence[Model], find: FindField = find_field) -> Filter:
    """The filter that a text states. `find` finds the column of a name. A condition on an unknown value is unknown.

    >>> filter = parse_filter("9e9 > total and (tied or not d_model = 4Ki)", [])
    >>> [field.name for field in filter.fields]
    ['total', 'tied', 'd_model']
    >>> filter.matches({"total": 8 * 10**9, "tied": False, "d_model": 4096})
    False

    Raises: ParamcountError for anything else, with the place.
    """
    checker = TypeChecker(models, find)
    try:
        tree = check_flag(checker.check(parse(text, FILTER))).tree
    except ParamcountError as error:
        raise error if error.where else error.replace(where="where") from None
    texts = [field.name for field in checker.fields.values() if field.type == "text"]

    def matches(row: Row) -> bool:
        return evaluate(tree, {**row, **{name: fold(row[name]) for name in texts}} if texts else row) is True

    return Filter(tuple(checker.fields.values()), matches)


def fold(value: object) -> object:
    """A value without the case of its letters."""
    return value.casefold() if isinstance(value, str) else value


class TypeChecker:
    """Finds the columns of a filter, and checks that its values are of one type where they meet."""

    def __init__(self, models: Sequence[Model], find: FindField) -> None:
        self.models, self.find = models, find
        self.fields: dict[str, TableField] = {}

    def check(self, tree: Tree) -> Term:
        """An expression with its type.

        Raises: ParamcountError for an unknown column, and for operands of other types than the operator takes.
        """
        if isinstance(tree, str):
            return self.find_name(tree)
        if isinstance(tree, Literal):
            is_string = tree.text[:1] in ("'", '"')
            type_ = "string" if is_string else "date" if isinstance(tree.value, str) else "number"
            return Term(type_, tree._replace(value=fold(tree.value)), tree.text)
        if not isinstance(tree, TreeOperation):
            return Term("number", tree, str(tree))
        terms = [self.check(operand) for operand in tree.operands]
        if tree.sign in COMPARISONS:
            terms = check_comparison(tree.sign, *terms)
        elif tree.sign in ("and", "or", "not"):
            terms = list(map(check_flag, terms))
        elif tree.sign != "null":
            return calculate(tree.sign, terms)
        return Term("flag", TreeOperation(tree.sign, tuple(term.tree for term in terms)), tree.sign)

    def find_name(self, name: str) -> Term:
        """A column, or one of the constants true and false."""
        if name.lower() in FLAGS:
            return Term("flag", Literal(FLAGS[name.lower()]), name)
        try:
            field = self.find(name, self.models)
        except ParamcountError as error:
            expected = f"a column, or {quote(name)} in quotes for a string"
            raise error if error.nearest else error.replace(expected=expected) from None
        self.fields[field.name] = field
        return Term(TYPES[field.type], field.name, name)


def quote_once(text: str) -> str:
    """A name in quotes; a string in the quotes that it was written in."""
    return text if text[:1] in ("'", '"') else quote(text)


def check_flag(term: Term) -> Term:
    """Raises: ParamcountError if a term is not true or false."""
    if term.type != "flag":
        example = EXAMPLES[term.type]
        raise ParamcountError(
            f"{quote(term.text)} is a {term.type}", expected=f"a comparison such as {term.text} {example}"
        )
    return term


def check_comparison(sign: str, *terms: Term) -> list[Term]:
    """The terms of a comparison, with a string that is compared with a date as a date.

    Raises: ParamcountError if they cannot be compared.
    """
    has_date = any(term.type == "date" for term in terms)
    left, right = (convert_date(term) if has_date else count_tokens(term, terms) for term in terms)
    if left.type != right.type:
        first, second = (f"{term.type} {quote_once(term.text)}" for term in (left, right))
        raise ParamcountError(
            f"cannot compare the {first} with the {second}",
            expected="a date such as 2025-01-31" if has_date else "two values of one type, with strings in quotes",
        )
    if left.type == "flag" and sign not in ("=", "!="):
        raise ParamcountError(f"{quote(left.text)} is true or false", expected="= or !=")
    return [left, right]


def count_tokens(term: Term, terms: Sequence[Term]) -> Term:
    """A number that is compared with a column of tokens, in which 32k is 32,768."""
    names = [other.tree for other in terms if isinstance(other.tree, str)]
    if not isinstance(term.tree, Literal) or term.type != "number" or not any(map(is_length, names)):
        return term
    value = parse_quantity(term.text, next(filter(is_length, names)))
    return term if value is None else term._replace(tree=Literal(value, term.text))


def convert_date(term: Term) -> Term:
    if term.type != "string" or not isinstance(term.tree, Literal):
        return term
    return Term("date", Literal(parse_date(term.text[1:-1])), term.text)


def calculate(sign: str, terms: Sequence[Term]) -> Term:
    """A sum, negative number, product or quotient of numbers."""
    for term in terms:
        if term.type != "number":
            raise ParamcountError(f"{quote(term.text)} is a {term.type}", expected=f"a number for {sign}")
    texts = [term.text for term in terms]
    text = f" {sign} ".join(texts) if len(texts) > 1 else f"{sign} {texts[0]}"
    return Term("number", TreeOperation(sign, tuple(term.tree for term in terms)), text.replace("+ - ", "- ")[:40])
