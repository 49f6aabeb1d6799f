"""The checks of sizes as data: each check runs with symbols in place of sizes, once for every way through it.

The result is a tree of decisions over integer expressions, which a page can evaluate without Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from typing import Any, NoReturn

from paramcount.counting.sum_weights import replace_sizes
from paramcount.errors import ParamcountError, join_place
from paramcount.huggingface.validity import Check
from paramcount.sizes import Sizes
from paramcount.symbolic.polynomials import Decisions, Polynomial, answer_by, make_symbols, make_tree
from paramcount.symbolic.trees import Literal, Tree, TreeOperation, evaluate, list_names, replace_names, to_json

MOST_WAYS = 300  # through one check
PLACEHOLDER = re.compile("<<([0-9]+)>>")
PASSES = Literal(None)


class NoConditionsError(Exception):
    """A check depends on more than comparisons of integer expressions. `paths`: the sizes whose values it used."""

    def __init__(self, paths: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(paths)))
        self.paths = paths


class SymbolicRun(Decisions):
    """One way through a check: the decisions to take first, and those that were taken.

    Args:
        sizes: The values that sizes have in the model.
        decisions: What to decide first.
    """

    explores = True

    def __init__(self, sizes: Mapping[str, int], decisions: tuple[bool, ...]) -> None:
        super().__init__(None)
        self.sizes, self.given = sizes, decisions
        self.taken: list[tuple[Tree, bool]] = []
        self.texts: list[Tree] = []  # expressions that a text contains
        self.used: set[str] = set()  # sizes whose value the check used itself
        self.quotients: dict[str, Tree] = {}  # {the name of a symbol: what it stands for}

    def decide(self, difference: Polynomial) -> bool:
        """Whether a polynomial is zero on this way."""
        return self.choose("=", *difference.split_sides())

    def choose(self, sign: str, left: object, right: object) -> bool:
        """Whether a comparison holds on this way."""
        condition = TreeOperation(sign, (self.make_tree(left), self.make_tree(right)))
        if not any(True for _ in list_names(condition)):
            return bool(evaluate(condition, {}))
        for tree, decision in self.taken:
            if tree == condition:
                return decision
        n = len(self.taken)
        decision = self.given[n] if n < len(self.given) else True
        self.taken.append((condition, decision))
        return decision

    def operate(self, sign: str, symbol: Polynomial, *operands: Any) -> Any:
        """The result of an operation that polynomials do not have: a decision, or a new symbol for a quotient."""
        match sign, operands:
            case ("<", (left, int() | Polynomial() as right)):
                return self.choose("<", left, right)
            case (">", (left, int() | Polynomial() as right)):
                return self.choose("<", right, left)
            case ("<=" | ">=", (left, right)):
                return not self.operate("<" if sign == ">=" else ">", symbol, left, right)
            case ("true", _):
                return symbol != 0
            case ("integer", _):
                return self.use(symbol)
            case ("trunc", _):
                return symbol
            case ("power", (_, 2)):
                return symbol * symbol
            case ("//", (left, 1)):
                return left
            case ("//" | "%", (int() | Polynomial() as left, int() | Polynomial() as right)):
                return self.define(TreeOperation(sign, (self.make_tree(left), self.make_tree(right))))
            case ("share", (_, float() as share)):
                return SymbolicShare(self, symbol, share)
            case _:
                return self.refuse(symbol)

    def define(self, tree: Tree) -> Polynomial:
        """A symbol for an expression that is no polynomial."""
        name = repr(tree)
        self.quotients[name] = tree
        return Polynomial({((name, 1),): 1})

    def make_tree(self, value: object) -> Tree:
        """An integer or a symbol as an expression of sizes."""
        tree = make_tree(value)
        return replace_names(tree, lambda name: self.quotients.get(name, name)) if self.quotients else tree

    def use(self, symbol: Polynomial) -> int:
        """The value of a symbol in the model, whose sizes then are no longer free."""
        tree = self.make_tree(symbol)
        self.used |= set(list_names(tree))
        return evaluate(tree, self.sizes) or 0

    def describe(self, symbol: Polynomial) -> str:
        self.texts.append(self.make_tree(symbol))
        return f"<<{len(self.texts) - 1}>>"

    def refuse(self, symbol: Polynomial) -> NoReturn:
        raise NoConditionsError(frozenset(list_names(self.make_tree(symbol))))


class SymbolicShare:
    """A size times a number that is no integer, which can only be rounded down."""

    def __init__(self, run: SymbolicRun, size: Polynomial, share: float) -> None:
        self.run, self.size, self.share = run, size, share

    def __trunc__(self) -> Polynomial:
        return self.run.define(TreeOperation("share", (self.run.make_tree(self.size), self.share)))

    def __int__(self) -> int:
        return self.run.refuse(self.size)


def derive_conditions(check: Check, sizes: Sizes, varying: frozenset[str]) -> Tree:
    """A check as a tree: a Literal of None if the sizes pass, of {"where", "text"} if they do not, or an "if" of trees.

    The text of an error is a list of strings and of [expression]. `varying`: the paths of the sizes that vary.

    Raises: NoConditionsError with the sizes that must not vary for the check to be such a tree.
    """
    c, numbers = make_symbolic(sizes, varying)
    return follow_all(lambda run: apply(check, c, run), numbers)


def make_symbolic(sizes: Sizes, varying: Container[str]) -> tuple[Sizes, dict[str, int]]:
    """The sizes with a symbol in place of each that varies, and the values of these: {path: value}."""
    numbers: dict[str, int] = {}

    def make_symbol(path: str, value: Any) -> Any:
        if path not in varying:
            return value
        numbers[path] = value
        return make_symbols(path)[0]

    return replace_sizes(sizes, make_symbol), numbers


def follow_all(function: Callable[[SymbolicRun], Tree], sizes: Mapping[str, int] = {}) -> Tree:
    """The results of all ways through a function as a tree of conditions. `sizes`: the values of the symbols.

    Raises: NoConditionsError if there are too many ways.
    """
    ways = 0

    def follow(decisions: tuple[bool, ...]) -> Tree:
        nonlocal ways
        ways += 1
        run = SymbolicRun(sizes, decisions)
        with answer_by(run):
            result = function(run)
        return unfold(run, len(decisions), result)

    def unfold(run: SymbolicRun, n: int, result: Tree) -> Tree:
        if n == len(run.taken):
            return result
        if ways > MOST_WAYS:
            raise NoConditionsError(frozenset(name for tree, _ in run.taken for name in list_names(tree)))
        condition, decision = run.taken[n]
        before = tuple(taken for _, taken in run.taken[:n])
        if_true, if_false = unfold(run, n + 1, result), follow((*before, not decision))
        return if_true if if_true == if_false else TreeOperation("if", (condition, if_true, if_false))

    return follow(())


def apply(check: Check, symbolic: Any, run: SymbolicRun) -> Tree:
    """The error that a check raises on its way, as data; PASSES if it raises none."""
    try:
        check(symbolic)
    except ParamcountError as error:
        text = join_place(error.where, error.found) if error.where else error.found
        return Literal({"where": error.where, "text": split_text(text, run.texts)})
    if run.used:
        raise NoConditionsError(frozenset(run.used))
    return PASSES


def split_text(text: str, trees: list[Tree]) -> list[Any]:
    """A text as strings and expressions, each of which is in a list of its own."""
    pieces = PLACEHOLDER.split(text)
    return [[to_json(trees[int(piece)])] if i % 2 else piece for i, piece in enumerate(pieces) if piece]
