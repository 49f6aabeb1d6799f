"""How long a text may be, by the position embeddings that its tokens look up."""

from __future__ import annotations

from paramcount.flow.graph import Data
from paramcount.flow.operations import Lookup
from paramcount.flow.walk import list_steps


def count_positions(out: Data) -> int | None:
    """The most tokens that all position embeddings have rows for. None if tokens look up no positions: rotary and
    computed ones go on.
    """
    limits = []
    for data, *_ in list_steps(out):
        operation = data.operation
        if isinstance(operation, Lookup) and data.inputs and data.inputs[0].shape[:1] == ("tokens",):
            rows, first = data.weights[0].shape[0], operation.offset
            if operation.index == "positions":
                limits.append(rows - first if type(first) is int else rows)
            elif operation.index == "rows of a grid":
                limits.append(rows * operation.n_rows)
    return min(map(int, limits), default=None)
