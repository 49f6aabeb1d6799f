"""Several residual streams: the weights that mix them, and the mixture.

Source: hyper-connections, arXiv:2409.19606; manifold-constrained as in arXiv:2512.24880.
"""

from __future__ import annotations

from collections.abc import Sequence

from paramcount.flow.graph import Data, Size, Weight
from paramcount.flow.operation import Array, Operation, Pass, Shape, Unknown, np, require
from paramcount.flow.operations.elementwise import sigmoid, softmax_rows


class ReadWeights(Operation, name="mixing weights", phrase="determine how the streams are mixed"):
    """The weights by which a block reads all streams of a token [n, streams, d], one per stream: sigmoid + ε of linear
    values of the streams under one RMS norm.

    Weights: a matrix, its bias, and a scale for each kind of mixing weights.
    """

    n_streams: Size
    norm_eps: float | Unknown
    eps: float | Unknown

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        rows, columns = weights[0]
        return out[0] * rows * columns

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,), (matrix, bias, scales) = inputs, weights
        n, flat = int(self.n_streams), x.reshape(len(x), -1)
        flat = flat / np.sqrt((flat * flat).mean(-1, keepdims=True) + np.float32(require(self.norm_eps)))
        logits = flat @ matrix.T * np.repeat(scales, (n, n, n * n)[: len(scales)]) + bias
        return np.concatenate(self.weigh(logits, n, np.float32(require(self.eps))), axis=-1).astype(np.float32)

    def weigh(self, logits: Array, n: int, eps: np.float32) -> tuple[Array, ...]:
        return (sigmoid(logits[:, :n]) + eps,)


class ReadAndWriteWeights(ReadWeights):
    """The same, and those by which streams take what the block returns, one per stream: magnitude · sigmoid + ε."""

    magnitude: float | Unknown
    output_eps: float | Unknown

    def weigh(self, logits: Array, n: int, eps: np.float32) -> tuple[Array, ...]:
        written = np.float32(require(self.magnitude)) * sigmoid(logits[:, n : 2 * n])
        return *super().weigh(logits, n, eps), written + np.float32(require(self.output_eps))


class ConnectionWeights(ReadWeights):
    """The same, and those by which streams are mixed, one per pair, doubly stochastic: softmax + ε, then `iterations`
    of the Sinkhorn-Knopp algorithm. What the block returns is taken by 2 · sigmoid.
    """

    iterations: int | Unknown

    def weigh(self, logits: Array, n: int, eps: np.float32) -> tuple[Array, ...]:
        across = softmax_rows(logits[:, 2 * n :].reshape(-1, n, n)) + eps
        across = across / (across.sum(-2, keepdims=True) + eps)
        for _ in range(int(require(self.iterations)) - 1):
            across = across / (across.sum(-1, keepdims=True) + eps)
            across = across / (across.sum(-2, keepdims=True) + eps)
        written = np.float32(2) * sigmoid(logits[:, n : 2 * n])
        return *super().weigh(logits, n, eps), written, across.reshape(len(logits), -1)


def stream_weights(x: Data, weights: tuple[Weight, Weight, Weight], operation: ReadWeights) -> Data:
    """[n, streams, d] to [n, number of weights]."""
    return Data(operation, (x,), (*x.shape[:1], weights[0].shape[0]), weights)


class MixStreams(Operation, name="mix streams", phrase="weighted sums of the streams"):
    """Each stream that comes out is a weighted sum of those that go in.

    Inputs: [n, streams, d], or [n, d] of one, and the weights [n, in · out]. One stream comes out as [n, d].
    """

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return out[0] * inputs[1][1] * out[-1]

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x = inputs[0] if inputs[0].ndim == 3 else inputs[0][:, None]
        return (self.arrange(inputs[1], x.shape[1]) @ x).reshape(len(x), *shape[1:])

    def arrange(self, weights: Array, n: int) -> Array:
        """As matrices [n, out, in]."""
        return weights.reshape(len(weights), n, -1).transpose(0, 2, 1)


class PredictStreams(MixStreams):
    """The same with the weights [n, out · in]. Source: arXiv:2301.13310."""

    def arrange(self, weights: Array, n: int) -> Array:
        return weights.reshape(len(weights), -1, n)


class Collapse(MixStreams, name="collapse", phrase="weighted sum of the streams"):
    """The weighted sum of the streams."""


class ExpandToStreams(MixStreams, name="expand to streams", phrase="scaled by the weight of each stream"):
    """[n, d] to every stream, times its weight."""


def collapse(x: Data, weights: Data) -> Data:
    return Data(Collapse(), (x, weights), (*x.shape[:1], *x.shape[2:]))


def to_streams(x: Data, weights: Data) -> Data:
    return Data(ExpandToStreams(), (x, weights), (*x.shape[:1], weights.shape[-1], *x.shape[1:]))


def mix_streams(x: Data, weights: Data) -> Data:
    return Data(MixStreams(), (x, weights), x.shape)


def predict_streams(x: Data, weights: Data) -> Data:
    return Data(PredictStreams(), (x, weights), x.shape)
