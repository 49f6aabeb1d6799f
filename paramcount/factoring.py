"""A polynomial as people write it: the common factor first, then the bracket; how many layers and experts before how wide.

The terms become a small tree of sums and products, which is printed with names, with the numbers they stand for, or in LaTeX.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import gcd
from typing import NamedTuple

Monomial = tuple[tuple[str, int], ...]  # (("d_model", 2), ("n_layers", 1)): names in order, powers from 1
Terms = Mapping[Monomial, int]


class Product(NamedTuple):
    """A whole number times powers of names times sums."""

    number: int
    names: Monomial = ()
    sums: tuple[Sum, ...] = ()


class Sum(NamedTuple):
    """Products that are added or, where their number is negative, taken away."""

    products: tuple[Product, ...]


# ---- the tree


def factored(terms: Terms) -> Sum:
    """The terms with what they share taken out, and so on within what remains. Nothing is guessed: what is taken out divides every term."""
    left = {monomial: n for monomial, n in terms.items() if n}
    if not left:
        return Sum(())
    number, shared, rest = _common(left)
    if len(rest) == 1:
        return Sum((Product(number, shared),))
    halves = _proportional(rest)
    if halves:  # neither shares anything within, as they would share it together
        return Sum((Product(number, shared, (_bracket(halves[0]), _bracket(halves[1]))),))
    inner = _bracket(rest)
    return inner if number == 1 and not shared else Sum((Product(number, shared, (inner,)),))


def _common(terms: Terms) -> tuple[int, Monomial, Terms]:
    """What all terms share, and what remains of each; the remains begin with a positive one."""
    number = gcd(*terms.values())
    if all(n < 0 for n in terms.values()):
        number = -number
    powers = dict(min(terms, key=len))
    for monomial in terms:
        own = dict(monomial)
        powers = {name: min(power, own[name]) for name, power in powers.items() if name in own}
    shared = tuple(sorted(powers.items()))
    return number, shared, {_over(monomial, powers): n // number for monomial, n in terms.items()}


def _over(monomial: Monomial, powers: Mapping[str, int]) -> Monomial:
    return tuple((name, power - powers.get(name, 0)) for name, power in monomial if power > powers.get(name, 0))


def _proportional(terms: Terms) -> tuple[Terms, Terms] | None:
    """Terms as a sum of numbers of layers and experts times a sum of all else, where they are such a product."""
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
        times, left = divmod(rest.get(monomial, 0), n)
        if left or rest != {monomial: times * n for monomial, n in each.items()}:
            return None
        found[counts] = times
    return found, each


def _bracket(terms: Terms) -> Sum:
    """Terms that share nothing: those with the name that most of them hold make a bracket of their own."""
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
    products = [*factored(holding).products, *(factored(others).products if others else ())]
    return Sum(tuple(sorted(products, key=_order)))


def _order(product: Product) -> tuple[bool, int, bool, list[tuple[int, str]], int]:
    """What is added before what is taken away, high powers first, then by name."""
    degree = sum(power for _, power in product.names) + sum(max(_degree(sum_), 1) for sum_ in product.sums)
    return product.number < 0, -degree, not product.sums, sorted(rank(name) for name, _ in product.names), -abs(product.number)


def _degree(sum_: Sum) -> int:
    return max(sum(power for _, power in product.names) + sum(map(_degree, product.sums)) for product in sum_.products)


# ---- the order of factors

LAYERS, EXPERTS, ROWS, WIDTH, MANY, OTHERS = range(6)


def place(name: str) -> int:
    """Where people look for a factor: layers, experts, rows of a table, the model's width, other numbers, other widths."""
    last = name.rpartition(".")[2]
    if last.endswith("layers"):
        return LAYERS
    if last.startswith("n_") and last.endswith("experts"):
        return EXPERTS
    return ROWS if last in ("vocab_size", "n_positions") else WIDTH if last == "d_model" else MANY if last.startswith("n_") else OTHERS


def rank(name: str) -> tuple[int, str]:
    return place(name), name


def _counts_alone(sum_: Sum) -> bool:
    """Whether a bracket says how many there are: n_layers − n_dense_layers."""
    return all(not product.sums and all(place(name) <= EXPERTS for name, _ in product.names) for product in sum_.products)


# ---- printing


class Style(NamedTuple):
    """How the tree is printed."""

    number: Callable[[int], str]
    name: Callable[[str], str]
    power: Callable[[str, int], str]
    times: str  # between factors that stand alone
    tight: str  # between those of a sum
    minus: str
    brackets: tuple[str, str]


SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def grouped(number: int) -> str:
    return f"{number:,}"


TEXT = Style(grouped, str, lambda base, power: base + str(power).translate(SUPERSCRIPT), " · ", "·", "−", ("(", ")"))


def latex_number(number: int) -> str:
    return f"{number:,}".replace(",", "{,}")


def latex_name(name: str) -> str:
    """n_kv_heads as n with what it counts below it; what is no such name upright."""
    first, _, rest = name.partition("_")
    upright = re.sub(r"[^A-Za-z0-9.,:+\- ]", lambda match: "\\" + match[0] if match[0] in "_&%$#{}" else " ", rest if len(first) == 1 and rest else name)
    if len(first) == 1 and rest and "." not in name:
        return rf"{first}_{{\mathrm{{{upright}}}}}"
    return rf"\mathrm{{{upright}}}"


LATEX = Style(latex_number, latex_name, lambda base, power: f"{{{base}}}^{{{power}}}", r" \cdot ", r" \cdot ", "-", ("(", ")"))


def written(tree: Sum, style: Style = TEXT) -> str:
    """The tree as text. A product that stands alone has room around its factors; those inside a sum have none."""
    if not tree.products:
        return style.number(0)
    alone = len(tree.products) == 1
    pieces = []
    for i, product in enumerate(tree.products):
        text = _product(product, style, alone)
        sign = style.minus if product.number < 0 else "+"
        pieces.append((sign if product.number < 0 else "") + text if i == 0 else f" {sign} {text}")
    return "".join(pieces)


def _product(product: Product, style: Style, alone: bool) -> str:
    """Layers and experts, the number, all else; inside a sum the number first."""
    names = sorted(product.names, key=lambda pair: rank(pair[0]))
    base = [(name, style.name(name) if power == 1 else style.power(style.name(name), power)) for name, power in names]
    brackets = [(sum_, style.brackets[0] + written(sum_, style) + style.brackets[1]) for sum_ in product.sums]
    first = [text for sum_, text in brackets if _counts_alone(sum_)]
    counts = [text for name, text in base if place(name) <= EXPERTS]
    rest = [text for name, text in base if place(name) > EXPERTS] + [text for sum_, text in brackets if not _counts_alone(sum_)]
    number = [style.number(abs(product.number))] if abs(product.number) != 1 or not (base or brackets) else []
    factors = [*first, *counts, *number, *rest] if alone else [*number, *first, *counts, *rest]
    return (style.times if alone else style.tight).join(factors)
