"""Explanations: the formula behind each component of a model, and what a published figure counts.

`explain` gives formulas with a model's numbers, `formulas` gives them as polynomials, `why` explains published figures. All of it is
read off the declaration, with symbols in place of sizes; nothing here knows the shape of a matrix.
"""
