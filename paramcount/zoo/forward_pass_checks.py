"""Checks of the declared GPT-2 against the independent NumPy forward pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np

from paramcount.counting.count import Count
from paramcount.errors import make_printable
from paramcount.flow import (
    Activation,
    Add,
    Cache,
    Hide,
    Linear,
    Lookup,
    Norm,
    PositionLookup,
    Scores,
    Softmax,
    Split,
    WeightedSum,
    given,
    list_steps,
    multiply,
)
from paramcount.gpt2.forward_pass import Array, forward, make_weights
from paramcount.zoo.checks import Check

MOST_PARAMETERS = 500_000_000  # parameters; larger models take seconds and gigabytes
MOST_TENSORS = 100_000  # against configs with countless tiny layers
N_TOKENS = 5
TOLERANCE = 1e-5  # float32 rounding error; a changed token changes logits by about 0.1

# {intermediate result of the NumPy forward pass, without "h.{layer}.": the declared operation that computes it}
OPERATIONS = {
    "token embedding": Lookup, "position embedding": PositionLookup, "embedding": Add,
    "norm 1": Norm, "qkv": Linear, "q": Split, "k": Split, "v": Split,
    "attention scores": Scores, "attention weights": Softmax, "weighted values": WeightedSum,
    "attention output": Linear, "after attention": Add,
    "norm 2": Norm, "mlp up": Linear, "gelu": Activation, "mlp down": Linear, "after mlp": Add,
    "final norm": Norm, "logits": Linear,
}  # fmt: skip
WITHOUT_RESULT = (Cache, Hide)  # declared operations whose results the NumPy pass does not show


class RecordingArrays(dict[str, Array]):
    """Arrays by name that record which of them are read."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        super().__init__(arrays)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Array:
        self.read.add(name)
        return super().__getitem__(name)


def check_forward_pass(sizes: Any, count: Count) -> list[Check]:
    """Comparisons with a NumPy forward pass: its tensors, which of them it reads, all shapes, causality.

    One check with the verdict "not checkable" if the pass cannot run with these sizes.
    """
    if reason := _find_obstacle(sizes, count):
        return [Check("NumPy pass", count.total, None, "not checkable", reason)]
    arrays = RecordingArrays(make_weights(sizes))
    declared = set(_list_declared_tensors(count))
    actual = {(name, array.shape) for name, array in arrays.items()}
    n_tokens = min(N_TOKENS, sizes.n_positions)
    token_ids = [(7 * i + 1) % sizes.vocab_size for i in range(n_tokens)]
    results: list[tuple[str, tuple[int, ...]]] = []
    logits = forward(arrays, token_ids, n_heads=sizes.n_heads, observe=lambda name, x: results.append((name, x.shape)))
    names = [re.sub(r"^h\.\d+\.", "", name) for name, _ in results]
    shapes = [(OPERATIONS[name].__name__, shape) for name, (_, shape) in zip(names, results, strict=True)]
    declared_shapes = set(enumerate(_list_declared_shapes(sizes, n_tokens)))
    n_values = sum(array.size for array in arrays.values())
    checks = [
        _compare_sets("tensors", declared, actual, "tensors of the NumPy GPT-2, by name and shape"),
        _compare_numbers("sum", count.total, n_values, "values in these tensors"),
        _compare_sets(
            "reads", {name for name, _ in declared}, arrays.read, "tensors that the NumPy forward pass reads"
        ),
        _compare_sets(
            "shapes",
            declared_shapes,
            set(enumerate(shapes)),
            "operations of the NumPy forward pass, by order and output shape",
        ),
    ]
    if n_tokens > 1 and sizes.vocab_size > 1:
        last_token = (token_ids[-1] + 1) % sizes.vocab_size
        other_logits = forward(arrays, [*token_ids[:-1], last_token], n_heads=sizes.n_heads)
        n_changed = int(np.sum(~np.isclose(logits[:-1], other_logits[:-1], rtol=0, atol=TOLERANCE)))
        checks.append(_compare_numbers("causal", 0, n_changed, "logits that change when a later token changes"))
    return checks


def _find_obstacle(sizes: Any, count: Count) -> str:
    """Why the NumPy forward pass cannot run with these sizes; empty if it can."""
    if not sizes.tie_word_embeddings:
        return "not run: the LM head is not tied to the token embedding"
    if count.total > MOST_PARAMETERS:
        return f"not run: needs {4 * count.total / 1e9:,.1f} GB of arrays (limit {4 * MOST_PARAMETERS / 1e9:.1f} GB)"
    if sum(tensor.copies for tensor in count.tensors) > MOST_TENSORS:
        return f"not run: more than {MOST_TENSORS:,} arrays"
    return ""


def _list_declared_tensors(count: Count) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the declared parameters, layer by layer, without tied ones."""
    for tensor in count.tensors:
        if tensor.is_counted:
            for i in tensor.repeats[0].indices if tensor.repeats else (0,):
                yield tensor.name.replace("{layer}", str(i)), tensor.shape


def _list_declared_shapes(sizes: Any, n_tokens: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The declared operations in order, each with its output shape; every layer is listed."""
    for repeats, body in groupby(list_steps(sizes.forward(given("tokens", "tokens"))), key=lambda step: step[2]):
        # Inputs are not operations, and an operation with bodies consists of the operations in them.
        shapes = [
            (type(data.operation).__name__, tuple(n_tokens if n == "tokens" else n for n in data.shape))
            for data, *_ in body
            if data.inputs and not data.bodies and not isinstance(data.operation, WITHOUT_RESULT)
        ]
        yield from shapes * multiply(repeat.count for repeat in repeats)


def _compare_numbers(what: str, expected: int, found: int, source: str) -> Check:
    return Check(f"NumPy pass: {what}", expected, found, "exact" if found == expected else "differs", source)


def _compare_sets(what: str, expected: set[Any], found: set[Any], source: str) -> Check:
    """How many of the expected items were found; exact only if nothing else was."""
    check = _compare_numbers(what, len(expected), len(expected & found), source)
    if expected == found:
        return check
    first = min(expected ^ found)
    place = "missing from NumPy" if first in expected else "only in NumPy"
    return check._replace(verdict="differs", source=f"{source}; {place}: {make_printable(first, 80)}")
