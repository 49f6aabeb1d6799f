"""How long a text may be, by the position embeddings that its tokens look up."""

from __future__ import annotations

from paramcount.flow import AxialLookup, PositionLookup, Size
from paramcount.flow.graph import Data
from paramcount.flow.walk import list_steps


def count_positions(out: Data) -> int | None:
    """The most tokens that all position embeddings have rows for. None if tokens look up no positions: rotary and
    computed ones go on.
    """
    return min(map(int, list_position_limits(out)), default=None)


def list_position_limits(out: Data) -> list[Size]:
    """The most tokens that each position embedding has rows for. Sizes may be symbols."""
    limits: list[Size] = []
    for data, *_ in list_steps(out):
        operation = data.operation
        if not data.inputs or data.inputs[0].shape[:1] != ("tokens",):
            continue
        if isinstance(operation, PositionLookup):
            rows = data.weights[0].shape[0]
            limits.append(rows - operation.offset if type(operation.offset) is int else rows)
        elif isinstance(operation, AxialLookup) and operation.axis == "rows":
            limits.append(data.weights[0].shape[0] * operation.n_columns)
    return limits
