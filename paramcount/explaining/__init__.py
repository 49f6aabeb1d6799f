"""Explanations: the formula behind each component of a model, and what a published figure counts.

`explain` returns formulas with the values of a model, `formulas` returns them as polynomials, and `why` explains
published figures. Everything is derived from the forward pass of the architecture, run with symbols instead of numbers;
no module in this package knows the shape of a matrix.
"""
