"""Counting: sums over the weights of a declaration, per component, per part and per tensor.

This package depends on sizes and flows, not on files, names or the zoo.
"""

from paramcount.counting.count import COMPONENTS, PARTS, SCHEMA_VERSION, TABLES, Count, count_sizes
from paramcount.counting.tensors import TOWERS, Tensor, list_tensors

__all__ = [
    "COMPONENTS",
    "PARTS",
    "SCHEMA_VERSION",
    "TABLES",
    "TOWERS",
    "Count",
    "Tensor",
    "count_sizes",
    "list_tensors",
]
