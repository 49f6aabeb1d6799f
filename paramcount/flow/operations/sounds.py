"""Steps of models that read the samples of a sound: kernels of another layout, gated biases, codes, speakers."""

from __future__ import annotations

from collections.abc import Sequence

from paramcount.flow.graph import Data, Size, Weight, make_step
from paramcount.flow.operation import Array, Move, Operation, Pass, Shape, np
from paramcount.flow.operations.convolutions import RowConvolution, WeightNorm, convolve_frames
from paramcount.flow.operations.elementwise import Rescaling, sigmoid
from paramcount.flow.operations.padding import Zeros
from paramcount.flow.operations.pooling import Pooling


class WeightNormByPlace(WeightNorm):
    """The same with a length for each place along the kernel instead: the last axis."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        direction, *others, length = weights
        size = np.sqrt((direction * direction).sum((0, 1), keepdims=True))
        return self.convolution.compute(run, inputs, (length * direction / size, *others), shape)


def normalise_kernel_by_place(x: Data) -> Data:
    """The result of a convolution over rows, whose kernel is stored as a direction and a length for each place."""
    kernel, *others = x.weights
    name = kernel.name.removesuffix("weight") + "parametrizations.weight.original"
    length = Weight(name + "0", kernel.component, (1, 1, kernel.shape[2]))
    return Data(WeightNormByPlace(x.operation), x.inputs, x.shape, (kernel._replace(name=name + "1"), *others, length))


def convolve_strides(x: Data, name: str, group: Size, width: Size, stride: int, padding: Zeros) -> Data:
    """Each group of so many channels over `width` frames, the next ones `stride` away: [n, d] to [n / stride, d]."""
    found = convolve_frames(x, name, x.shape[-1], width, stride=stride, padding=padding)
    kernel, bias = (weight._replace(component="position") for weight in found.weights)
    kernel = kernel._replace(shape=(x.shape[-1], group, width))
    return Data(RowConvolution(width, stride, padding, grouped=True), (x,), ("blocks", x.shape[-1]), (kernel, bias))


@make_step("split rows", Move, phrase="each becomes several", shape=lambda x, d: ("frames", d))
def unfold_rows(x: Array, d: int) -> Array:
    """Rows of several vectors of d values to one row for each: [n, several · d] to [several · n, d]."""
    return x.reshape(-1, int(d))


class FlatConvolution(RowConvolution):
    """A convolution over frames whose kernel is stored as the matrix of a linear layer, [out, width · in]."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        matrix, *others = weights
        kernel = matrix.reshape(len(matrix), int(self.width), -1).transpose(0, 2, 1)
        return super().compute(run, inputs, (kernel, *others), shape)


def convolve_flat(x: Data, name: str, channels: Size, width: Size, *, dilation: int = 1) -> Data:
    """All channels over `width` frames, `dilation` apart, without frames around them: [n, in] to [fewer, channels]."""
    found = convolve_frames(x, name, channels, width, dilation=dilation, padding=Zeros(0))
    kernel, *others = (weight._replace(component="other") for weight in found.weights)
    flat = kernel._replace(shape=(channels, width * x.shape[-1]))
    return Data(FlatConvolution(width, 1, Zeros(0), dilation), (x,), found.shape, (flat, *others))


class GatedBias(Operation, name="gate", phrase="a bias on the attention scores, times a gate per token and head"):
    """A bias [n, m, heads] times 2 + a · (b · c − 1), where the halves of the second input, [n, heads, d], sum to the
    inverse sigmoids of a and b, and c is a learned value per head. Source: arXiv:2110.13900, section 3.1.
    """

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        bias, x = inputs
        a, b = np.moveaxis(sigmoid(x.reshape(*x.shape[:2], 2, -1).sum(-1)), -1, 0)
        return bias * (a * (b * weights[0].reshape(-1) - 1) + 2)[:, None]


def gate_bias(bias: Data, x: Data, name: str) -> Data:
    weight = Weight(name, "position", (1, x.shape[1], 1, 1))
    return Data(GatedBias(), (bias, x), bias.shape, (weight,))


class BestCodes(Move, name="best codes", phrase="the row with the largest score of each group"):
    """Scores of the rows of a table, [n, groups · rows], to the best row of each group, side by side.

    Stored [1, groups · rows, d].
    """

    n_groups: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (scores,), table, groups = inputs, weights[0][0], int(self.n_groups)
        best = scores.reshape(len(scores), groups, -1).argmax(-1)
        return table.reshape(groups, -1, table.shape[-1])[np.arange(groups), best].reshape(len(scores), -1)


def best_codes(scores: Data, name: str, groups: Size, d: Size) -> Data:
    """[n, groups · rows] to [n, groups · d]."""
    table = Weight(name, "other_embedding", (1, scores.shape[-1], d))
    return Data(BestCodes(groups), (scores,), (*scores.shape[:1], groups * d), (table,))


class SampleDeviation(Pooling, name="deviation"):
    """The standard deviation of each channel, of which the rows are a sample."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return np.asarray(inputs[0].std(0, ddof=1, keepdims=True))


def sample_deviation(x: Data) -> Data:
    return Data(SampleDeviation(), (x,), ("text", *x.shape[1:]))


class Similarities(Rescaling, name="similarities", phrase="cosine similarity to each column"):
    """The cosines of the angles between vectors and the columns of a matrix, stored [in, out]."""

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return int(out[0]) * int(weights[0][0]) * int(weights[0][1])

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,), (matrix,) = inputs, weights
        x = x / np.linalg.norm(x, axis=-1, keepdims=True)
        return np.asarray(x @ (matrix / np.linalg.norm(matrix, axis=0)))


def similarities(x: Data, name: str, n: Size) -> Data:
    """[n, d] to the cosine similarity of each vector to n learned ones."""
    return Data(Similarities(), (x,), (*x.shape[:-1], n), (Weight(name, "other", (x.shape[-1], n)),))
