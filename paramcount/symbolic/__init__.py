"""Symbolic arithmetic: integer polynomials in named sizes, their factored form as text and LaTeX, and integer arrays.

If the sizes of a declaration are symbols, its count is a formula. If they are arrays, its count is an array, and
overflow is an error.
"""

from paramcount.symbolic.polynomials import Polynomial, make_symbols

symbols = make_symbols  # deprecated alias, until 0.3

__all__ = ["Polynomial", "make_symbols", "symbols"]
