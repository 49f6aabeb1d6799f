"""Computes a declared flow in NumPy, float32: logits and intermediate values of a model with given weights.

It reads operations and knows no architecture: a flow that yields the reference's logits is proven. `evaluate` computes
a flow, `weights` reads tensors from a checkpoint (`sources` says where they are), `watching` summarises a pass.
"""

from paramcount.execution.evaluate import Value, Weights
from paramcount.execution.run import Run, run_loaded, run_model

__all__ = ["Run", "Value", "Weights", "run_loaded", "run_model"]
