"""The choice of experts, in the steps of the papers: scores, routing bias, groups, top k, weights of the chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from paramcount.flow.graph import Data, Size, Weight, make_step
from paramcount.flow.operation import Array, Move, Operation, Pass, Shape, Unknown, is_known, np, require
from paramcount.flow.operations.elementwise import activate, softmax_rows
from paramcount.flow.operations.scaling import AddVector, scale_by


def choose_largest(x: Array, n: int) -> Array:
    """Whether each value is among the n largest of its row; ties go to the first."""
    order = np.argsort(-x, axis=-1, kind="stable")[:, :n]
    marks = np.zeros(x.shape, dtype=bool)
    np.put_along_axis(marks, order, values=True, axis=-1)
    return marks


class TopK(Operation, name="top k", phrase="{n} experts per token", only_moves=True):
    """The values of the n experts with the largest ones, or with the largest ones of a second input, such as scores
    plus routing bias; those of other experts are replaced."""

    n: Size
    others: float = 0.0

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return np.where(choose_largest(inputs[-1], int(self.n)), inputs[0], np.float32(self.others))


def top_k(scores: Data, n: Size, by: Data | None = None, *, others: float = 0.0) -> Data:
    """Scores [n, experts] of the n experts that are chosen by the largest of `by`, default the scores themselves."""
    return Data(TopK(n, others), (scores,) if by is None or by is scores else (scores, by), scores.shape)


class LimitToGroups(Operation, name="limit to groups", only_moves=True):
    """Scores of the experts in the best groups; those in other groups cannot be chosen. Source: arXiv:2405.04434,
    section 2.2.2."""

    n_groups: int | Unknown
    n_active: int | Unknown
    by: Literal["max", "top 2"] = "max"  # what makes a group good: its best score, or the sum of its two best
    excluded: float = float("-inf")  # score of experts in other groups

    def describe(self) -> str:
        if not is_known(self.n_groups, self.n_active):
            return ""
        by = "their best score" if self.by == "max" else "the sum of their two best scores"
        return f"{self.n_active} of {self.n_groups} groups, by {by}"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        n_groups = int(require(self.n_groups))
        if n_groups <= 1:
            return x
        grouped = x.reshape(len(x), n_groups, -1)
        best = np.sort(grouped, axis=-1)[..., -2:].sum(-1) if self.by == "top 2" else grouped.max(-1)
        allowed = np.repeat(choose_largest(best, int(require(self.n_active))), grouped.shape[-1], axis=-1)
        return np.where(allowed, x, np.float32(self.excluded))


def limit_to_groups(
    scores: Data,
    n_groups: int | Unknown,
    n_active: int | Unknown,
    by: Literal["max", "top 2"] = "max",
    *,
    excluded: float = float("-inf"),
) -> Data:
    """Scores [n, experts] by which only experts of the best groups are chosen. One group is no step."""
    is_one = isinstance(n_groups, int) and n_groups <= 1
    return scores if is_one else Data(LimitToGroups(n_groups, n_active, by, excluded), (scores,), scores.shape)


@make_step("given experts", Move, phrase="looked up by token id")
def given_experts(scores: Array, indices: Array) -> Array:
    """Scores of the experts with these indices, [n, active], and 0 for the others."""
    times = np.zeros(scores.shape, np.float32)  # an expert may be given twice
    np.add.at(times, (np.arange(len(scores))[:, None], indices.astype(np.int64)), 1)
    return np.asarray(scores * times, np.float32)


@make_step("limit capacity", Move, phrase="at most {capacity:,} tokens per expert")
def limit_capacity(weights: Array, capacity: int | Unknown) -> Array:
    """Weights of experts, each of which takes only so many tokens of a text, the first ones. Source: arXiv:2101.03961,
    section 2.2."""
    return np.where((weights != 0).cumsum(axis=0) <= require(capacity), weights, np.float32(0))


class NormaliseWeights(Operation, name="normalise"):
    """Weights divided by their sum."""

    saves_inputs: ClassVar[bool] = False  # the backward pass can do with its output, which the experts save
    when: bool | Unknown = True
    least_sum: float = 0.0  # added to the sum

    def describe(self) -> str:
        return "weights sum to 1" if self.when is True else "if norm_topk_prob"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        return x / (x.sum(-1, keepdims=True) + np.float32(self.least_sum)) if require(self.when) else x


def normalise_weights(weights: Data, when: bool | Unknown = True, *, least_sum: float = 0.0) -> Data:
    """Weights [n, experts] that sum to 1; no step if `when` is false."""
    return weights if when is False else Data(NormaliseWeights(when, least_sum), (weights,), weights.shape)


@make_step("sparse mixer", phrase="top {n}")
def sparse_mixer(logits: Array, n: int, tolerance: float | Unknown) -> Array:
    """Router logits to the weights of n experts: each choice is weighted by a softmax over the logits near it. Source:
    arXiv:2409.12136; `sparsemixer` of the reference, modeling_phimoe.py.

    `tolerance`: which logits are near enough to the largest: half of the share.
    """
    rest, y = logits, np.zeros_like(logits)
    for _ in range(int(n)):
        best = choose_largest(rest, 1)
        most = rest.max(-1, keepdims=True)
        near = (most - logits) / np.maximum(np.abs(logits), most) <= 2 * require(tolerance)
        y = np.where(best, softmax_rows(np.where(near, rest, -np.inf)), y)
        rest = np.where(best, -np.inf, rest)
    return np.asarray(y, np.float32)


@make_step("product keys", shape=lambda logits, side: (*logits.shape[:1], side * side))
def product_keys(logits: Array, side: int) -> Array:
    """Logits of the rows and then of the columns of a square of experts, [n, 2 · side], to their sums, [n, side²].
    Source: arXiv:1907.05242, section 3.1."""
    rows, columns = logits.reshape(2, len(logits), -1)  # regroups the logits of different tokens: Doge
    return np.asarray((rows[:, :, None] + columns[:, None, :]).reshape(len(logits), -1))


def add_routing_bias(scores: Data, bias: Weight | None) -> Data:
    """What experts are chosen by: their scores [n, experts] plus one value for each. Source: arXiv:2412.19437, section
    2.1.2."""
    return scores if bias is None else Data(AddVector(), (scores,), scores.shape, (bias,))


def route(
    logits: Data,
    n: Size,
    scoring: str | Unknown,
    *,
    bias: Weight | None = None,
    normalise: bool | Unknown = False,
    least_sum: float = 0.0,
    factor: float | Unknown = 1.0,
) -> Data:
    """Router logits [n, experts] to the weight of each expert, 0 if it is not chosen: scores, top k of scores plus
    routing bias, weights that sum to `factor`. `least_sum`: added to the sum that weights are divided by."""
    scores = activate(logits, scoring)
    chosen = top_k(scores, n, None if bias is None else add_routing_bias(scores, bias))
    return scale_by(normalise_weights(chosen, normalise, least_sum=least_sum), factor)


def softmax_of_top(logits: Data, n: Size) -> Data:
    """Router logits [n, experts] to the softmax over those of the n chosen experts, 0 for the others."""
    return activate(top_k(logits, n, others=float("-inf")), "softmax")
