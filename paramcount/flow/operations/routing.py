"""The choice of experts from a router's scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from paramcount.flow.graph import Data, Size, Weight
from paramcount.flow.operation import Array, Operation, Pass, Shape, Unknown, is_known, np, require
from paramcount.flow.operations.elementwise import FUNCTIONS


def softmax(x: Array) -> Array:
    y = np.exp(x - x.max(-1, keepdims=True))
    return y / y.sum(-1, keepdims=True)


def choose_largest(x: Array, n: int) -> Array:
    """Whether each value is among the n largest of its row; ties go to the first."""
    order = np.argsort(-x, axis=-1, kind="stable")[:, :n]
    chosen = np.zeros(x.shape, dtype=bool)
    np.put_along_axis(chosen, order, values=True, axis=-1)
    return chosen


class Route(Operation):
    """Router logits [n, experts] to the weight of each expert, 0 if it is not chosen."""

    name: ClassVar[str] = "route"
    n_active: Size
    scoring: str | Unknown  # softmax, "softmax over chosen", "sparse mixer", or the name of an activation
    normalise: bool | Unknown = False  # weights of the chosen sum to 1
    factor: float | Unknown = 1.0  # times the weights
    n_groups: int | Unknown = 1  # experts are chosen from the best groups only
    n_active_groups: int | Unknown = 1
    group_score: Literal["max", "top 2"] = "max"  # what makes a group good
    has_bias: bool = False  # the choice sees scores + bias, the weights do not
    excluded: float = float("-inf")  # score, for the choice, of experts in other groups
    biased: Literal["scores", "logits"] = "scores"  # what the bias is added to
    least_sum: float = 0.0  # added to the sum that weights are divided by
    capacity: int | Unknown | None = None  # tokens of a text that an expert takes at most, the first ones
    has_choice: bool = False  # its second input: indices of the chosen experts, [n, active]
    n_always: Size = 0  # the last experts, which are always chosen; the bias is that of the others
    grid: Size | None = None  # experts form a square of this side; logits are those of its rows, then of its columns
    tolerance: float | Unknown = 0.0  # sparse mixer: which logits are near enough to the largest, half of the share

    def describe(self) -> str:
        if not isinstance(self.scoring, str):
            return "router weights"
        if self.scoring == "sparse mixer":
            return f"sparse mixer, top {self.n_active}"
        scores = "softmax" if self.scoring.startswith("softmax") else FUNCTIONS[self.scoring][0]
        choice = "experts looked up by token id" if self.has_choice else f"top {self.n_active}"
        if self.has_bias:
            choice += f" of {self.biased} + bias"
        if isinstance(self.n_groups, int) and self.n_groups > 1 and is_known(self.n_active_groups):
            choice += f" in {self.n_active_groups} of {self.n_groups} groups"
        phrases = [scores, choice]
        if self.scoring == "softmax over chosen":
            phrases = [choice, "softmax over the selected experts"]
        if self.normalise is True:
            phrases.append("normalised")
        if is_known(self.factor) and self.factor != 1:
            phrases.append(f"× {self.factor:g}")
        if isinstance(self.capacity, int):
            phrases.append(f"at most {self.capacity:,} tokens per expert")
        return ", ".join(phrases)

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        logits, *given = inputs
        scoring, n_active = require(self.scoring), int(self.n_active)
        if self.grid is not None:
            rows, columns = logits.reshape(2, len(logits), -1)  # regroups the logits of different tokens: Doge
            logits = (rows[:, :, None] + columns[:, None, :]).reshape(len(logits), -1)
        if scoring == "sparse mixer":
            return self.mix(logits, n_active, run)
        scores = logits if scoring.startswith("softmax") else FUNCTIONS[scoring][1](logits)
        if scoring == "softmax":
            scores = softmax(logits)
        merit = logits if self.biased == "logits" else scores
        n_always = int(self.n_always)
        if self.has_bias:
            merit = merit + np.pad(weights[0], (0, n_always))
        if n_always:
            merit[:, len(merit[0]) - n_always :] = np.inf
            n_active += n_always
        n_groups = int(require(self.n_groups))
        if n_groups > 1:
            grouped = merit.reshape(len(merit), n_groups, -1)
            best = np.sort(grouped, axis=-1)[..., -2:].sum(-1) if self.group_score == "top 2" else grouped.max(-1)
            allowed = np.repeat(choose_largest(best, int(require(self.n_active_groups))), grouped.shape[-1], axis=-1)
            merit = np.where(allowed, merit, np.float32(self.excluded))
        chosen = choose_largest(merit, n_active)
        if self.capacity is not None:
            chosen &= chosen.cumsum(axis=0) <= require(self.capacity)
        if scoring == "softmax over chosen":
            scores = softmax(np.where(chosen, logits, -np.inf))
        y = np.where(chosen, scores, 0)
        if self.has_choice:
            times = np.zeros(logits.shape, np.float32)  # an expert may be given twice
            np.add.at(times, (np.arange(len(logits))[:, None], given[0].astype(np.int64)), 1)
            y = scores * times
        if require(self.normalise):
            y = y / (y.sum(-1, keepdims=True) + self.least_sum)
        y = (y * require(self.factor)).astype(np.float32)
        if run.watch is not None:
            run.watch["experts"] = y
        return y

    def mix(self, logits: Array, n_active: int, run: Pass) -> Array:
        """Each choice is weighted by a softmax over the logits near it. Source: arXiv:2409.12136; `sparsemixer` of the
        reference, modeling_phimoe.py."""
        y, rest = np.zeros_like(logits), logits
        for _ in range(n_active):
            best = choose_largest(rest, 1)
            most = rest.max(-1, keepdims=True)
            near = (most - logits) / np.maximum(np.abs(logits), most) <= 2 * require(self.tolerance)
            y = np.where(best, softmax(np.where(near, rest, -np.inf)), y)
            rest = np.where(best, -np.inf, rest)
        if run.watch is not None:
            run.watch["experts"] = y
        return np.asarray(y, np.float32)


def route(
    logits: Data,
    n_active: Size,
    scoring: Any,
    *,
    bias: Weight | None = None,
    chosen: Data | None = None,
    **rules: Any,
) -> Data:
    """The weights of the experts. `bias`: added to the scores for the choice alone. `chosen`: the indices of the
    experts, if the scores do not choose. `rules`: fields of `Route`."""
    operation = Route(n_active, scoring, has_bias=bias is not None, has_choice=chosen is not None, **rules)
    shape = logits.shape if operation.grid is None else (*logits.shape[:1], operation.grid * operation.grid)
    return Data(operation, (logits, chosen) if chosen else (logits,), shape, (bias,) if bias else ())
