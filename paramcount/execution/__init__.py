"""Computes a declared flow in NumPy, float32: logits and intermediate values of a model with given weights.

It reads operations and knows no architecture: a flow that yields the reference's logits is proven.
"""

from paramcount.execution.evaluate import Weights
from paramcount.execution.run import Run, run_model

__all__ = ["Run", "Weights", "run_model"]
