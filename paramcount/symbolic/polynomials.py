"""Integer polynomials in named sizes: the counts of a declaration whose sizes are symbols.

They support only `+`, `-` and `*`. Operations that would branch on a symbol (`bool`, `<`, `range`) raise an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from paramcount.errors import ParamcountError, find_nearest, join_words, make_printable
from paramcount.symbolic import arrays
from paramcount.symbolic.factoring import LATEX, Monomial, factor, format_formula


class Polynomial:
    """A polynomial with integer coefficients.

    >>> n, d = make_symbols("n_layers d_model")
    >>> p = n * (4 * d * d + 2 * d)
    >>> print(p)
    n_layers · 2 · d_model · (2·d_model + 1)
    >>> p.evaluate(n_layers=12, d_model=768)
    28329984
    """

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms: dict[Monomial, int] = {m: c for m, c in terms.items() if c}

    def __add__(self, other: object) -> Polynomial:
        terms = dict(self.terms)
        for monomial, c in _make_polynomial(other).terms.items():
            terms[monomial] = terms.get(monomial, 0) + c
        return Polynomial(terms)

    def __mul__(self, other: object) -> Polynomial:
        terms: dict[Monomial, int] = {}
        for a, c in self.terms.items():
            for b, d in _make_polynomial(other).terms.items():
                powers = dict(a)
                for name, power in b:
                    powers[name] = powers.get(name, 0) + power
                monomial = tuple(sorted(powers.items()))
                terms[monomial] = terms.get(monomial, 0) + c * d
        return Polynomial(terms)

    def __neg__(self) -> Polynomial:
        return self * -1

    def __sub__(self, other: object) -> Polynomial:
        return self + _make_polynomial(other) * -1

    def __rsub__(self, other: object) -> Polynomial:
        return _make_polynomial(other) - self

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, bool) or not isinstance(other, (Polynomial, int)):
            return False
        return self.terms == _make_polynomial(other).terms

    def __hash__(self) -> int:
        constant = self.terms.get((), 0)
        return hash(constant) if set(self.terms) <= {()} else hash(frozenset(self.terms.items()))

    def _refuse(self, *_: object) -> NoReturn:
        raise ParamcountError(f"{self} is symbolic, so code cannot depend on its value", expected="+, - and *")

    __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __index__ = __int__ = __float__ = _refuse
    __iter__ = __floordiv__ = __truediv__ = __mod__ = __pow__ = __divmod__ = _refuse
    __rfloordiv__ = __rtruediv__ = __rmod__ = __rpow__ = __rdivmod__ = _refuse

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sizes that it depends on."""
        return tuple(sorted({name for monomial in self.terms for name, _ in monomial}))

    def evaluate(self, **sizes: Any) -> Any:
        """Its value for these sizes: ints, int64 arrays or symbols.

        Raises: ParamcountError if a size is missing or unknown.
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
        return self.substitute(values)

    def substitute(self, sizes: Mapping[str, Any]) -> Any:
        """Its value for these sizes, without the checks of `evaluate`."""
        total: Any = 0
        for monomial, c in self.terms.items():
            value: Any = c
            for name, power in monomial:
                for _ in range(power):
                    value = value * sizes[name]
            total = total + value
        return total

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
        return _make_polynomial(self.substitute(increased)) - self

    def __str__(self) -> str:
        return format_formula(factor(self.terms))

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return str(self)  # also for ",", as integers are printed

    def latex(self) -> str:
        """Its factored form in LaTeX math.

        >>> n, d = make_symbols("n_layers d_model")
        >>> print((3 * n * d + n).latex())
        n_{\\mathrm{layers}} \\cdot (3 \\cdot d_{\\mathrm{model}} + 1)
        """
        return format_formula(factor(self.terms), LATEX)


def _make_polynomial(value: object) -> Polynomial:
    if isinstance(value, Polynomial):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Polynomial({(): value})
    if arrays.is_array(value) and not getattr(value, "ndim", 1) and value.dtype.kind in "iu":  # type: ignore[attr-defined]
        return Polynomial({(): int(value)})  # type: ignore[call-overload]
    raise TypeError(f"{value!r} is not an integer or a symbol")


def make_symbols(names: str) -> tuple[Polynomial, ...]:
    """One symbol per name.

    >>> make_symbols("d_model n_heads")
    (d_model, n_heads)
    """
    return tuple(Polynomial({((name, 1),): 1}) for name in names.split())
