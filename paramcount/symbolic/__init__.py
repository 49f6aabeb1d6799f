"""One expression type: integer polynomials in named sizes, and the trees in which all expressions are written.

If the sizes of a declaration are symbols, its count is a formula. If they are arrays, its count is an array, and
overflow is an error. `trees` has the tree that formulas, compiled sums, sweeps, filters and pages share, with its
evaluator and its form in JSON; `factoring` makes one of a polynomial and prints it, `parsing` makes one of what users
type, and `compiled` evaluates it for many sizes at once.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paramcount.symbolic.polynomials import Polynomial, make_symbols

__all__ = ["Polynomial", "make_symbols"]


def __getattr__(name: str) -> Any:
    if name in __all__:  # imported when it is used: most counts use no symbols
        from paramcount.symbolic import polynomials

        return getattr(polynomials, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
