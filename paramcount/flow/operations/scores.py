"""What some models do with attention scores and weights, besides a mask and softmax."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, pi
from typing import ClassVar, Literal

from paramcount.flow.graph import Data, Size, Weight, make_step, multiply
from paramcount.flow.operation import Array, Form, Move, Operation, Pass, Shape, Unknown, Value, np, require
from paramcount.flow.operations.attention import OnScores, find_scale, multiply_heads

INVERSE_STEPS = 6


@make_step(
    "bias by distance",
    Move,
    phrase="that of each key's distance",
    saves_inputs=False,
    shape=lambda bias, k: (bias.shape[0], k.shape[0], bias.shape[1]),
)
def bias_by_distance(run: Pass, bias: Array, k: Array) -> Array:
    """Biases for each distance, [n, heads, distances], to those of each key, [n, m, heads]: 0 beyond."""
    m, end = len(k), int(run.positions[-1]) + 1
    distances = run.positions[:, None] - np.arange(end - m, end)
    reached = (distances >= 0) & (distances < bias.shape[-1])
    found = np.take_along_axis(bias, np.where(reached, distances, 0)[:, None], axis=-1)
    return np.where(reached[:, None], found, 0).transpose(0, 2, 1)


@make_step(
    "bias by place",
    Move,
    phrase="that of the distance in {along}",
    saves_inputs=False,
    shape=lambda bias, places, along: (bias.shape[0], bias.shape[0], bias.shape[1]),
)
def bias_by_place(bias: Array, places: Array, along: Literal["rows", "columns"]) -> Array:
    """Biases for each distance of two patches in rows, or in columns, from -(distances // 2) on, [n, heads, distances],
    to those of each pair, [n, n, heads]. `places`: of patches, [n, 2]."""
    at = places[:, int(along == "columns")]
    distances = at[:, None] - at + bias.shape[-1] // 2
    # patches that are farther apart do not see one another
    return np.take_along_axis(bias, np.clip(distances, 0, bias.shape[-1] - 1)[:, None], axis=-1).transpose(0, 2, 1)


@make_step("put itself last", OnScores, phrase="a token attends to itself only if to no other token")
def put_itself_last(scores: Array) -> Array:
    """A token sees itself only if it sees no other. Source: LSHSelfAttention of the reference."""
    found, (n, m) = scores.copy(), scores.shape[-2:]
    found[..., np.arange(n), np.arange(m - n, m)] = np.float32(-1e5)
    return found


@make_step(
    "(1 − arccos / π)ⁿ",
    OnScores,
    phrase="probabilities of a hash collision, n = {exponent}",
    plain="probabilities of a hash collision",
    form=Form.ATTENTION_WEIGHTS,
)
def collisions(scores: Array, exponent: int | Unknown) -> Array:
    """Weights instead of softmax: how likely `exponent` random hyperplanes all have q and k, of length 1, on the same
    side. Their sum is not 1. Source: arXiv:2111.09714 §3."""
    return np.asarray((1 - np.arccos(np.clip(scores, -1, 1)) / np.float32(pi)) ** int(require(exponent)))


class Pseudoinverse(OnScores, name="pseudoinverse", phrase=f"of the attention weights, in {INVERSE_STEPS} steps"):
    """About the pseudoinverse of attention weights [heads, n, n]. Source: arXiv:2102.03902, equation 11."""

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return 4 * INVERSE_STEPS * int(multiply(out)) * out[-1]  # four products in each of the steps

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (weights_,) = inputs
        unit = np.eye(weights_.shape[-1], dtype=np.float32)
        z: Array = weights_.transpose(0, 2, 1) / weights_.sum(-2).max()
        for _ in range(INVERSE_STEPS):
            product = weights_ @ z
            z = 0.25 * z @ (13 * unit - product @ (15 * unit - product @ (7 * unit - product)))
        return z


def pseudoinverse(weights: Data) -> Data:
    return Data(Pseudoinverse(), (weights,), weights.shape)


class OwnScores(Operation, name="own scores", phrase="attention scores of the key in its own row", form=Form.SCORES):
    """The score of a key that only the query of the same row sees: [heads, n, 1]. Inputs: q and k, [n, heads, d], and
    a bias [n, heads]."""

    def list_saved(self, inputs: Sequence[Value]) -> Sequence[Value]:
        return inputs[1:2]

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        q, k, bias = inputs
        return ((q * find_scale(None, q) * k).sum(-1) + bias).T[..., None]


def own_scores(q: Data, k: Data, bias: Data) -> Data:
    return Data(OwnScores(), (q, k, bias), (q.shape[1], q.shape[0], 1))


class AddOwn(Operation, name="add own value", phrase="by the weight of the key in the same row"):
    """What a query sees, and the value of its own row by the last of its weights. Inputs: [n, heads, d_v], the weights
    [heads, n, …], and the values [n, heads, d_v]."""

    def list_saved(self, inputs: Sequence[Value]) -> Sequence[Value]:
        return inputs[2:]

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        y, a, own = inputs
        return y + a[..., -1].T[..., None] * own


def add_own(y: Data, weights: Data, v: Data) -> Data:
    return Data(AddOwn(), (y, weights, v), y.shape)


class ScoresOfTwo(Operation, name="QKᵀ", form=Form.SCORES):
    """Scores of two queries per row: one for the first keys, one for the later ones. Inputs: both, [n, heads, d], the
    keys, and what has as many rows as there are first keys. Source: arXiv:2010.01057 §3.2."""

    def list_saved(self, inputs: Sequence[Value]) -> Sequence[Value]:
        return inputs[:3]

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return int(multiply(inputs[0])) * inputs[1][0]

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        q, k, other, first = inputs
        scores, n = multiply_heads(q, k, find_scale(None, q)), len(first)
        scores[..., n:] = multiply_heads(other, k[n:], find_scale(None, q))
        return scores


def scores_of_two(q: Data, other: Data, k: Data, first: Data) -> Data:
    """[heads, n, m]. `first`: as many rows as there are keys that q meets; `other` meets the later ones."""
    return Data(ScoresOfTwo(), (q, k, other, first), (q.shape[1], q.shape[0], k.shape[0]))


class Differential(Operation, name="difference"):
    """The second half of the heads, times λ, subtracted from the first; an RMS norm of each; times 1 − λ₀.

    λ = exp(q1·k1) − exp(q2·k2) + λ₀ with four learned vectors, and λ₀ = 0.8 − 0.6·exp(−0.3·layer).
    Source: arXiv:2410.05258 §2.1.
    """

    phrase: ClassVar[str] = "first half of the heads − λ · second half, RMS norm, × (1 − λ₀)"
    eps: float | Unknown

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        start = 0.8 - 0.6 * exp(-0.3 * run.layer)
        q1, k1, q2, k2 = weights
        first, second = np.split(inputs[0], 2, axis=1)
        y = first - (np.exp(q1 @ k1) - np.exp(q2 @ k2) + np.float32(start)) * second
        y = y / np.sqrt((y * y).mean(-1, keepdims=True) + np.float32(require(self.eps)))
        return (y * np.float32(1 - start)).reshape(len(y), *shape[1:])


def differential(x: Data, prefix: str, d_head: Size, eps: float | Unknown) -> Data:
    """[n, heads, 2·d] to [n, heads, d]: half as many heads."""
    learned = tuple(Weight(prefix + f"lambda_{name}", "other", (d_head,)) for name in ("q1", "k1", "q2", "k2"))
    return Data(Differential(eps), (x,), (*x.shape[:2], d_head), learned)
