"""Expressions as trees of plain data, with one evaluator; the same trees as JSON are evaluated by a page."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from itertools import repeat
from math import prod, trunc
from typing import Any, NamedTuple, TypeAlias

LARGEST_EXACT = 2**53  # of JavaScript's numbers


class TreeOperation(NamedTuple):
    """An operation of other expressions: + and * of any number of them, - of one, "if" of a condition and two values.

    "power" is a size to the power of an integer, "share" a size times a number that is no integer, rounded down; "null"
    says whether a value is unknown.
    """

    sign: str
    operands: tuple[Tree, ...]


class Literal(NamedTuple):
    """A value that is no plain integer, as it was written."""

    value: Any  # a date, a string, a flag, a number, or data for a page
    text: str = ""


Tree: TypeAlias = "int | str | float | Literal | TreeOperation"  # a string is the name of a size or column


def _divide(a: Any, b: Any) -> Any:
    from fractions import Fraction  # formulas are imported without it

    return Fraction(a) / Fraction(b)


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "+": lambda *operands: reduce(operator.add, operands), "*": lambda *operands: reduce(operator.mul, operands),
    "-": operator.neg, "/": _divide, "//": operator.floordiv, "%": operator.mod,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
    "not": operator.not_, "min": min, "share": lambda size, share: trunc(size * share),
    "power": lambda base, power: reduce(operator.mul, repeat(base, power)),
}  # fmt: skip
DIVISIONS = ("/", "//", "%")


def evaluate(tree: Tree, values: Mapping[str, Any]) -> Any:
    """The value of an expression; None if it is unknown, because a value is or because it divides by zero.

    `values`: integers, symbols or anything else that the operations take, by name.

    >>> evaluate(TreeOperation("+", (TreeOperation("*", (4, "d_model")), 1)), {"d_model": 768})
    3073
    """
    if isinstance(tree, str):
        return values[tree]
    if not isinstance(tree, TreeOperation):
        return tree.value if isinstance(tree, Literal) else tree
    sign, operands = tree
    if sign == "if":
        condition, yes, no = operands
        return evaluate(yes if evaluate(condition, values) else no, values)
    if sign in ("and", "or"):
        return _join_conditions(operands, values, decides=sign == "or")
    found = [evaluate(operand, values) for operand in operands]
    if sign == "null":
        return found[0] is None
    for value in found:
        if value is None:
            return None
    if sign in DIVISIONS and found[1] == 0:
        return None
    return OPERATORS[sign](*found)


def _join_conditions(operands: tuple[Tree, ...], values: Mapping[str, Any], *, decides: bool) -> bool | None:
    """Whether all or any conditions hold: what decides it, or else unknown if one is."""
    result: bool | None = not decides
    for operand in operands:
        value: bool | None = evaluate(operand, values)
        if value is decides:
            return decides
        if value is None:
            result = None
    return result


def list_names(tree: Tree) -> Iterator[str]:
    """The names in an expression, in order, each as often as it is there."""
    if isinstance(tree, TreeOperation):
        for operand in tree.operands:
            yield from list_names(operand)
    elif isinstance(tree, str):
        yield tree


def replace_names(tree: Tree, find: Callable[[str], Tree]) -> Tree:
    """The expression with another one in place of each name."""
    if isinstance(tree, TreeOperation):
        return TreeOperation(tree.sign, tuple(replace_names(operand, find) for operand in tree.operands))
    return find(tree) if isinstance(tree, str) else tree


def find_bound(tree: Tree, limits: Mapping[str, int]) -> int:
    """A limit of the absolute values of an expression of +, -, * and // and of its operands.

    `limits`: those of the names.
    """
    if not isinstance(tree, TreeOperation):
        return limits[tree] if isinstance(tree, str) else abs(int(tree))  # type: ignore[arg-type]
    bounds = [find_bound(operand, limits) for operand in tree.operands]
    return max(*bounds, prod(bounds) if tree.sign == "*" else sum(bounds))


def add(*operands: Tree) -> Tree:
    """A sum without zeros."""
    return _join("+", 0, operands)


def multiply(*operands: Tree) -> Tree:
    """A product without ones."""
    return _join("*", 1, operands)


def raise_power(base: Tree, power: int) -> Tree:
    return base if power == 1 else TreeOperation("power", (base, power))


def _join(sign: str, neutral: int, operands: tuple[Tree, ...]) -> Tree:
    rest = [operand for operand in operands if operand != neutral]
    if len(rest) < 2:
        return rest[0] if rest else neutral
    first = rest[0]
    if isinstance(first, TreeOperation) and first.sign == sign:  # from left to right, as before
        return TreeOperation(sign, (*first.operands, *rest[1:]))
    return TreeOperation(sign, tuple(rest))


def to_json(tree: Tree) -> Any:
    """The expression for JSON: a number, a name, or [operator, operand, …].

    >>> to_json(TreeOperation("*", (2**60, "d_model")))
    ['*', ['integer', '1152921504606846976'], 'd_model']
    """
    if isinstance(tree, TreeOperation):
        return [tree.sign, *map(to_json, tree.operands)]
    if isinstance(tree, Literal):
        return tree.value
    return tree if isinstance(tree, (str, float)) or abs(tree) < LARGEST_EXACT else ["integer", str(tree)]
