"""Factored form of a polynomial: common factors first, numbers of layers and experts before dimensions.

The result is a tree of sums and products, which can be printed with names, with their values, or in LaTeX.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import gcd
from typing import NamedTuple

Monomial = tuple[tuple[str, int], ...]  # (("d_model", 2), ("n_layers", 1)): names in order, powers from 1
Terms = Mapping[Monomial, int]


class Product(NamedTuple):
    """An integer coefficient times powers of names times sums."""

    number: int
    names: Monomial = ()
    sums: tuple[Sum, ...] = ()


class Sum(NamedTuple):
    """A sum of products; a negative coefficient subtracts."""

    products: tuple[Product, ...]


# ---- the tree


def factor(terms: Terms) -> Sum:
    """The terms with common factors taken out recursively. Only factors that divide every term are taken out."""
    left = {monomial: n for monomial, n in terms.items() if n}
    if not left:
        return Sum(())
    number, shared, rest = _common(left)
    if len(rest) == 1:
        return Sum((Product(number, shared),))
    halves = _proportional(rest)
    if halves:  # neither has a common factor, or the product would have it too
        return Sum((Product(number, shared, (_bracket(halves[0]), _bracket(halves[1]))),))
    inner = _bracket(rest)
    return inner if number == 1 and not shared else Sum((Product(number, shared, (inner,)),))


def _common(terms: Terms) -> tuple[int, Monomial, Terms]:
    """The greatest common factor of all terms, and the terms divided by it."""
    number = gcd(*terms.values())
    if all(n < 0 for n in terms.values()):
        number = -number
    powers = dict(next(iter(terms)))
    for monomial in terms:
        own = dict(monomial)
        powers = {name: min(power, own[name]) for name, power in powers.items() if name in own}
    shared = tuple(sorted(powers.items()))
    return number, shared, {_over(monomial, powers): n // number for monomial, n in terms.items()}


def _over(monomial: Monomial, powers: Mapping[str, int]) -> Monomial:
    return tuple((name, power - powers.get(name, 0)) for name, power in monomial if power > powers.get(name, 0))


def _proportional(terms: Terms) -> tuple[Terms, Terms] | None:
    """The two factors of terms that are (a sum of numbers of layers and experts) × (a sum of anything else), if they are."""
    by_count: dict[Monomial, dict[Monomial, int]] = {}
    for monomial, n in terms.items():
        counts = tuple(pair for pair in monomial if place(pair[0]) <= EXPERTS)
        by_count.setdefault(counts, {})[tuple(pair for pair in monomial if place(pair[0]) > EXPERTS)] = n
    first, *others = by_count.values()
    if not others or len(first) == 1:
        return None
    share = gcd(*first.values()) * (-1 if all(n < 0 for n in first.values()) else 1)
    each = {monomial: n // share for monomial, n in first.items()}
    found: dict[Monomial, int] = {}
    for counts, rest in by_count.items():
        monomial, n = next(iter(each.items()))
        times = rest.get(monomial, 0) // n
        if rest != {monomial: times * n for monomial, n in each.items()}:
            return None
        found[counts] = times
    return found, each


def _bracket(terms: Terms) -> Sum:
    """Terms without a common factor, with those of the most frequent name grouped in brackets."""
    held: dict[str, int] = {}
    for monomial in terms:
        for name, _ in monomial:
            held[name] = held.get(name, 0) + 1
    often = [name for name, times in held.items() if times > 1]
    if not often:
        return Sum(tuple(sorted((Product(n, monomial) for monomial, n in terms.items()), key=_order)))
    name = min(often, key=lambda name: (place(name) != LAYERS, -held[name], rank(name)))
    holding = {monomial: n for monomial, n in terms.items() if name in dict(monomial)}
    others = {monomial: n for monomial, n in terms.items() if monomial not in holding}
    products = [*factor(holding).products, *(factor(others).products if others else ())]
    return Sum(tuple(sorted(products, key=_order)))


def _order(product: Product) -> tuple[bool, int, bool, list[tuple[int, str]], int]:
    """The sort key of a product in a sum: positive first, then by degree, then by name."""
    degree = sum(power for _, power in product.names) + sum(max(_degree(sum_), 1) for sum_ in product.sums)
    return (
        product.number < 0,
        -degree,
        not product.sums,
        sorted(rank(name) for name, _ in product.names),
        -abs(product.number),
    )


def _degree(sum_: Sum) -> int:
    return max(sum(power for _, power in product.names) + sum(map(_degree, product.sums)) for product in sum_.products)


# ---- the order of factors

LAYERS, EXPERTS, ROWS, WIDTH, MANY, OTHERS = range(6)


def place(name: str) -> int:
    """The rank of a factor: layers, experts, table rows, model dimension, other numbers, other dimensions."""
    last = name.rpartition(".")[2]
    if last.endswith(("layers", " layer")):
        return LAYERS
    if last.startswith("n_") and last.endswith("experts"):
        return EXPERTS
    return (
        ROWS
        if last in ("vocab_size", "n_positions")
        else WIDTH
        if last == "d_model"
        else MANY
        if last.startswith("n_")
        else OTHERS
    )


def rank(name: str) -> tuple[int, str]:
    return place(name), name


# ---- printing


class Style(NamedTuple):
    """How to print the tree."""

    number: Callable[[int], str]
    name: Callable[[str], str]
    words: Callable[[str], str]  # what a number counts: "28 mamba layers"
    power: Callable[[str, int], str]
    times: str  # between factors of a product on its own
    tight: str  # between factors inside a sum
    minus: str
    brackets: tuple[str, str]


SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def group_digits(number: int) -> str:
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


def latex_number(number: int) -> str:
    return f"{number:,}".replace(",", "{,}")


def escape_name(text: str) -> str:
    """Text escaped for LaTeX; other characters become blanks."""
    return re.sub(r"[^A-Za-z0-9.,:+\-/()' ]", lambda match: "\\" + match[0] if match[0] in "_&%$#{}" else " ", text)


def latex_name(name: str) -> str:
    """A size in LaTeX math: n_kv_heads becomes n with a subscript; other names are upright."""
    first, _, rest = name.partition("_")
    if len(first) == 1 and rest and "." not in name:
        return rf"{first}_{{\mathrm{{{escape_name(rest)}}}}}"
    return rf"\mathrm{{{escape_name(name)}}}"


LATEX = Style(
    latex_number,
    latex_name,
    lambda words: rf"\ \text{{{escape_name(words)}}}",
    lambda base, power: f"{{{base}}}^{{{power}}}",
    r" \cdot ",
    r" \cdot ",
    "-",
    ("(", ")"),
)


def substitute(style: Style, values: Mapping[str, int]) -> Style:
    """The style with values instead of names."""
    return style._replace(name=lambda name: style.number(values[name]), words=lambda words: "")


def format_formula(tree: Sum, style: Style = TEXT) -> str:
    """The tree as text. Only a product on its own has spaces between its factors."""
    if not tree.products:
        return style.number(0)
    alone = len(tree.products) == 1
    text = ""
    for product in tree.products:
        sign = style.minus if product.number < 0 else "+"
        text += f" {sign} " if text else sign.replace("+", "")
        text += _product(product, style, alone)
    return text


def _product(product: Product, style: Style, alone: bool) -> str:
    """The factors in order: layers and experts, the coefficient, the rest; inside a sum the coefficient comes first."""
    factors = [((*rank(name), 0), _named(name, power, style, alone)) for name, power in product.names]
    factors += [
        ((_place(sum_), "", 1), style.brackets[0] + format_formula(sum_, style) + style.brackets[1])
        for sum_ in product.sums
    ]
    if abs(product.number) != 1 or not factors:
        factors.append(((EXPERTS if alone else -1, "~", 0), style.number(abs(product.number))))
    return (style.times if alone else style.tight).join(
        text for _, text in sorted(factors, key=lambda factor: factor[0])
    )


def _named(name: str, power: int, style: Style, alone: bool) -> str:
    if name[0].isdigit():
        number, _, words = name.partition(" ")
        base = style.number(int(number.replace(",", ""))) + (style.words(words) if alone and power == 1 else "")
    else:
        base = style.name(name)
    return base if power == 1 else style.power(base, power)


def _place(sum_: Sum) -> int:
    """The rank of a bracket: among the counts if it has nothing else, otherwise last."""
    places = [place(name) for product in sum_.products for name, _ in product.names]
    return (
        min(places, default=LAYERS)
        if max(places, default=LAYERS) <= EXPERTS and not any(product.sums for product in sum_.products)
        else OTHERS + 1
    )
