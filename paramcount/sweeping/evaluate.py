"""Polynomials at many points: int64 arrays that broadcast, or Python ints if a value may exceed int64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcount.symbolic.arrays import LARGEST_INT64
from paramcount.symbolic.polynomials import Polynomial

Terms = Mapping[tuple[tuple[str, int], ...], int]  # {((size, power), ...): coefficient}


def evaluate_polynomial(formula: Polynomial | int, values: Mapping[str, Any]) -> Any:
    """The value of a polynomial at every point: an int64 array, or an array of Python ints if a value may exceed int64.

    `values`: int64 arrays of positive numbers, by name. Shape: those of the sizes in the polynomial, broadcast.
    """
    import numpy as np

    if isinstance(formula, int) or not formula.names:
        constant = formula if isinstance(formula, int) else formula.substitute({})
        return np.asarray(constant, dtype=object if constant > LARGEST_INT64 else "int64")
    largest = {name: int(values[name].max()) for name in formula.names}
    magnitude = Polynomial({monomial: abs(c) for monomial, c in formula.terms.items()}).substitute(largest)
    if magnitude > LARGEST_INT64:
        values = {name: values[name].astype(object) for name in formula.names}
    return evaluate_terms(formula.terms, values)


def evaluate_terms(terms: Terms, values: Mapping[str, Any]) -> Any:
    """The sum of the terms, by Horner's rule: the size whose array is widest is multiplied last and least often."""
    names = {name for monomial in terms for name, _ in monomial}
    if not names:
        return terms.get((), 0)
    name = min(names, key=lambda name: (find_degree(terms, name), -values[name].size, -count_terms(terms, name), name))
    by_power: dict[int, dict[tuple[tuple[str, int], ...], int]] = {}
    for monomial, c in terms.items():
        rest = tuple(factor for factor in monomial if factor[0] != name)
        by_power.setdefault(dict(monomial).get(name, 0), {})[rest] = c
    result: Any = 0
    for power in range(max(by_power), -1, -1):
        if power in by_power:
            result = result + evaluate_terms(by_power[power], values)
        if power:
            result = result * values[name]
    return result


def find_degree(terms: Terms, name: str) -> int:
    """The highest power of a size."""
    return max(dict(monomial).get(name, 0) for monomial in terms)


def count_terms(terms: Terms, name: str) -> int:
    """How many terms a size is in."""
    return sum(name in dict(monomial) for monomial in terms)
