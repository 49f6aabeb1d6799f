"""The checks of sizes as data: each check runs with symbols in place of sizes, once for every way through it.

The result is a tree of decisions over integer expressions, which a page can evaluate without Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import trunc
from typing import Any, NoReturn

from paramcount.counting.sum_weights import replace_sizes
from paramcount.errors import ParamcountError, join_place
from paramcount.sizes import Sizes
from paramcount.sweeping.validity import Check

MOST_WAYS = 300  # through one check
Tree = Any  # an int, the path of a size, [operator, left, right], or ["share", tree, a number] rounded down
PLACEHOLDER = re.compile("<<([0-9]+)>>")


class NoConditionsError(Exception):
    """A check depends on more than comparisons of integer expressions. `paths`: the sizes whose values it used."""

    def __init__(self, paths: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(paths)))
        self.paths = paths


class Run:
    """One way through a check: the decisions to take first, and those that were taken."""

    def __init__(self, decisions: tuple[bool, ...]) -> None:
        self.given = decisions
        self.taken: list[tuple[Tree, bool]] = []
        self.texts: list[Tree] = []  # expressions that a text contains
        self.used: set[str] = set()  # paths of the sizes whose value the check used itself

    def decide(self, condition: Tree) -> bool:
        """Which way the check goes."""
        for tree, decision in self.taken:
            if tree == condition:
                return decision
        n = len(self.taken)
        decision = self.given[n] if n < len(self.given) else True
        self.taken.append((condition, decision))
        return decision

    def add_text(self, tree: Tree) -> str:
        self.texts.append(tree)
        return f"<<{len(self.texts) - 1}>>"


class Symbol:
    """An integer expression of sizes, with the value that it has in the model."""

    def __init__(self, run: Run, tree: Tree, value: int) -> None:
        self.run, self.tree, self.value = run, tree, value

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return int  # isinstance(size, int) holds

    def combine(self, operator: str, other: object, *, swapped: bool = False) -> Any:
        if operator == "*" and isinstance(other, float):
            return Share(self, other)
        if not isinstance(other, int):
            return NotImplemented
        tree, value = get_tree(other), get_value(other)
        left, right = ((tree, value), (self.tree, self.value))[:: 1 if swapped else -1]
        return Symbol(self.run, [operator, left[0], right[0]], calculate(operator, left[1], right[1]))

    def compare(self, operator: str, other: object) -> bool:
        if not isinstance(other, int):
            return operator == "!="
        return self.run.decide([operator, self.tree, get_tree(other)])

    def use(self) -> int:
        """Its value in the model, which then is no longer free."""
        self.run.used |= list_paths(self.tree)
        return self.value

    def __add__(self, other: object) -> Any:
        return self.combine("+", other)

    def __radd__(self, other: object) -> Any:
        return self.combine("+", other, swapped=True)

    def __sub__(self, other: object) -> Any:
        return self.combine("-", other)

    def __rsub__(self, other: object) -> Any:
        return self.combine("-", other, swapped=True)

    def __mul__(self, other: object) -> Any:
        return self.combine("*", other)

    def __rmul__(self, other: object) -> Any:
        return self.combine("*", other, swapped=True)

    def __floordiv__(self, other: object) -> Any:
        return self.combine("//", other)

    def __rfloordiv__(self, other: object) -> Any:
        return self.combine("//", other, swapped=True)

    def __mod__(self, other: object) -> Any:
        return self.combine("%", other)

    def __rmod__(self, other: object) -> Any:
        return self.combine("%", other, swapped=True)

    def __trunc__(self) -> Symbol:
        return self

    def __pow__(self, power: object) -> Any:
        if power != 2:
            self.refuse()
        return self * self

    def __neg__(self) -> Any:
        return 0 - self

    def __eq__(self, other: object) -> bool:
        return self.compare("==", other)

    def __ne__(self, other: object) -> bool:
        return self.compare("!=", other)

    def __lt__(self, other: object) -> bool:
        return self.compare("<", other)

    def __le__(self, other: object) -> bool:
        return self.compare("<=", other)

    def __gt__(self, other: object) -> bool:
        return self.compare(">", other)

    def __ge__(self, other: object) -> bool:
        return self.compare(">=", other)

    def __bool__(self) -> bool:
        return self.run.decide(["!=", self.tree, 0])

    def __index__(self) -> int:
        return self.use()

    __int__ = __index__

    def __hash__(self) -> int:
        return hash(self.use())

    def __str__(self) -> str:
        return self.run.add_text(self.tree)

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return str(self)

    def refuse(self, *_: object) -> NoReturn:
        raise NoConditionsError(list_paths(self.tree))

    __truediv__ = __rtruediv__ = __rpow__ = __and__ = __rand__ = __or__ = __float__ = refuse
    __lshift__ = __rshift__ = __divmod__ = __round__ = refuse


class Share:
    """A size times a number that is no integer, which can only be rounded down."""

    def __init__(self, size: Symbol, share: float) -> None:
        self.size, self.share = size, share

    def __trunc__(self) -> Symbol:
        size = self.size
        return Symbol(size.run, ["share", size.tree, self.share], trunc(size.value * self.share))

    def __int__(self) -> int:
        return self.size.refuse()


def get_tree(value: Any) -> Tree:
    """The expression of a symbol or an integer; a symbol claims to be an integer."""
    return value.tree if type(value) is Symbol else int(value)


def get_value(value: Any) -> int:
    """The value that a symbol or an integer has in the model."""
    n: int = value.value if type(value) is Symbol else int(value)
    return n


def calculate(operator: str, left: int, right: int) -> int:
    """The value of an expression; 0 if it divides by zero, where the page finds an error first."""
    if operator in ("//", "%"):
        return (left // right if operator == "//" else left % right) if right else 0
    return {"+": left + right, "-": left - right, "*": left * right}[operator]


def list_paths(tree: Tree) -> frozenset[str]:
    """The paths of the sizes in an expression."""
    if isinstance(tree, list):
        return frozenset().union(*map(list_paths, tree[1:]))
    return frozenset((tree,)) if isinstance(tree, str) else frozenset()


def derive_conditions(check: Check, sizes: Sizes, varying: frozenset[str]) -> Tree:
    """A check as a tree: None if the sizes pass, {"where", "text"} if they do not, or [condition, tree, tree].

    The text of an error is a list of strings and of [expression]. `varying`: the paths of the sizes that vary.

    Raises: NoConditionsError with the sizes that must not vary for the check to be such a tree.
    """

    def follow(run: Run) -> Tree:
        c = replace_sizes(sizes, lambda path, value: Symbol(run, path, value) if path in varying else value)
        return apply(check, c, run)

    return follow_all(follow)


def follow_all(function: Callable[[Run], Tree]) -> Tree:
    """The results of all ways through a function as a tree of [condition, tree, tree].

    Raises: NoConditionsError if there are too many ways.
    """
    ways = 0

    def follow(decisions: tuple[bool, ...]) -> Tree:
        nonlocal ways
        ways += 1
        run = Run(decisions)
        return unfold(run, len(decisions), function(run))

    def unfold(run: Run, n: int, result: Tree) -> Tree:
        if n == len(run.taken):
            return result
        if ways > MOST_WAYS:
            raise NoConditionsError(frozenset().union(*(list_paths(tree) for tree, _ in run.taken)))
        condition, decision = run.taken[n]
        before = tuple(taken for _, taken in run.taken[:n])
        if_true, if_false = unfold(run, n + 1, result), follow((*before, not decision))
        return if_true if if_true == if_false else [condition, if_true, if_false]

    return follow(())


def apply(check: Check, symbolic: Any, run: Run) -> Tree:
    """The error that a check raises on its way, as data; None if it raises none."""
    try:
        check(symbolic)
    except ParamcountError as error:
        text = join_place(error.where, error.found) if error.where else error.found
        return {"where": error.where, "text": split_text(text, run.texts)}
    if run.used:
        raise NoConditionsError(frozenset(run.used))
    return None


def split_text(text: str, trees: list[Tree]) -> list[Tree]:
    """A text as strings and expressions, each of which is in a list of its own."""
    pieces = PLACEHOLDER.split(text)
    return [[trees[int(piece)]] if i % 2 else piece for i, piece in enumerate(pieces) if piece]
