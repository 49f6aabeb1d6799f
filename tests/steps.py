"""Computes a few steps of a flow on arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from paramcount.flow import Data, Input, add_bias, hide, list_steps, scores, softmax, weighted_sum
from paramcount.flow.masks import Mask
from paramcount.flow.operation import Array


class Run(NamedTuple):
    """What a pass tells an operation."""

    positions: Any
    layer: int = 0
    state: Any = None


class Leaf(Data):
    """An input of the flow, with its value."""

    __slots__ = ("value",)

    def __init__(self, value: Any, dtype: Any = np.float32) -> None:
        self.value: Array = np.asarray(value, dtype)
        super().__init__(Input(), (), ("tokens", *self.value.shape[1:]))


def run_steps(out: Data, end: int, *weights: Any) -> Array:
    """The value of `out`, whose queries are the last ones before the position `end`. `weights`: of the only step that
    has any."""
    values: dict[int, Array] = {}
    for data, *_ in list_steps(out):
        if isinstance(data, Leaf):
            values[id(data)] = data.value
            continue
        inputs = [values[id(before)] for before in data.inputs]
        n = inputs[0].shape[data.operation.row_axis]
        run: Any = Run(np.arange(end - n, end), state={})
        arrays = [np.asarray(w, np.float32) for w in weights] if data.weights else []
        shape = (n, *(size if isinstance(size, int) else -1 for size in data.shape[1:]))
        values[id(data)] = data.operation.compute(run, inputs, arrays, shape)
    return values[id(out)]


def attend(q: Any, k: Any, v: Any, *biases: Any, mask: Mask | None = None, end: int | None = None) -> Array:
    """The weighted values of queries that may stand behind other tokens."""
    s = scores(Leaf(q), Leaf(k))
    for bias in biases:
        s = add_bias(s, Leaf(bias))
    s = s if mask is None else hide(s, mask)
    return run_steps(weighted_sum(softmax(s), Leaf(v)), len(k) if end is None else end)
