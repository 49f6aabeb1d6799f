"""Expressions compiled for many evaluations: of integers, or of int64 arrays without overflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from paramcount.symbolic.arrays import LARGEST_INT64, find_magnitude, is_array
from paramcount.symbolic.factoring import Monomial, Terms
from paramcount.symbolic.polynomials import Polynomial
from paramcount.symbolic.trees import Tree, TreeOperation, add, find_bound, list_names, multiply


def compile_trees(trees: Sequence[Tree], names: Sequence[str]) -> Callable[..., tuple[Any, ...]]:
    """The values of expressions of + - * and //, as a function of the values of `names` in this order.

    A division by zero has any value.

    >>> compile_trees([TreeOperation("*", ("n_layers", "d_model")), 7], ["d_model", "n_layers"])(768, 12)
    (9216, 7)
    """
    positions = {name: f"v{i}" for i, name in enumerate(names)}

    def write(tree: Tree) -> str:
        if not isinstance(tree, TreeOperation):
            return positions[tree] if isinstance(tree, str) else f"({int(tree):d})"  # type: ignore[arg-type]
        operands = list(map(write, tree.operands))
        if tree.sign == "//":
            return f"divide({', '.join(operands)})"
        return f"({tree.sign}{operands[0]})" if len(operands) == 1 else f"({f' {tree.sign} '.join(operands)})"

    # It consists of the names v0, v1, … and divide, of signs and of integers.
    code = f"lambda {', '.join(positions.values())}: ({''.join(f'{write(tree)}, ' for tree in trees)})"
    compiled: Callable[..., tuple[Any, ...]] = eval(code, {"__builtins__": {}, "divide": _divide})  # noqa: S307
    return compiled


def _divide(a: Any, b: Any) -> Any:
    return a // (b + (b == 0))


def evaluate_arrays(tree: Tree, values: Mapping[str, Any]) -> tuple[Any, Any]:
    """The value of an expression of + - * and //, and whether it divides by zero.

    `values`: ints or int64 arrays by name. A value that may exceed int64 is computed with Python ints, as an array of
    objects.
    """
    names = tuple(dict.fromkeys(list_names(tree)))
    found, *divisors = _compile_division(tree, names)(*_widen(tree, names, values))
    is_broken: Any = False
    for divisor in divisors:
        is_broken = is_broken | (divisor == 0)
    return found, is_broken


@lru_cache(maxsize=256)
def _compile_division(tree: Tree, names: tuple[str, ...]) -> Callable[..., tuple[Any, ...]]:
    return compile_trees([tree, *_list_divisors(tree)], names)


def _list_divisors(tree: Tree) -> list[Tree]:
    if not isinstance(tree, TreeOperation):
        return []
    inner = [divisor for operand in tree.operands for divisor in _list_divisors(operand)]
    return [*inner, *(tree.operands[1:] if tree.sign == "//" else ())]


def _widen(tree: Tree, names: Sequence[str], values: Mapping[str, Any]) -> list[Any]:
    """The values of these names, with arrays of Python ints if a value of the expression may exceed int64."""
    limits = {name: find_magnitude(values[name]) for name in names}
    if find_bound(tree, limits) <= LARGEST_INT64:
        return [values[name] for name in names]
    return [values[name].astype(object) if is_array(values[name]) else values[name] for name in names]


def evaluate_polynomial(formula: Polynomial | int, values: Mapping[str, Any]) -> Any:
    """The value of a polynomial at every point: an int64 array, or an array of Python ints if a value may exceed int64.

    `values`: int64 arrays by name. Shape: those of the sizes in the polynomial, broadcast.
    """
    import numpy as np

    names = () if isinstance(formula, int) else formula.names
    if not names:
        constant = formula if isinstance(formula, int) else formula.substitute({})
        return np.asarray(constant, dtype=object if constant > LARGEST_INT64 else "int64")
    by_width = tuple(sorted(names, key=lambda name: (-values[name].size, name)))
    widths = [values[name].size for name in by_width]
    ranks = tuple(map(widths.index, widths))
    tree, compute = _compile_terms(tuple(formula.terms.items()), by_width, ranks)  # type: ignore[union-attr]
    return compute(*_widen(tree, by_width, values))[0]


@lru_cache(maxsize=1024)
def _compile_terms(
    terms: tuple[tuple[Monomial, int], ...], names: tuple[str, ...], ranks: tuple[int, ...]
) -> tuple[Tree, Callable[..., tuple[Any, ...]]]:
    tree = arrange(dict(terms), dict(zip(names, ranks)))
    return tree, compile_trees([tree], names)


def arrange(terms: Terms, ranks: Mapping[str, int] = {}) -> Tree:
    """The terms by Horner's rule: the size with the widest array is multiplied last and least often.

    `ranks`: of the sizes by the width of their array, the widest first.
    """
    powers = [dict(monomial) for monomial in terms]
    names = set().union(*powers)
    if not names:
        return terms.get((), 0)

    def rank(name: str) -> tuple[int, int, int, str]:
        degrees = [own[name] for own in powers if name in own]
        return max(degrees), ranks.get(name, 0), -len(degrees), name

    name = min(names, key=rank)
    by_power: dict[int, dict[Monomial, int]] = {}
    for own, (monomial, c) in zip(powers, terms.items()):
        by_power.setdefault(own.get(name, 0), {})[tuple(pair for pair in monomial if pair[0] != name)] = c
    tree: Tree = 0
    for power in range(max(by_power), -1, -1):
        if power in by_power:
            tree = add(tree, arrange(by_power[power], ranks))
        if power:
            tree = multiply(tree, name)
    return tree
