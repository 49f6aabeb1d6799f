"""Convolutions over tokens, frames and patches, and shifts by one token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from paramcount.flow.graph import Data, Size, Weight, make_step, multiply
from paramcount.flow.operation import Array, Form, Move, Operation, Pass, Shape, Unknown, np, require
from paramcount.flow.operations.padding import AROUND, BEFORE, LATER, SAME, Padding, Zeros


class Convolution(Operation, name="convolution", form=Form.CONVOLUTION, named_by_weights=True):
    """Adjacent rows or patches times a kernel, stored [out, in or size of a group, …], and a bias [out].

    As many groups of channels as fill the input each have their own matrices.
    """

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return multiply((*out[:-1], *weights[0]))


def mix_channels(x: Array, matrix: Array) -> Array:
    """[n, in] times [out, in], or [out, size of a group], to [n, out]."""
    group = matrix.shape[1]
    if group == x.shape[1]:
        return x @ matrix.T
    if group == 1 and len(matrix) == x.shape[1]:
        return x * matrix[:, 0]
    n_groups = x.shape[1] // group
    y = x.reshape(len(x), n_groups, 1, group) @ matrix.reshape(n_groups, -1, group).transpose(0, 2, 1)
    return np.asarray(y.reshape(len(x), -1))


def add_kernel_bias(y: Array | int, weights: Sequence[Array]) -> Array:
    return y + weights[1] if len(weights) > 1 else np.asarray(y)


def store_kernel(name: str, component: str, shape: tuple[Size, ...], *, bias: bool) -> tuple[Weight, ...]:
    """A kernel [out, …] and its bias, if it has one."""
    kernel = Weight(name + ".weight", component, shape)
    return (kernel, Weight(name + ".bias", component, shape[:1])) if bias else (kernel,)


# ---- over tokens or frames


class CausalConvolution(Convolution):
    """Each of the channels, or each group of them, over the last `width` tokens: [n, channels] to the same.

    It keeps its last inputs, [channels, width - 1].
    """

    width: Size
    channels: Size
    group: Size | None = None
    n_zeros: Size | None = None  # rows of zeros in front of a text, if not as many as a token reads besides itself

    @property
    def state_shapes(self) -> tuple[tuple[Size, ...], ...]:
        return ((self.channels, self.width - 1),)

    def describe(self) -> str:
        return "causal, depthwise" if self.group is None else "causal, one matrix per group of channels"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,), kernel, width = inputs, weights[0], weights[0].shape[2]
        n_zeros = width - 1 if self.n_zeros is None else int(self.n_zeros)
        padded = np.concatenate((run.state.get("inputs", np.zeros((n_zeros, x.shape[1]), np.float32)), x))
        n = len(padded) - (width - 1)
        run.state["inputs"] = padded[n:]
        return add_kernel_bias(sum(mix_channels(padded[i : i + n], kernel[:, :, i]) for i in range(width)), weights)


def convolve(
    x: Data,
    name: str,
    d_conv: Size,
    *,
    bias: bool = True,
    component: str = "mixer.convolution",
    group: Size | None = None,
    n_zeros: Size | None = None,
) -> Data:
    """Each channel, or each group of so many, over the last d_conv tokens: [n, channels] to [n, channels].

    `n_zeros`: rows of zeros in front of a text: d_conv - 1, unless the result has more rows there than x, for another
    convolution, which then needs none.
    """
    channels = x.shape[-1]
    weights = store_kernel(name, component, (channels, 1 if group is None else group, d_conv), bias=bias)
    return Data(CausalConvolution(d_conv, channels, group, n_zeros), (x,), x.shape, weights)


class RowConvolution(Convolution):
    """All channels, or each group of them, over adjacent rows that are read at once: [n, in] to [n / stride, out]."""

    width: Size
    stride: int = 1
    padding: Padding | Zeros = AROUND
    dilation: int | Unknown = 1  # rows from one that a step reads to the next
    grouped: bool = False
    rows: Literal["frames", "tokens"] = "frames"

    def describe(self) -> str:
        adjacent = f"{self.width} {'past' if self.padding.sees_past else 'adjacent'} {self.rows}"
        if isinstance(self.dilation, int) and self.dilation > 1:
            adjacent = f"{self.width} {self.rows}, {self.dilation} apart"
        grouped = ", one matrix per group of channels" if self.grouped else ""
        return f"over {adjacent}{grouped}" + (f", stride {self.stride}" if self.stride > 1 else "")

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,), kernel, apart = inputs, weights[0], int(require(self.dilation))
        width = kernel.shape[2]
        padded, reach = self.padding.pad(x, (width - 1) * apart, self.stride), (width - 1) * apart
        n = (len(padded) - reach - 1) // self.stride + 1
        rows = [padded[i * apart :][: (n - 1) * self.stride + 1 : self.stride] for i in range(width)]
        return add_kernel_bias(sum(mix_channels(rows[i], kernel[:, :, i]) for i in range(width)), weights)


def convolve_frames(
    x: Data,
    name: str,
    channels: Size,
    width: Size,
    *,
    stride: int = 1,
    dilation: int | Unknown = 1,
    padding: Padding | Zeros = AROUND,
    bias: bool = True,
) -> Data:
    """All channels over `width` neighbouring frames, `dilation` apart: [n, in] to [n / stride, channels]."""
    weights = store_kernel(name, "mixer", (channels, x.shape[-1], width), bias=bias)
    return Data(RowConvolution(width, stride, padding, dilation), (x,), (x.shape[0], channels), weights)


def convolve_earlier_frames(x: Data, name: str, width: Size, *, bias: bool = False) -> Data:
    """Each channel over a frame and those before it: [n, channels] to the same, read at once."""
    weights = store_kernel(name, "mixer", (x.shape[-1], 1, width), bias=bias)
    return Data(RowConvolution(width, padding=BEFORE, grouped=True), (x,), x.shape, weights)


def convolve_tokens(
    x: Data,
    name: str,
    channels: Size,
    width: Size,
    *,
    group: Size | None = None,
    component: str = "mixer",
    bias: bool = True,
    padding: Padding = AROUND,
) -> Data:
    """All channels, or each group of so many, over `width` neighbouring tokens on both sides: [n, in] to [n, out]."""
    shape = (channels, x.shape[-1] if group is None else group, width)
    operation = RowConvolution(width, padding=padding, grouped=group is not None, rows="tokens")
    return Data(operation, (x,), (x.shape[0], channels), store_kernel(name, component, shape, bias=bias))


class HeadConvolution(Convolution, phrase="over {width} adjacent tokens, the same for all values of a head"):
    """Each head of [n, heads, d] over adjacent tokens on either side, with one value per head and distance.

    Stored [heads, 1, width, 1].
    """

    width: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,), kernel, width = inputs, weights[0], weights[0].shape[2]
        padded = np.pad(x, ((width // 2, width // 2), (0, 0), (0, 0)))
        return np.asarray(sum(padded[i : i + len(x)] * kernel[:, 0, i] for i in range(width)))


def convolve_heads(x: Data, name: str, width: Size) -> Data:
    """Each head of [n, heads, d] over `width` adjacent tokens, an odd number."""
    weight = Weight(name + ".weight", "mixer.convolution", (x.shape[1], 1, width, 1))
    return Data(HeadConvolution(width), (x,), x.shape, (weight,))


class DynamicConvolution(Convolution, phrase="over {width} adjacent tokens, weighted per token and head"):
    """Each head of [n, heads, d] over adjacent tokens, with the softmax of a second input, [n, heads, width], as values
    of each token. Source: arXiv:1901.10430.
    """

    width: Size

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return multiply((*out, self.width))

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x, scores = inputs
        n, width = len(x), scores.shape[-1]
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares = shares / shares.sum(-1, keepdims=True)
        padded = np.pad(x, (((width - 1) // 2,) * 2, (0, 0), (0, 0)))
        return np.asarray(sum(padded[i : i + n] * shares[..., i : i + 1] for i in range(width)))


def convolve_by_token(x: Data, scores: Data, width: Size) -> Data:
    return Data(DynamicConvolution(width), (x, scores), x.shape)


class TransposedConvolution(Convolution, phrase="transposed, {width} frames from each, stride {stride}"):
    """Each frame becomes `stride` of them, [n, in] to [n · stride, out]; stored [in, out or size of a group, width]."""

    width: Size
    stride: int
    crops: tuple[int, int] | Unknown = (0, 0)  # so many first and last frames are left out
    grouped: bool = False

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return multiply((*inputs[0][:-1], *weights[0]))

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,), kernel, step = inputs, weights[0], self.stride
        n_groups, width = len(kernel) // kernel.shape[1] if self.grouped else 1, kernel.shape[2]
        matrices = kernel.reshape(n_groups, len(kernel) // n_groups, kernel.shape[1], width)
        y = np.zeros(((len(x) - 1) * step + width, n_groups * kernel.shape[1]), np.float32)
        for i in range(width):
            mixed = x.reshape(len(x), n_groups, 1, -1) @ matrices[..., i]
            y[i : i + (len(x) - 1) * step + 1 : step] += mixed.reshape(len(x), -1)
        first, last = require(self.crops)
        return add_kernel_bias(y[first : len(y) - last], weights)


def enlarge_frames(
    x: Data,
    name: str,
    channels: Size,
    width: Size,
    rows: str,
    *,
    stride: int,
    crops: tuple[int, int] | Unknown = (0, 0),
) -> Data:
    """Each frame becomes `stride` frames, by a transposed convolution: [n, in] to [rows, channels]. `crops`: so many
    first and last ones are left out.
    """
    kernel = Weight(name + ".weight", "mixer", (x.shape[-1], channels, width))
    weights = (kernel, Weight(name + ".bias", "mixer", (channels,)))
    return Data(TransposedConvolution(width, stride, crops), (x,), (rows, channels), weights)


def enlarge_groups(
    x: Data, name: str, group: Size, width: Size, rows: str, *, stride: int, crops: tuple[int, int] | Unknown = (0, 0)
) -> Data:
    """The same for each group of so many channels, without a bias: [n, channels] to [rows, channels]."""
    kernel = Weight(name + ".weight", "mixer", (x.shape[-1], group, width))
    return Data(TransposedConvolution(width, stride, crops, grouped=True), (x,), (rows, x.shape[-1]), (kernel,))


class WeightNorm(Convolution):
    """A convolution whose kernel is stored as a direction and a length for each of its first axis.

    The last weight has the lengths. Source: arXiv:1602.07868; torch.nn.utils.parametrizations.
    """

    convolution: Operation

    def describe(self) -> str:
        return self.convolution.describe()

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        return self.convolution.multiply_adds(inputs, weights, out)

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        direction, *others, length = weights
        size = np.sqrt((direction * direction).sum(tuple(range(1, direction.ndim)), keepdims=True))
        return self.convolution.compute(run, inputs, (length * direction / size, *others), shape)


def normalise_kernel(x: Data) -> Data:
    """The result of a convolution, whose kernel is stored as direction and length."""
    kernel, *others = x.weights
    name = kernel.name.removesuffix("weight") + "parametrizations.weight.original"
    length = Weight(name + "0", kernel.component, (kernel.shape[0], 1, 1))
    return Data(WeightNorm(x.operation), x.inputs, x.shape, (kernel._replace(name=name + "1"), *others, length))


@make_step("crop", Move, phrase="all frames but the first {crops[0]:,} and the last {crops[1]:,}")
def crop_frames(x: Array, crops: tuple[int, int] | Unknown) -> Array:
    """All frames but some first and some last ones."""
    first, last = require(crops)
    return x[first : len(x) - last]


# ---- over two axes


class ImageConvolution(Convolution):
    """All channels, or each alone, over `width` × `width` patches of an image [rows, columns, in], or of a square one
    [n, in]. Stored [out, in or 1, width, width].
    """

    width: Size
    stride: int = 1
    padding: Padding | Zeros = SAME
    grouped: bool = False

    def describe(self) -> str:
        grouped = ", one matrix per group of channels" if self.grouped else ""
        return f"over {self.describe_adjacent()}{grouped}" + (f", stride {self.stride}" if self.stride > 1 else "")

    def describe_adjacent(self) -> str:
        return f"{self.width} × {self.width} adjacent patches"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return add_kernel_bias(self.convolve(inputs[0], weights[0], self.stride), weights)

    def convolve(self, x: Array, kernel: Array, step: int) -> Array:
        side, (n_out, group, _, width) = round(len(x) ** 0.5), kernel.shape
        image = x if x.ndim == 3 else x.reshape(side, side, -1)
        is_grouped = group != image.shape[-1]
        if is_grouped:  # one value of each channel, or several
            image = image.repeat(n_out // image.shape[-1], axis=-1)
        pads = (self.choose_padding(axis).count_rows(image.shape[axis], width - 1, step) for axis in (0, 1))
        padded = np.pad(image, (*pads, (0, 0)))
        rows, columns = ((n - width) // step + 1 for n in padded.shape[:2])
        y = np.zeros((rows, columns, n_out), np.float32)
        for i in range(width):
            for j in range(width):
                part = padded[i::step, j::step][:rows, :columns]
                y += part * kernel[:, 0, i, j] if is_grouped else part @ kernel[:, :, i, j].T
        return y if x.ndim == 3 else y.reshape(-1, n_out)

    def choose_padding(self, axis: int) -> Padding | Zeros:
        return self.padding


def convolve_image(
    x: Data,
    name: str,
    component: str,
    channels: Size,
    width: Size,
    *,
    stride: int = 1,
    padding: Padding | Zeros = SAME,
    bias: bool = False,
) -> Data:
    """All channels over `width` × `width` patches of a square image: [n, in] to [n / stride², channels]."""
    weights = store_kernel(name, component, (channels, x.shape[-1], width, width), bias=bias)
    shape = (x.shape[0] if stride == 1 else "image", *x.shape[1:-1], channels)
    return Data(ImageConvolution(width, stride, padding), (x,), shape, weights)


def convolve_each_channel(
    x: Data,
    name: str,
    channels: Size,
    width: Size,
    *,
    stride: int = 1,
    padding: Padding = SAME,
    bias: bool = False,
) -> Data:
    """Each channel alone, to one value or several, over `width` × `width` patches of a square image: [n, in] to [n /
    stride², channels].
    """
    weights = store_kernel(name, "mixer", (channels, 1, width, width), bias=bias)
    shape = (x.shape[0] if stride == 1 else "image", *x.shape[1:-1], channels)
    return Data(ImageConvolution(width, stride, padding, grouped=True), (x,), shape, weights)


class VideoConvolution(ImageConvolution):
    """All channels over patches of square images [n, frames, in] and over past frames, in front of which are zeros.

    Stored [out, in, frames, width, width]. The stride is that of frames.
    """

    frames: Size = 1

    def describe_adjacent(self) -> str:
        return f"{super().describe_adjacent()} of {self.frames} past frames"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,), kernel, n_frames = inputs, weights[0], weights[0].shape[2]
        padded = np.pad(x, ((0, 0), (n_frames - self.stride, 0), (0, 0)))
        starts = range(0, padded.shape[1] - n_frames + 1, self.stride)
        steps = range(n_frames)
        images = [sum(self.convolve(padded[:, i + j], kernel[:, :, j], 1) for j in steps) for i in starts]
        return np.stack(images, axis=1) + weights[1]


def convolve_video(
    x: Data, name: str, channels: Size, frames: int, width: Size, *, d_in: Size | None = None, stride: int = 1
) -> Data:
    """All channels over `width` × `width` patches of square images and over past frames, [n, frames, in] to [n, frames
    / stride, channels]. `d_in`: as stored, if images fit only where it is that of x.
    """
    shape = (channels, x.shape[-1] if d_in is None else d_in, frames, width, width)
    n = x.shape[1] if stride == 1 else x.shape[1] // stride  # a number, as frames are
    weights = store_kernel(name, "mixer", shape, bias=True)
    return Data(VideoConvolution(width, stride, frames=frames), (x,), (x.shape[0], n, channels), weights)


class BandConvolution(ImageConvolution):
    """All channels over adjacent frames and bands, [n, bands, in], stored with bands before frames."""

    def describe_adjacent(self) -> str:
        return f"{self.width} adjacent frames and {self.width} bands"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return super().compute(run, inputs, (weights[0].swapaxes(2, 3), *weights[1:]), shape)


def convolve_bands(x: Data, name: str, channels: Size, width: Size, bands: Size, *, stride: int = 1) -> Data:
    """All channels over `width` frames and as many bands: [n, bands, in] to [n / stride, bands, channels], stored with
    bands before frames.
    """
    weights = store_kernel(name, "mixer", (channels, x.shape[-1], width, width), bias=True)
    return Data(BandConvolution(width, stride), (x,), (x.shape[0], bands, channels), weights)


def convolve_spectrum(
    x: Data, name: str, channels: Size, width: Size, bands: Size, *, stride: int = 1, bias: bool = False
) -> Data:
    """The same, stored with frames before bands."""
    weights = store_kernel(name, "mixer", (channels, x.shape[-1], width, width), bias=bias)
    return Data(ImageConvolution(width, stride), (x,), (x.shape[0], bands, channels), weights)


def convolve_spectrum_of_each(x: Data, name: str, width: Size, bands: Size, *, stride: int = 1) -> Data:
    """The same of each channel alone: [n, bands, channels] to [n / stride, bands, channels]."""
    weights = store_kernel(name, "mixer", (x.shape[-1], 1, width, width), bias=True)
    return Data(ImageConvolution(width, stride, grouped=True), (x,), (x.shape[0], bands, x.shape[-1]), weights)


class LaterFrameConvolution(ImageConvolution):
    """All channels over a frame and later ones, and over adjacent bands, [n, bands, in]."""

    def choose_padding(self, axis: int) -> Padding | Zeros:
        return LATER if axis == 0 else self.padding


def convolve_later_frames(x: Data, name: str, channels: Size, width: Size, bands: Size, *, stride: int) -> Data:
    """All channels over a frame and later ones, `width` of them, and as many bands: [n, bands, in] to [n / stride,
    bands, channels], stored with frames before bands.
    """
    weights = store_kernel(name, "mixer", (channels, x.shape[-1], width, width), bias=False)
    return Data(LaterFrameConvolution(width, stride), (x,), (x.shape[0], bands, channels), weights)


class PatchConvolution(Convolution, phrase="over {width} × {width} adjacent patches, one matrix per group of channels"):
    """Each channel over adjacent patches [n, channels] of an image, whose rows and columns are the second input.

    Stored [channels, 1, width, width].
    """

    width: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x, places), kernel, width = inputs, weights[0][:, 0], weights[0].shape[2]
        (rows, columns), (n_rows, n_columns) = places.T, places.max(0) + 1
        padded = np.zeros((n_rows + width - 1, n_columns + width - 1, x.shape[1]), np.float32)
        padded[rows + width // 2, columns + width // 2] = x
        steps = [(down, across) for down in range(width) for across in range(width)]
        return np.asarray(sum(padded[rows + i, columns + j] * kernel[:, i, j] for i, j in steps))


def convolve_patches(x: Data, places: Data, name: str, component: str, width: Size) -> Data:
    """Each channel over `width` × `width` patches: [patches, channels] to the same. `places`: of the patches."""
    kernel = Weight(name + ".weight", component, (x.shape[-1], 1, width, width))
    return Data(PatchConvolution(width), (x, places), x.shape, (kernel,))


# ---- shifts


class PreviousToken(Move, name="previous token", state=("channels",)):
    """The value of the token before; 0 for the first token."""

    channels: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        padded = np.concatenate((run.state.get("input", np.zeros((1, x.shape[1]), np.float32)), x))
        run.state["input"] = padded[-1:]
        return padded[:-1]


class PreviousRow(Move, name="previous token"):
    """The row before, in a text that is read at once; 0 for the first one."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return np.concatenate((np.zeros_like(inputs[0][:1]), inputs[0][:-1]))


class NextRow(Move, name="next token"):
    """The row behind, in a text that is read at once; 0 for the last one."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return np.concatenate((inputs[0][1:], np.zeros_like(inputs[0][:1])))


def token_before(x: Data) -> Data:
    return Data(PreviousToken(x.shape[-1]), (x,), x.shape)


def neighbour(x: Data, *, behind: bool) -> Data:
    """The value of the token before or behind, in a text that is read at once."""
    return Data(NextRow() if behind else PreviousRow(), (x,), x.shape)
