"""The forward pass of a model as a flow: data passes through operations, which own the weights they read.

A declaration (`paramcount.architectures`) builds the flow; every other package reads it: counts read the weights;
traces, drawings and execution read the operations. A declaration only adds, subtracts and multiplies sizes, so it works
with ints, int64 arrays and symbols alike. This package knows nothing of configs, names or files.
"""

from paramcount.flow import operations
from paramcount.flow.graph import (
    Body,
    Data,
    Repeat,
    Size,
    Unreachable,
    Weight,
    Width,
    check_same_shape,
    last_size,
    multiply,
)
from paramcount.flow.operation import Unknown, is_known, require
from paramcount.flow.operations import *  # noqa: F403
from paramcount.flow.walk import Step, TensorRow, list_rows, list_steps, sum_parameters


def elementwise(x: Data, op: str, name: str, component: str, *shape: Size, role: str = "parameter") -> Data:
    """An element-wise operation with one weight, such as a gate or a routing bias."""
    return Data(op, (x,), x.shape, (Weight(name, component, shape, role=role),))


__all__ = [
    *operations.__all__,
    "Body",
    "Data",
    "Repeat",
    "Size",
    "Step",
    "TensorRow",
    "Unknown",
    "Unreachable",
    "Weight",
    "Width",
    "check_same_shape",
    "elementwise",
    "is_known",
    "last_size",
    "list_rows",
    "list_steps",
    "multiply",
    "require",
    "sum_parameters",
]
