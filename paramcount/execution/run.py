"""Runs a model on token ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paramcount.counting.sum_weights import list_flows
from paramcount.errors import ParamcountError
from paramcount.execution.evaluate import Evaluation, Value, Weights
from paramcount.flow.operation import Array
from paramcount.sizes import Sizes


class MappedWeights:
    """Weights from a mapping of arrays."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = arrays

    def read(self, name: str, shape: tuple[int, ...], index: int | None) -> Array:
        if name not in self.arrays:
            raise ParamcountError("is missing", where=name, expected=f"a tensor of shape {list(shape)}")
        array = self.arrays[name]
        if index is not None:
            rows = array.shape[0] // shape[0] if array.ndim == len(shape) else array.shape[0]
            array = array.reshape(rows, *shape)[index] if array.size == rows * int(np.prod(shape)) else array[index]
        if array.shape != shape:
            raise ParamcountError(f"has shape {list(array.shape)}", where=name, expected=f"shape {list(shape)}")
        return np.asarray(array, dtype=np.float32)


class Run:
    """The outcome of a forward pass, which can go on with further tokens."""

    def __init__(self, evaluation: Evaluation, tokens: Sequence[int], inputs: Mapping[str, Any], watch: bool) -> None:
        self._evaluation = evaluation
        self.steps: list[Value] = []
        evaluation.watch = self.steps.append if watch else None
        ids = {"tokens": np.asarray(tokens, dtype=np.int64)}
        self.logits = evaluation.run({**ids, **{name: np.asarray(value) for name, value in inputs.items()}})
        self._inputs, self._watch = inputs, watch

    def append(self, tokens: Sequence[int]) -> Run:
        """The forward pass of further tokens with the caches of this one."""
        return Run(self._evaluation, tokens, self._inputs, self._watch)


def run_model(
    sizes: Sizes, weights: Weights | Mapping[str, Any], tokens: Sequence[int], *, watch: bool = False, **inputs: Any
) -> Run:
    """The logits of every token, float32 [n, vocab_size]. `sizes` must have settings."""
    out, part = next(iter(list_flows(sizes)))
    source = MappedWeights(weights) if isinstance(weights, Mapping) else weights
    return Run(Evaluation(out, source, part), tokens, inputs, watch)
