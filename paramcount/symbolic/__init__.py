"""Symbolic arithmetic: integer polynomials in named sizes, their factored form as text and LaTeX, and grids of sizes as int64 arrays.

A declaration whose sizes are symbols yields the formula itself; with arrays it yields a sweep, and overflow is an error.
"""

from paramcount.symbolic.polynomials import Polynomial, make_symbols

symbols = make_symbols  # deprecated alias, until 0.3

__all__ = ["Polynomial", "make_symbols", "symbols"]
