"""Storage of quantised weights: which tensors of a model are packed, with which scales, in how many bytes.

This package reads rows of tensors. What a `quantization_config` says and how a format stores a matrix is in `formats`,
where `verify` reads it, too.
"""
