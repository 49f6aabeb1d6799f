"""The factored form of a polynomial: common factors first, numbers of layers and experts before dimensions.

It is a tree of sums and products, which can be printed with names, with their values, or in LaTeX.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from paramcount.symbolic.trees import Tree, TreeOperation, multiply, raise_power

Monomial = tuple[tuple[str, int], ...]  # (("d_model", 2), ("n_layers", 1)): names in order, powers from 1
Terms = Mapping[Monomial, int]


# ---- the tree


def factor(terms: Terms) -> Tree:
    """The terms with common factors taken out recursively. Only factors that divide every term are taken out.

    A product is a number, names and sums, in this order; a negative number subtracts.
    """
    return _factor(tuple(terms.items()))


@lru_cache(maxsize=2**16)  # the tensors and steps of a model have few different sizes
def _factor(terms: tuple[tuple[Monomial, int], ...]) -> Tree:
    nonzero = {monomial: n for monomial, n in terms if n}
    if len(nonzero) < 2:
        return next((_multiply(n, monomial) for monomial, n in nonzero.items()), 0)
    number, common, rest = _take_common_factor(nonzero)
    factors = _split_proportional(rest)
    if factors:  # neither has a common factor, or the product would have it too
        return _multiply(number, common, *map(_group_terms, factors))
    return _multiply(number, common, _group_terms(rest))


def _multiply(number: int, names: Monomial, *sums: Tree) -> Tree:
    return multiply(number, *(raise_power(name, power) for name, power in names), *sums)


def _split_product(tree: Tree) -> tuple[int, Monomial, list[TreeOperation]]:
    """The number, the names with their powers and the sums of a product."""
    number = 1
    names: list[tuple[str, int]] = []
    sums: list[TreeOperation] = []
    for operand in tree.operands if isinstance(tree, TreeOperation) and tree.sign == "*" else (tree,):
        match operand:
            case TreeOperation("power", (str() as name, int() as power)):
                names.append((name, power))
            case TreeOperation():
                sums.append(operand)
            case str():
                names.append((operand, 1))
            case int():
                number = operand
    return number, tuple(names), sums


def _list_products(tree: Tree) -> tuple[Tree, ...]:
    return tree.operands if isinstance(tree, TreeOperation) and tree.sign == "+" else (tree,)


def _take_common_factor(terms: Terms) -> tuple[int, Monomial, Terms]:
    """The greatest common factor of all terms, as a number and powers, and the terms divided by it."""
    number = gcd(*terms.values())
    if all(n < 0 for n in terms.values()):
        number = -number
    powers = dict(next(iter(terms)))
    for monomial in terms:
        own = dict(monomial)
        powers = {name: min(power, own[name]) for name, power in powers.items() if name in own}
    rest = {_divide(monomial, powers): n // number for monomial, n in terms.items()}
    return number, tuple(sorted(powers.items())), rest


def _divide(monomial: Monomial, powers: Mapping[str, int]) -> Monomial:
    return tuple((name, power - powers.get(name, 0)) for name, power in monomial if power > powers.get(name, 0))


def _split_proportional(terms: Terms) -> tuple[Terms, Terms] | None:
    """The terms as a product of two factors, if possible: one in layers and experts, one in anything else."""
    by_count: dict[Monomial, dict[Monomial, int]] = {}
    for monomial, n in terms.items():
        counts = tuple(pair for pair in monomial if get_rank(pair[0]) <= EXPERTS)
        by_count.setdefault(counts, {})[tuple(pair for pair in monomial if get_rank(pair[0]) > EXPERTS)] = n
    first, *others = by_count.values()
    if not others or len(first) == 1:
        return None
    divisor = gcd(*first.values()) * (-1 if all(n < 0 for n in first.values()) else 1)
    dimensions = {monomial: n // divisor for monomial, n in first.items()}
    multiples: dict[Monomial, int] = {}
    for counts, rest in by_count.items():
        monomial, n = next(iter(dimensions.items()))
        multiple = rest.get(monomial, 0) // n
        if rest != {monomial: multiple * n for monomial, n in dimensions.items()}:
            return None
        multiples[counts] = multiple
    return multiples, dimensions


def _group_terms(terms: Terms) -> Tree:
    """Terms without a common factor, with those of the most frequent name grouped in brackets."""
    frequency = Counter(name for monomial in terms for name, _ in monomial)
    repeated = [name for name, n in frequency.items() if n > 1]
    if not repeated:
        return _add(_multiply(n, monomial) for monomial, n in terms.items())
    name = min(repeated, key=lambda name: (get_rank(name) != LAYERS, -frequency[name], rank_name(name)))
    group = {monomial: n for monomial, n in terms.items() if name in dict(monomial)}
    others = {monomial: n for monomial, n in terms.items() if monomial not in group}
    return _add([*_list_products(factor(group)), *(_list_products(factor(others)) if others else ())])


def _add(products: Iterable[Tree]) -> Tree:
    return TreeOperation("+", tuple(sorted(products, key=_make_sort_key)))


def _make_sort_key(product: Tree) -> tuple[bool, int, bool, list[tuple[int, str]], int]:
    """The sort key of a product in a sum: positive first, then by degree, then by name."""
    number, names, sums = _split_product(product)
    degree = sum(power for _, power in names) + sum(max(_get_degree(sum_), 1) for sum_ in sums)
    return number < 0, -degree, not sums, sorted(rank_name(name) for name, _ in names), -abs(number)


def _get_degree(tree: Tree) -> int:
    products = map(_split_product, _list_products(tree))
    return max(sum(power for _, power in names) + sum(map(_get_degree, sums)) for _, names, sums in products)


# ---- the order of factors

LAYERS, EXPERTS, ROWS, MODEL_DIMENSION, NUMBERS, DIMENSIONS = range(6)


@lru_cache(maxsize=2**12)
def get_rank(name: str) -> int:
    """The rank of a factor: layers, experts, table rows, model dimension, other numbers, other dimensions."""
    last = name.rpartition(".")[2]
    if last.endswith(("layers", " layer")):
        return LAYERS
    if last.startswith("n_") and last.endswith("experts"):
        return EXPERTS
    if last in ("vocab_size", "n_positions"):
        return ROWS
    if last == "d_model":
        return MODEL_DIMENSION
    return NUMBERS if last.startswith("n_") else DIMENSIONS


def rank_name(name: str) -> tuple[int, str]:
    """The sort key of a factor: its rank, then its name."""
    return get_rank(name), name


# ---- printing


class Style(NamedTuple):
    """How to print the tree."""

    number: Callable[[int], str]
    name: Callable[[str], str]
    words: Callable[[str], str]  # the unit of a number: "mamba layers" in "28 mamba layers"
    power: Callable[[str, int], str]
    times: str  # between the factors of a lone product
    tight: str  # between the factors of a product in a sum
    minus: str
    brackets: tuple[str, str]


SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def group_digits(number: int) -> str:
    """A number with digits in groups of three."""
    return f"{number:,}"


TEXT = Style(
    group_digits,
    str,
    lambda words: " " + words,
    lambda base, power: base + str(power).translate(SUPERSCRIPT),
    " · ",
    "·",
    "−",
    ("(", ")"),
)


def format_latex_number(number: int) -> str:
    """A number in LaTeX math, with digits in groups of three."""
    return f"{number:,}".replace(",", "{,}")


def escape_name(text: str) -> str:
    """Text escaped for LaTeX math; characters that math fonts may lack become spaces."""
    return re.sub(r"[^A-Za-z0-9.,:+\-/()' ]", lambda match: "\\" + match[0] if match[0] in "_&%$#{}" else " ", text)


def format_latex_name(name: str) -> str:
    """A size in LaTeX math: n_kv_heads becomes n with a subscript; other names are upright."""
    first, _, rest = name.partition("_")
    if len(first) == 1 and rest and "." not in name:
        return rf"{first}_{{\mathrm{{{escape_name(rest)}}}}}"
    return rf"\mathrm{{{escape_name(name)}}}"


LATEX = Style(
    format_latex_number,
    format_latex_name,
    lambda words: rf"\ \text{{{escape_name(words)}}}",
    lambda base, power: f"{{{base}}}^{{{power}}}",
    r" \cdot ",
    r" \cdot ",
    "-",
    ("(", ")"),
)


def substitute_values(style: Style, values: Mapping[str, int]) -> Style:
    """The style with values instead of names."""
    return style._replace(name=lambda name: style.number(values[name]), words=lambda words: "")


def format_formula(tree: Tree, style: Style = TEXT) -> str:
    """The tree as text. Only a lone product has spaces between its factors."""
    products = _list_products(tree)
    text = ""
    for product in products:
        sign = style.minus if _split_product(product)[0] < 0 else "+"
        text += f" {sign} " if text else sign.replace("+", "")
        text += _format_product(product, style, len(products) == 1)
    return text


def _format_product(product: Tree, style: Style, is_alone: bool) -> str:
    """The factors in order: layers and experts, the coefficient, the rest; inside a sum the coefficient comes first."""
    number, names, sums = _split_product(product)
    factors = [((*rank_name(name), 0), _format_power(name, power, style, is_alone)) for name, power in names]
    for sum_ in sums:
        left, right = style.brackets
        factors.append(((_rank_bracket(sum_), "", 1), left + format_formula(sum_, style) + right))
    if abs(number) != 1 or not factors:
        factors.append(((EXPERTS if is_alone else -1, "~", 0), style.number(abs(number))))
    ordered = [text for _, text in sorted(factors, key=lambda factor: factor[0])]
    return (style.times if is_alone else style.tight).join(ordered)


def _format_power(name: str, power: int, style: Style, is_alone: bool) -> str:
    if name[0].isdigit():
        number, _, words = name.partition(" ")
        base = style.number(int(number.replace(",", ""))) + (style.words(words) if is_alone and power == 1 else "")
    else:
        base = style.name(name)
    return base if power == 1 else style.power(base, power)


def _rank_bracket(sum_: TreeOperation) -> int:
    """The rank of a bracket: among layers and experts if it contains nothing else, otherwise last."""
    products = list(map(_split_product, sum_.operands))
    ranks = [get_rank(name) for _, names, _ in products for name, _ in names]
    is_nested = any(sums for *_, sums in products)
    if is_nested or max(ranks, default=LAYERS) > EXPERTS:
        return DIMENSIONS + 1
    return min(ranks, default=LAYERS)
