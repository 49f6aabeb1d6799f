"""Attention in steps: scores, softmax over what a mask shows, and the weighted sum of values.

q: [n, heads, d]; k: [m, kv_heads, d]; v: [m, kv_heads, d_v]; scores and weights: [heads, n, m]. Queries and keys
without heads, [n, d] and [m, d], have scores [n, m].
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, ClassVar, NamedTuple

from paramcount.errors import ParamcountError
from paramcount.flow.graph import Data, Size, Weight, multiply
from paramcount.flow.masks import Causal, Chosen, Groups, Mask, Pairs, Window
from paramcount.flow.operation import Array, Form, Operation, Pass, Shape, Unknown, Value, np, require
from paramcount.flow.operations.elementwise import LEAST_FLOAT32, soft_cap

HIDDEN = float("-inf")  # the score of a key that is not seen


class Cache(Operation, name="KV cache", form=Form.KV_CACHE, only_moves=True):
    """Rows of earlier tokens and the new ones: [n, …] to [m, …]. `mask`: its `trim` says what may be forgotten."""

    mask: Mask = Mask()
    grows: bool = True  # False: all rows are there from the first token on, such as those of an encoder's output

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        new, trim = inputs[0], self.mask.trim
        if not self.grows:
            return new
        rows = np.concatenate((run.state["rows"], new)) if "rows" in run.state else new
        run.state["rows"] = rows if trim is None else rows[max(0, len(rows) - (trim - 1)) :]
        return rows


def cache(x: Data, mask: Mask = Cache.mask) -> Data:
    """What later tokens read of x, too. `mask`: through which they see it."""
    return Data(Cache(mask, x.shape[0] == "tokens"), (x,), x.shape)


class OnScores(Operation, row_axis=-2):
    """A step from attention scores, or weights, to others: [heads, n, m]."""

    saves_inputs: ClassVar[bool] = False  # costs count the weights once


class Scores(Operation, name="QKᵀ", form=Form.SCORES):
    """QKᵀ, scaled: [heads, n, m]."""

    scale: float | Unknown | None = None  # None: 1 / √d
    longest: int | Unknown | None = None  # keys that are all attended to; of more, models attend to some blocks alone

    def describe(self) -> str:
        if self.scale == 1:
            return "not scaled"
        return f"× {self.scale:g}" if isinstance(self.scale, (int, float)) else ""

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        q, k = inputs
        return int(multiply(q)) * k[0]

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        q, k = inputs
        if self.longest is not None and len(k) > require(self.longest):
            found = f"{len(k):,} tokens need block attention, which is not supported"
            raise ParamcountError(found, expected=f"at most {self.longest:,} tokens")
        products = multiply_heads(q, k, find_scale(self.scale, q))
        return products[0] if q.ndim == 2 else products


def scores(q: Data, k: Data, scale: float | Unknown | None = None, *, longest: int | Unknown | None = None) -> Data:
    """How much each query meets each key: [heads, n, m]. `scale`: default 1 / √d. `longest`: more keys are not
    supported."""
    return Data(Scores(scale, longest), (q, k), (*q.shape[1:-1], q.shape[0], k.shape[0]))


def multiply_heads(q: Array, k: Array, scale: Any) -> Array:
    """QKᵀ of every head, where neighbouring queries share a key: [heads, n, m]."""
    q, k = (x[:, None] if x.ndim == 2 else x for x in (q, k))
    n, heads, d = q.shape
    queries = q.transpose(1, 0, 2).reshape(k.shape[1], -1, d) * scale
    found: Array = (queries @ k.transpose(1, 2, 0)).reshape(heads, n, len(k))
    return found


def find_scale(scale: float | Unknown | None, q: Array) -> Any:
    return np.float32(1 / sqrt(q.shape[-1]) if scale is None else require(scale))


def to_all_heads(x: Array, heads: int) -> Array:
    """[groups of heads, …] to [heads, …]: neighbouring heads share what belongs to a group."""
    return x if len(x) in (1, heads) else np.repeat(x, heads // len(x), axis=0)


class AddBias(OnScores, name="add bias", phrase="added to the attention scores", form=Form.SUM):
    """Scores and a bias: [n, m, heads], or [n, m] for all heads, or [m, kv_heads] for all queries, if `by_key`."""

    by_key: bool = False

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        scores, bias = inputs
        m = scores.shape[-1]
        if self.by_key:
            return scores + to_all_heads(bias[-m:].T[:, None], len(scores))
        bias = bias[:, -m:]  # without those of keys that the cache no longer has
        return scores + (bias.transpose(2, 0, 1) if bias.ndim == 3 else bias)


def add_bias(scores: Data, bias: Data, *, by_key: bool = False) -> Data:
    return Data(AddBias(by_key), (scores, bias), scores.shape)


class Hide(OnScores, form=Form.MASK):
    """Scores of keys that a mask does not show become -∞. Inputs: the scores, and the data of the mask."""

    mask: Mask

    @property
    def label(self) -> str:
        if self.mask.find(Chosen):
            return "select tokens"
        return "own group" if self.mask.find(Groups) and not self.mask.is_causal else "mask"

    def describe(self) -> str:
        if isinstance(self.mask, Chosen):
            return "attends only to the selected tokens"
        return f"each token attends to {self.mask.describe()}"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        scores, *data = inputs
        n, m = scores.shape[-2:]
        pairs = Pairs(n, m, int(run.positions[-1]) + 1, run.layer)
        shown = self.mask.show(pairs, iter(data))
        if shown is True:
            return scores
        if shown.ndim == 3:  # type: ignore[union-attr]
            shown = to_all_heads(shown, len(scores))  # type: ignore[arg-type]
        return np.where(shown, scores, np.float32(HIDDEN))


def hide(scores: Data, mask: Mask) -> Data:
    """The scores of the keys that each query sees."""
    mask, data = mask.take_data()
    return Data(Hide(mask), (scores, *data), scores.shape)


class Softmax(OnScores, name="softmax", phrase="attention weights", form=Form.ATTENTION_WEIGHTS):
    """Scores to weights whose sum is 1, or 0 if a query sees nothing. Scores of several kinds of keys come side by
    side. A weight: sinks [heads], scores of no key, which take a part of the sum."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        sinks = [np.broadcast_to(w.reshape(-1, 1, 1), (*inputs[0].shape[:2], 1)) for w in weights]
        parts = (*inputs, *sinks)
        found = np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
        found = found - np.maximum(found.max(-1, keepdims=True), np.float32(LEAST_FLOAT32))  # all of a row may be -∞
        np.exp(found, out=found)
        found /= np.maximum(found.sum(-1, keepdims=True), 1)  # less than 1 if there is nothing to attend to
        return found[..., : found.shape[-1] - len(sinks)]


def softmax(scores: Data, *others: Data, mask: Mask | None = None, sinks: Weight | None = None) -> Data:
    """Attention weights. `others`: scores of further kinds of keys. `mask`: hides some of the first. `sinks`: one more
    learned score per head."""
    shape = scores.shape
    for other in others:
        m, more = shape[-1], other.shape[-1]  # a name if one of them depends on the input
        shape = (*shape[:-1], f"{m} and {more}" if isinstance(m, str) or isinstance(more, str) else m + more)
    shown = scores if mask is None else hide(scores, mask)
    return Data(Softmax(), (shown, *others), shape, (sinks,) if sinks else ())


class WeightedSum(Operation, name="· V", phrase="weighted sum of values", form=Form.WEIGHTED_VALUES):
    """The sum of values by attention weights: [n, heads, d_v]. Values of several kinds of keys come in the order of
    their scores."""

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return int(multiply(out)) * sum(values[0] for values in inputs[1:])

    def list_saved(self, inputs: Sequence[Value]) -> Sequence[Value]:
        return inputs[1:]  # costs count the weights once

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        a, *values = inputs
        values = [v[:, None] if v.ndim == 2 else v for v in values]
        v = np.concatenate(values) if len(values) > 1 else values[0]
        n, m = a.shape[-2], len(v)
        y = a[..., :m].reshape(v.shape[1], -1, m) @ v.transpose(1, 0, 2)
        return y.reshape(-1, n, v.shape[-1]).transpose(1, 0, 2).reshape(n, *shape[1:])


class Scored(NamedTuple):
    """The scores of one kind of keys in an attention."""

    scores: Data  # q and k are its first inputs
    mask: Mask | None = None  # what hides some of them
    chosen: Data | None = None  # the indices of those that are chosen


def list_scored(data: Data) -> tuple[Scored, ...]:
    """The scores that attention weights, or changed scores, are made of; none if `data` are neither."""
    operation, inputs = data.operation, data.inputs
    if operation.form is Form.SCORES:
        return (Scored(data),)
    if isinstance(operation, Softmax):
        return tuple(scored for part in inputs for scored in list_scored(part))
    if isinstance(operation, Hide):
        mask = operation.mask
        return tuple(
            Scored(scores, mask if other is None else other & mask, chosen or find_chosen(data, mask))
            for scores, other, chosen in list_scored(inputs[0])
        )
    is_elementwise = len(inputs) == 1 and data.shape is inputs[0].shape and not data.bodies  # a soft cap
    return list_scored(inputs[0]) if is_elementwise or isinstance(operation, OnScores) else ()


def find_chosen(data: Data, mask: Mask) -> Data | None:
    """The indices of the chosen tokens among the inputs of a step that hides the others."""
    at = 1
    for part in mask.parts:
        if isinstance(part, Chosen):
            return data.inputs[at]
        at += part.n_data
    return None


def weighted_sum(weights: Data, *values: Data) -> Data:
    """The values that each query sees, weighted."""
    shape = (weights.shape[-2], *weights.shape[:-2], values[0].shape[-1])
    y = Data(WeightedSum(), (weights, *values), shape)
    for part, v in zip(list_scored(weights), values):
        part.scores.earlier = (v,)
    return y


def attend(
    q: Data,
    k: Data,
    v: Data,
    *biases: Data,
    mask: Mask | None = None,
    scale: float | Unknown | None = None,
    cap: float | Unknown | None = None,
    sinks: Weight | None = None,
) -> Data:
    """softmax(QKᵀ · scale + biases) · V: [n, heads, d_v].

    `biases`: see `AddBias`. `mask`: which keys each query sees; default all. `cap`: a smooth limit of the scores before
    biases. `sinks`: one more learned score per head.
    """
    s = soft_cap(scores(q, k, scale), cap)
    for bias in biases:
        s = add_bias(s, bias)
    return weighted_sum(softmax(s, mask=mask, sinks=sinks), v)


def attend_causally(
    q: Data,
    k: Data,
    v: Data,
    *biases: Data,
    window: Size | None = None,
    scale: float | Unknown | None = None,
    cap: float | Unknown | None = None,
    sinks: Weight | None = None,
) -> Data:
    """The same of a text to itself: keys and values are cached, and no token sees later ones. `window`: tokens that it
    sees, itself included."""
    mask = see_earlier(window)
    return attend(q, cache(k, mask), cache(v, mask), *biases, mask=mask, scale=scale, cap=cap, sinks=sinks)


def attend_to_memory(q: Data, k: Data, v: Data, *biases: Data, scale: float | Unknown | None = None) -> Data:
    """Attention to an encoder's output, whose keys and values are computed once and cached."""
    return attend(q, cache(k), cache(v), *biases, scale=scale)


def see_earlier(window: Size | None = None) -> Mask:
    """The mask of a decoder: no later tokens, and of the earlier ones those in a window."""
    return Causal() if window is None else Causal() & Window(window)
