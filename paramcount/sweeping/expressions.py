"""Expressions of sizes: names, integers, + - * // and parentheses. They are parsed here and never passed to `eval`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from paramcount.errors import LONGEST, ParamcountError, quote
from paramcount.symbolic.arrays import LARGEST_INT64, is_array

EXPECTED = "names of sizes, integers, + - * // and parentheses, such as 4*d_model"
TOKEN = re.compile(r"\s*(?:(?P<integer>[0-9]+)|(?P<name>[A-Za-z_][A-Za-z0-9_.]*)|(?P<sign>//|[-+*()]))")
MOST_DIGITS = 18  # of an integer, so that it fits int64
DEEPEST = 40  # parentheses and signs inside each other
PRECEDENCE = {"+": 1, "-": 1, "*": 2, "//": 2}


class Operation(NamedTuple):
    """Two expressions joined by +, -, * or //."""

    sign: str
    left: Tree
    right: Tree


Tree = int | str | Operation  # an integer, the name of a size, or an operation


class Expression(NamedTuple):
    """An expression as typed, and its tree."""

    text: str
    tree: Tree

    @property
    def names(self) -> tuple[str, ...]:
        """The names in it, each once."""
        return tuple(dict.fromkeys(list_names(self.tree)))

    def rename(self, find_name: Callable[[str], str]) -> Expression:
        return self._replace(tree=rename_tree(self.tree, find_name))

    def evaluate(self, values: Mapping[str, Any]) -> tuple[Any, Any]:
        """Its value, and whether it divides by zero. `values`: ints or int64 arrays by name.

        A value that may exceed int64 is computed with Python ints, as an array of objects.
        """
        limits = {name: find_magnitude(values[name]) for name in self.names}
        if bound_tree(self.tree, limits) > LARGEST_INT64:
            values = {name: value.astype(object) if is_array(value) else value for name, value in values.items()}
        return evaluate_tree(self.tree, values)


def parse_expression(text: str, where: str) -> Expression:
    """The expression that a string states.

    >>> parse_expression("4*d_model + 1", "d_ff").evaluate({"d_model": 768})
    (3073, False)

    Raises: ParamcountError for anything else, and for an expression that is too long or too deep.
    """
    if len(text) > LONGEST:
        raise ParamcountError(f"has {len(text):,} characters", where=where, expected=f"at most {LONGEST}")
    parser = Parser(tuple(split_tokens(text, where)), text, where)
    tree, position = parser.parse_sum(0, 0, 0)
    if position < len(parser.tokens):
        raise parser.make_error(position)
    return Expression(text.strip(), tree)


def split_tokens(text: str, where: str) -> Iterator[str]:
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            raise ParamcountError(f"= {quote(text)}", where=where, expected=EXPECTED)
        if match["integer"] and len(match["integer"]) > MOST_DIGITS:
            raise ParamcountError(f"= {quote(text)}", where=where, expected=f"integers of at most {MOST_DIGITS} digits")
        yield match[0].strip()
        position = match.end()


class Parser(NamedTuple):
    """The tokens of an expression. Each method returns a tree and the position behind it."""

    tokens: Sequence[str]
    text: str
    where: str

    def parse_sum(self, position: int, least: int, depth: int) -> tuple[Tree, int]:
        """Operands joined by operators with a precedence above `least`."""
        left, position = self.parse_operand(position, depth)
        while position < len(self.tokens) and PRECEDENCE.get(self.tokens[position], 0) > least:
            sign = self.tokens[position]
            right, position = self.parse_sum(position + 1, PRECEDENCE[sign], depth + 1)
            left = Operation(sign, left, right)
        return left, position

    def parse_operand(self, position: int, depth: int) -> tuple[Tree, int]:
        """An integer, a name, a signed operand or an expression in parentheses."""
        if depth > DEEPEST:
            raise ParamcountError(f"= {quote(self.text)} is nested too deeply", where=self.where, expected=EXPECTED)
        if position >= len(self.tokens):
            raise self.make_error(position)
        word = self.tokens[position]
        if word == "-":
            tree, position = self.parse_operand(position + 1, depth + 1)
            return Operation("-", 0, tree), position
        if word == "(":
            tree, position = self.parse_sum(position + 1, 0, depth + 1)
            if position >= len(self.tokens) or self.tokens[position] != ")":
                raise self.make_error(position)
            return tree, position + 1
        if word in PRECEDENCE or word == ")":
            raise self.make_error(position)
        return (int(word) if word.isdecimal() else word), position + 1

    def make_error(self, position: int) -> ParamcountError:
        found = f"{quote(self.tokens[position])} is unexpected" if position < len(self.tokens) else "ends too early"
        return ParamcountError(f"= {quote(self.text)}: {found}", where=self.where, expected=EXPECTED)


def list_names(tree: Tree) -> Iterator[str]:
    if isinstance(tree, Operation):
        yield from list_names(tree.left)
        yield from list_names(tree.right)
    elif isinstance(tree, str):
        yield tree


def rename_tree(tree: Tree, find_name: Callable[[str], str]) -> Tree:
    if isinstance(tree, Operation):
        return Operation(tree.sign, rename_tree(tree.left, find_name), rename_tree(tree.right, find_name))
    return find_name(tree) if isinstance(tree, str) else tree


def find_magnitude(value: Any) -> int:
    """The largest absolute value of an int or an array."""
    return max(abs(int(value.max())), abs(int(value.min()))) if is_array(value) else abs(value)


def bound_tree(tree: Tree, limits: Mapping[str, int]) -> int:
    """A limit of the absolute values of an expression and of its operands. `limits`: those of the sizes."""
    if not isinstance(tree, Operation):
        return limits[tree] if isinstance(tree, str) else tree
    left, right = bound_tree(tree.left, limits), bound_tree(tree.right, limits)
    return max(left, right, left * right if tree.sign == "*" else left + right)


def evaluate_tree(tree: Tree, values: Mapping[str, Any]) -> tuple[Any, Any]:
    """The value of an expression, and whether it divides by zero."""
    if not isinstance(tree, Operation):
        return (values[tree] if isinstance(tree, str) else tree), False
    left, is_left_broken = evaluate_tree(tree.left, values)
    right, is_right_broken = evaluate_tree(tree.right, values)
    is_broken = is_left_broken | is_right_broken
    match tree.sign:
        case "+":
            return left + right, is_broken
        case "-":
            return left - right, is_broken
        case "*":
            return left * right, is_broken
    is_zero = right == 0
    return left // (right + is_zero), is_broken | is_zero  # a divisor of 1 instead of 0
