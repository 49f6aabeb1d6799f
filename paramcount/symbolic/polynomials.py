"""Integer polynomials in named sizes: the counts of a declaration whose sizes are symbols.

They support only `+`, `-` and `*`. Operations that would branch on a symbol (`bool`, `<`, `range`) raise an error, and
so does `==` if the answer depends on the values of the sizes: `d_model == d_model` is True, `d_model == d_ff` neither.
`has_same_terms` compares expressions; `decide_by` lets values answer, and records the conditions under which they do.
`answer_by` lets any other `Decisions` answer, also what a polynomial does not have of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError, find_nearest, join_words, make_printable
from paramcount.symbolic import arrays
from paramcount.symbolic.factoring import LATEX, Monomial, factor, format_formula
from paramcount.symbolic.trees import Tree, add, evaluate, multiply, raise_power


class Condition(NamedTuple):
    """Whether a polynomial is zero: what code assumed when it compared two symbols.

    >>> d, f = make_symbols("d_model d_ff")
    >>> print(Condition(d - f, is_zero=False))
    d_model ≠ d_ff
    """

    difference: Polynomial
    is_zero: bool

    def substitute(self, sizes: Mapping[str, Any]) -> Condition:
        """The same condition on the symbols that replace its sizes.

        Raises: ParamcountError if numbers do not fulfil it.
        """
        difference = self.difference.substitute(sizes)
        if isinstance(difference, Polynomial) and difference.names:
            return Condition(difference, self.is_zero)
        zeros = not difference.terms if isinstance(difference, Polynomial) else difference == 0
        is_broken: Any = zeros != self.is_zero
        if is_broken.any() if arrays.is_array(is_broken) else is_broken:
            found = f"the formula is that of models with {self}"
            raise ParamcountError(found, where="evaluate", expected="the formula of a model with these sizes")
        return self

    def __str__(self) -> str:
        left, right = self.difference.split_sides()
        return f"{left} {'=' if self.is_zero else '≠'} {right}"

    def holds(self, sizes: Mapping[str, Any]) -> Any:
        """Whether sizes fulfil it: a bool, or an array of bools for arrays."""
        return (self.difference.substitute(sizes) == 0) == self.is_zero


class Decisions:
    """The values that answer comparisons of symbols, and the conditions under which the answers hold."""

    explores = False  # whether a symbol may be anything that an integer may be

    def __init__(self, values: Mapping[str, int] | None) -> None:
        self.values = values
        self.conditions: tuple[Condition, ...] = ()

    def knows(self, names: tuple[str, ...]) -> bool:
        return self.values is None or self.values.keys() >= set(names)

    def decide(self, difference: Polynomial) -> bool:
        """Whether a polynomial is zero for the values."""
        is_zero: bool = self.values is not None and difference.substitute(self.values) == 0
        if all(difference.terms != condition.difference.terms for condition in self.conditions):
            self.conditions += (Condition(difference, is_zero),)
        return is_zero

    def operate(self, sign: str, symbol: Polynomial, *operands: Any) -> Any:
        """The result of an operation other than +, - and * of a symbol, which is one of the operands.

        `sign`: that of an Operation; or "integer", "true" or "trunc", which have no other operand.
        """
        raise ParamcountError(f"{symbol} is symbolic, so code cannot depend on its value", expected="+, - and *")

    def describe(self, symbol: Polynomial) -> str:
        return format_formula(factor(symbol.terms))


NO_DECISIONS = Decisions({})
_decisions: ContextVar[Decisions] = ContextVar("decisions", default=NO_DECISIONS)


@contextmanager
def answer_by(decisions: Decisions) -> Iterator[None]:
    """Let these decisions answer what code asks of symbols."""
    token = _decisions.set(decisions)
    try:
        yield
    finally:
        _decisions.reset(token)


@contextmanager
def decide_by(values: Mapping[str, int] | None) -> Iterator[Decisions]:
    """Let these values of the sizes answer `==` between symbols. What code derives holds under the conditions only.

    `values`: None if different symbols are never equal.

    >>> d, f = make_symbols("d_model d_ff")
    >>> with decide_by({"d_model": 8, "d_ff": 8}) as decisions:
    ...     d == f
    True
    >>> decisions.conditions
    (Condition(difference=d_model − d_ff, is_zero=True),)
    """
    decisions = Decisions(values)
    with answer_by(decisions):
        yield decisions


def _operate(sign: str, *, swapped: bool = False) -> Callable[..., Any]:
    """A method of a symbol, which only some decisions answer."""

    def method(self: Polynomial, *others: Any) -> Any:
        operands = (*others, self) if swapped else (self, *others)
        return _decisions.get().operate(sign, self, *operands)

    return method


class Polynomial:
    """A polynomial with integer coefficients.

    >>> n, d = make_symbols("n_layers d_model")
    >>> p = n * (4 * d * d + 2 * d)
    >>> print(p)
    n_layers · 2 · d_model · (2·d_model + 1)
    >>> p.evaluate(n_layers=12, d_model=768)
    28329984
    """

    __slots__ = ("conditions", "terms")

    def __init__(self, terms: Mapping[Monomial, int], conditions: tuple[Condition, ...] = ()) -> None:
        self.terms: dict[Monomial, int] = {m: c for m, c in terms.items() if c}
        self.conditions = conditions  # for sizes that do not fulfil them, the count is another polynomial

    def __add__(self, other: object) -> Polynomial:
        if type(other) is int and other == 0:  # where a sum begins
            return self
        if (other := _convert(other)) is NotImplemented:
            return NotImplemented
        terms = dict(self.terms)
        for monomial, c in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + c
        return Polynomial(terms, self.conditions + other.conditions)

    def __mul__(self, number: object) -> Any:
        if type(number) is int:
            return Polynomial({monomial: c * number for monomial, c in self.terms.items()}, self.conditions)
        if (other := _convert(number)) is NotImplemented:
            return _decisions.get().operate("share", self, self, number) if isinstance(number, float) else other
        terms: dict[Monomial, int] = {}
        for a, c in self.terms.items():
            for b, d in other.terms.items():
                powers = dict(a)
                for name, power in b:
                    powers[name] = powers.get(name, 0) + power
                monomial = tuple(sorted(powers.items()))
                terms[monomial] = terms.get(monomial, 0) + c * d
        return Polynomial(terms, self.conditions + other.conditions)

    def __neg__(self) -> Polynomial:
        return self * -1  # type: ignore[no-any-return]

    def __sub__(self, other: object) -> Polynomial:
        return NotImplemented if (other := _convert(other)) is NotImplemented else self + other * -1

    def __rsub__(self, other: object) -> Polynomial:
        return NotImplemented if (other := _convert(other)) is NotImplemented else other - self

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, bool) or not (isinstance(other, (Polynomial, int)) or arrays.is_array(other)):
            return False
        difference = Polynomial((self - other).terms)
        if not difference.names:
            return not difference.terms
        decisions = _decisions.get()
        if not decisions.knows(difference.names):
            raise ParamcountError(
                f"whether {self} equals {other} depends on their values, so code cannot depend on it",
                expected="numbers; .terms compares expressions",
            )
        return decisions.decide(difference)

    def __hash__(self) -> int:
        if _decisions.get().explores:
            return hash(int(self))
        constant = self.terms.get((), 0)
        if set(self.terms) <= {()}:
            return hash(constant)
        # -1 and -2 have the same hash in Python, and a dictionary compares what has the same hash.
        return hash(frozenset((monomial, 2 * coefficient + 1) for monomial, coefficient in self.terms.items()))

    __bool__, __trunc__ = _operate("true"), _operate("trunc")
    __index__ = __int__ = _operate("integer")
    __lt__, __le__, __gt__, __ge__ = map(_operate, ("<", "<=", ">", ">="))
    __floordiv__, __rfloordiv__ = _operate("//"), _operate("//", swapped=True)
    __mod__, __rmod__ = _operate("%"), _operate("%", swapped=True)
    __pow__, __rpow__ = _operate("power"), _operate("power", swapped=True)
    __float__ = __round__ = __iter__ = __truediv__ = __rtruediv__ = __divmod__ = __rdivmod__ = _operate("")
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _operate("")
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _operate("")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sizes that it depends on, those of its conditions included."""
        names = {name for monomial in self.terms for name, _ in monomial}
        return tuple(sorted(names.union(*(condition.difference.names for condition in self.conditions))))

    def evaluate(self, **sizes: Any) -> Any:
        """Its value for these sizes: ints, int64 arrays or symbols.

        Raises: ParamcountError if a size is missing or unknown, or if the sizes do not fulfil its conditions.
        """
        for name in self.names:
            if name not in sizes:
                raise ParamcountError(f"{name} is missing", where="evaluate", expected=join_words(self.names, "and"))
        for name in sizes:
            if name not in self.names:
                raise ParamcountError(
                    f"unknown size {name}", where="evaluate", choices=self.names, nearest=find_nearest(name, self.names)
                )
        values = arrays.check_sizes(sizes, Polynomial, least=None)
        magnitude = Polynomial({monomial: abs(c) for monomial, c in self.terms.items()})
        arrays.check_overflow(magnitude.substitute, values)
        conditions = tuple(condition.substitute(values) for condition in self.conditions)
        total = self.substitute(values)
        return Polynomial(total.terms, conditions) if isinstance(total, Polynomial) else total

    def substitute(self, sizes: Mapping[str, Any]) -> Any:
        """Its value for these sizes, without the checks of `evaluate`."""
        return evaluate(self.expand(), sizes)

    def expand(self) -> Tree:
        """Its sum of products as a tree."""
        terms = self.terms.items()
        return add(*(multiply(c, *(raise_power(name, power) for name, power in names)) for names, c in terms))

    def factor(self) -> Tree:
        """Its factored form as a tree, for people and for pages."""
        return factor(self.terms)

    def split_sides(self) -> tuple[Polynomial, Polynomial]:
        """Two polynomials of which it is the difference, if possible without minus signs."""
        if len(self.terms) == 1 and () not in self.terms:
            return Polynomial(self.terms), Polynomial({})
        positive = {monomial: c for monomial, c in self.terms.items() if c > 0}
        return Polynomial(positive), Polynomial({monomial: -c for monomial, c in self.terms.items() if c < 0})

    def difference(self, size: str, by: Any = 1) -> Polynomial:
        """Its increase if one size increases by `by`.

        >>> n, d = make_symbols("n_layers d_model")
        >>> (n * (4 * d * d + 2 * d)).difference("n_layers")
        2 · d_model · (2·d_model + 1)

        Raises: ParamcountError for a size that it does not depend on.
        """
        if size not in self.names:
            raise ParamcountError(
                f"unknown size {make_printable(size)}",
                where="difference",
                choices=self.names,
                nearest=find_nearest(size, self.names),
            )
        increased = {name: make_symbols(name)[0] for name in self.names}
        increased[size] = increased[size] + by
        return to_polynomial(self.evaluate(**increased)) - self

    def __str__(self) -> str:
        return _decisions.get().describe(self)

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return str(self)  # also for ",", as integers are printed

    def latex(self) -> str:
        """Its factored form in LaTeX math.

        >>> n, d = make_symbols("n_layers d_model")
        >>> print((3 * n * d + n).latex())
        n_{\\mathrm{layers}} \\cdot (3 \\cdot d_{\\mathrm{model}} + 1)
        """
        return format_formula(self.factor(), LATEX)


def _convert(value: object) -> Any:
    """A value as a polynomial; NotImplemented if it is none and code may do with a symbol what it does with an int."""
    return NotImplemented if _decisions.get().explores and not isinstance(value, _INTEGERS) else to_polynomial(value)


def to_polynomial(value: object) -> Polynomial:
    """An integer or a symbol as a polynomial."""
    if isinstance(value, Polynomial):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Polynomial({(): value})
    if arrays.is_array(value) and not getattr(value, "ndim", 1) and value.dtype.kind in "iu":  # type: ignore[attr-defined]
        return Polynomial({(): int(value)})  # type: ignore[call-overload]
    raise TypeError(f"{value!r} is not an integer or a symbol")


def make_tree(value: object) -> Tree:
    """An integer or a symbol as a tree, factored."""
    return to_polynomial(value).factor()


_INTEGERS = (Polynomial, int)
Integral.register(Polynomial)


def has_same_terms(a: object, b: object) -> bool:
    """Whether two sizes, each an integer or a polynomial, are the same expression and so equal for all values."""
    return to_polynomial(a).terms == to_polynomial(b).terms


def make_symbols(names: str) -> tuple[Polynomial, ...]:
    """One symbol per name.

    >>> make_symbols("d_model n_heads")
    (d_model, n_heads)
    """
    return tuple(Polynomial({((name, 1),): 1}) for name in names.split())
