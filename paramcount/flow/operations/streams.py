"""Several residual streams: the weights that mix them, and the mixture.

Source: hyper-connections, arXiv:2409.19606; manifold-constrained as in arXiv:2512.24880.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from paramcount.flow.graph import Data, Size, Weight
from paramcount.flow.operation import Array, Operation, Pass, Shape, Unknown, np, require
from paramcount.flow.operations.elementwise import sigmoid, softmax_rows


class StreamWeights(Operation):
    """All streams of a token [n, streams, d], under one RMS norm, to the weights by which they are mixed.

    One per stream for what a block reads: sigmoid + ε; if there are two scales or three, one per stream for what it
    returns: magnitude · sigmoid; if there are three, one per pair of streams, doubly stochastic: softmax + ε, then
    `iterations` of the Sinkhorn-Knopp algorithm. Weights: a matrix, its bias, and a scale for each of these kinds.
    """

    name: ClassVar[str] = "mixing weights"
    n_streams: Size
    norm_eps: float | Unknown
    eps: float | Unknown
    magnitude: float | Unknown = 2.0
    output_eps: float | Unknown = 0.0  # added to the weights of what a block returns
    iterations: int | Unknown = 1

    def describe(self) -> str:
        return "determine how the streams are mixed"

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        rows, columns = weights[0]
        return out[0] * rows * columns

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,), (matrix, bias, scales) = inputs, weights
        n, eps = int(self.n_streams), np.float32(require(self.eps))
        flat = x.reshape(len(x), -1)
        flat = flat / np.sqrt((flat * flat).mean(-1, keepdims=True) + np.float32(require(self.norm_eps)))
        logits = flat @ matrix.T
        scale = np.repeat(scales, (n, n, n * n)[: len(scales)])
        logits = logits * scale + bias
        parts = [sigmoid(logits[:, :n]) + eps]
        if len(scales) > 1:
            returned = np.float32(require(self.magnitude)) * sigmoid(logits[:, n : 2 * n])
            parts.append(returned + np.float32(require(self.output_eps)))
        if len(scales) > 2:
            across = softmax_rows(logits[:, 2 * n :].reshape(-1, n, n)) + eps
            across = across / (across.sum(-2, keepdims=True) + eps)
            for _ in range(int(require(self.iterations)) - 1):
                across = across / (across.sum(-1, keepdims=True) + eps)
                across = across / (across.sum(-2, keepdims=True) + eps)
            parts.append(across.reshape(len(x), -1))
        return np.concatenate(parts, axis=-1).astype(np.float32)


def stream_weights(x: Data, weights: tuple[Weight, Weight, Weight], operation: StreamWeights) -> Data:
    """[n, streams, d] to [n, number of weights]."""
    return Data(operation, (x,), (*x.shape[:1], weights[0].shape[0]), weights)


class MixStreams(Operation):
    """Each stream that comes out is a weighted sum of those that go in.

    Inputs: [n, streams, d], or [n, d] of one, and the weights [n, in · out]. One stream comes out as [n, d].
    """

    to: Literal["collapse", "expand to streams", "mix streams"]
    out_first: bool = False  # the weights are [n, out · in]

    @property
    def label(self) -> str:
        return self.to

    def describe(self) -> str:
        if self.to == "expand to streams":
            return "scaled by the weight of each stream"
        return "weighted sum of the streams" if self.to == "collapse" else "weighted sums of the streams"

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return out[0] * inputs[1][1] * out[-1]

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x, shares = inputs
        x = x[:, None] if x.ndim == 2 else x
        matrix = (
            shares.reshape(len(x), -1, x.shape[1])
            if self.out_first
            else (shares.reshape(len(x), x.shape[1], -1).transpose(0, 2, 1))
        )
        return (matrix @ x).reshape(len(x), *shape[1:])


def collapse(x: Data, weights: Data) -> Data:
    """The weighted sum of the streams."""
    return Data(MixStreams("collapse"), (x, weights), (*x.shape[:1], *x.shape[2:]))


def to_streams(x: Data, weights: Data) -> Data:
    """[n, d] to every stream, times its weight."""
    return Data(MixStreams("expand to streams"), (x, weights), (*x.shape[:1], weights.shape[-1], *x.shape[1:]))


def mix_streams(x: Data, weights: Data, *, out_first: bool = False) -> Data:
    return Data(MixStreams("mix streams", out_first), (x, weights), x.shape)
