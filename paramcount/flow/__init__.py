"""The forward pass of a model as a flow: data passes through operations, and an operation holds the weights that it reads.

A declaration (`paramcount.architectures`) builds the flow; every other package reads it: counts read the weights, traces and
drawings read the operations. A declaration only adds, subtracts and multiplies sizes, so it serves ints, int64 arrays and symbols
alike. This package knows nothing of configs, names or files.
"""

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
from paramcount.flow.operations import (
    AttentionDetail,
    activate,
    attend,
    block,
    elementwise,
    experts,
    fused,
    given,
    join,
    layers,
    linear,
    lookup,
    norm,
    rope,
    scale,
    split,
)
from paramcount.flow.walk import Step, WeightRecord, list_steps, list_weights, sum_parameters

__all__ = [
    "AttentionDetail",
    "Body",
    "Data",
    "Repeat",
    "Size",
    "Step",
    "Unreachable",
    "Weight",
    "WeightRecord",
    "Width",
    "activate",
    "attend",
    "block",
    "check_same_shape",
    "elementwise",
    "experts",
    "fused",
    "given",
    "join",
    "last_size",
    "layers",
    "linear",
    "list_steps",
    "list_weights",
    "lookup",
    "multiply",
    "norm",
    "rope",
    "scale",
    "split",
    "sum_parameters",
]  # fmt: skip
