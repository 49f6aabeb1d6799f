"""Packed weights: which tensors of a quantised checkpoint represent which matrix, and how many bytes each takes.

Which formats can be read follows from their files in `formats.weights`; the error for any other names it.
"""
