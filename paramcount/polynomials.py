"""Integer polynomials in named sizes: what a declaration yields when its sizes are symbols.

Only `+`, `-`, `*` and whole powers exist. What would make a declaration branch on a symbol (`bool`, `<`, `range`) raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from paramcount import sweeps
from paramcount.errors import ParamcountError, near

Monomial = tuple[tuple[str, int], ...]  # (("d_model", 2), ("n_layers", 1)): names in order, powers from 1


class Polynomial:
    """A polynomial with whole coefficients.

    >>> n, d = symbols("n_layers d_model")
    >>> p = n * (4 * d * d + 2 * d)
    >>> print(p)
    4·n_layers·d_model² + 2·n_layers·d_model
    >>> p.evaluate(n_layers=12, d_model=768)
    28329984
    """

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms: dict[Monomial, int] = {m: c for m, c in terms.items() if c}

    def __add__(self, other: object) -> Polynomial:
        terms = dict(self.terms)
        for monomial, c in _polynomial(other).terms.items():
            terms[monomial] = terms.get(monomial, 0) + c
        return Polynomial(terms)

    def __mul__(self, other: object) -> Polynomial:
        terms: dict[Monomial, int] = {}
        for a, c in self.terms.items():
            for b, d in _polynomial(other).terms.items():
                powers = dict(a)
                for name, power in b:
                    powers[name] = powers.get(name, 0) + power
                monomial = tuple(sorted(powers.items()))
                terms[monomial] = terms.get(monomial, 0) + c * d
        return Polynomial(terms)

    def __neg__(self) -> Polynomial:
        return self * -1

    def __sub__(self, other: object) -> Polynomial:
        return self + _polynomial(other) * -1

    def __rsub__(self, other: object) -> Polynomial:
        return _polynomial(other) - self

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Polynomial, int)) and not isinstance(other, bool) and self.terms == _polynomial(other).terms

    def __hash__(self) -> int:
        constant = self.terms.get((), 0)
        return hash(constant) if set(self.terms) <= {()} else hash(frozenset(self.terms.items()))

    def _structure(self, *_: object) -> NoReturn:
        raise ParamcountError(f"{self} is a size: structure must not depend on its value", accepted="+, - and *")

    __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __index__ = __int__ = __float__ = _structure
    __iter__ = __floordiv__ = __truediv__ = __mod__ = __pow__ = __divmod__ = _structure
    __rfloordiv__ = __rtruediv__ = __rmod__ = __rpow__ = __rdivmod__ = _structure

    @property
    def names(self) -> tuple[str, ...]:
        """The sizes it depends on."""
        return tuple(sorted({name for monomial in self.terms for name, _ in monomial}))

    def evaluate(self, **sizes: Any) -> Any:
        """Its value for these sizes: ints, int64 arrays or symbols.

        Raises: ParamcountError where a size is missing or unknown.
        """
        for name in self.names:
            if name not in sizes:
                raise ParamcountError(f"{name} is missing", where="evaluate", accepted=", ".join(self.names))
        for name in sizes:
            if name not in self.names:
                raise ParamcountError(f"unknown size {name}", where="evaluate", accepted=", ".join(self.names), nearest=near(name, self.names))
        values = sweeps.checked(sizes, Polynomial, least=None)
        sweeps.refuse_overflow(Polynomial({monomial: abs(c) for monomial, c in self.terms.items()})._at, values)
        return self._at(values)

    def _at(self, sizes: Mapping[str, Any]) -> Any:
        total: Any = 0
        for monomial, c in self.terms.items():
            value: Any = c
            for name, power in monomial:
                for _ in range(power):
                    value = value * sizes[name]
            total = total + value
        return total

    def __str__(self) -> str:
        return "".join(self._signed(i, monomial, c) for i, (monomial, c) in enumerate(self._ordered())) or "0"

    __repr__ = __str__

    def _ordered(self) -> Iterator[tuple[Monomial, int]]:
        return iter(sorted(self.terms.items(), key=lambda term: (-sum(power for _, power in term[0]), -abs(term[1]), term[0])))

    @staticmethod
    def _signed(i: int, monomial: Monomial, c: int) -> str:
        factors = [name + ("" if power == 1 else str(power).translate(_SUPERSCRIPT)) for name, power in sorted(monomial, key=_reading_order)]
        text = "·".join([f"{abs(c):,}"] * (abs(c) != 1 or not factors) + factors)
        return ("-" if c < 0 else "") + text if i == 0 else f" {'-' if c < 0 else '+'} {text}"


_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _reading_order(factor: tuple[str, int]) -> tuple[bool, str]:
    """How many before how wide: n_layers · d_model."""
    return not factor[0].startswith("n_"), factor[0]


def _polynomial(value: object) -> Polynomial:
    if isinstance(value, Polynomial):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Polynomial({(): value})
    if sweeps.is_array(value) and not getattr(value, "ndim", 1) and value.dtype.kind in "iu":  # type: ignore[attr-defined]
        return Polynomial({(): int(value)})  # type: ignore[call-overload]
    raise TypeError(f"{value!r} is not a whole number or a symbol")


def symbols(names: str) -> tuple[Polynomial, ...]:
    """One symbol for each of the names.

    >>> symbols("d_model n_heads")
    (d_model, n_heads)
    """
    return tuple(Polynomial({((name, 1),): 1}) for name in names.split())
