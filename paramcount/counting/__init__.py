"""Counting: sums over the weights of a declaration, per component, per part and per tensor.

This package depends on sizes and flows, not on files, names or the zoo.
"""

from paramcount.counting.components import COMPONENTS, PARTS, TABLES, TOWERS
from paramcount.counting.count import SCHEMA_VERSION, Count, count_sizes
from paramcount.counting.tensors import list_tensors
from paramcount.flow import TensorRow

__all__ = [
    "COMPONENTS",
    "PARTS",
    "SCHEMA_VERSION",
    "TABLES",
    "TOWERS",
    "Count",
    "TensorRow",
    "count_sizes",
    "list_tensors",
]
