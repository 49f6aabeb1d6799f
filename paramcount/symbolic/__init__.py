"""One expression type: integer polynomials in named sizes, and the trees in which all expressions are written.

If the sizes of a declaration are symbols, its count is a formula. If they are arrays, its count is an array, and
overflow is an error. `trees` has the tree that formulas, compiled sums, sweeps, filters and pages share, with its
evaluator and its form in JSON; `factoring` makes one of a polynomial and prints it, `parsing` makes one of what users
type, and `compiled` evaluates it for many sizes at once.
"""

from paramcount.symbolic.polynomials import Polynomial, make_symbols

symbols = make_symbols  # deprecated alias, until 0.3

__all__ = ["Polynomial", "make_symbols", "symbols"]
