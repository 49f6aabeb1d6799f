"""Convolutions over tokens, frames and patches, and shifts by one token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, TypeAlias

from paramcount.flow.graph import Data, Size, Weight, multiply
from paramcount.flow.operation import Array, Form, Operation, Pass, Shape, Unknown, np, require

Zeros: TypeAlias = Literal[
    "around", "around, fewer before", "behind", "least", "later rows", "before", "before, filled", "halves, filled"
]  # fmt: skip
Edges: TypeAlias = Literal["zeros", "mirrored", "repeated"]
MODES: dict[str, Literal["constant", "reflect", "edge"]] = {
    "zeros": "constant", "mirrored": "reflect", "repeated": "edge",
}  # fmt: skip


class Convolve(Operation):
    """Over adjacent tokens or frames.

    Causal: each of the channels, or each group of them, over the last `width` tokens, stored
    [channels, size of a group, width]; it keeps its last inputs, [channels, width - 1]. Else all channels, or each
    group of them, over adjacent frames or tokens, [n, in] to [n / stride, out], stored [out, in or size of a group,
    width], with zero padding. If of an image: over adjacent patches, stored [out, in, width, width], of a square image
    [n, in] or of [rows, columns, in]; if it is grouped, or with a second input, the row and column of each patch, each
    channel alone, stored [channels, 1, width, width]. Per head: of [n, heads, d], over adjacent tokens on either side,
    with one value per head and distance, [heads, 1, width, 1]. If of bands: over adjacent frames and bands, [n, bands,
    in], stored [out, in, bands, frames]. If it enlarges: each frame becomes `stride` of them, stored [in, out, width].
    """

    name: ClassVar[str] = "convolution"
    form: ClassVar[Form] = Form.CONVOLUTION
    named_by_weights: ClassVar[bool] = True
    width: Size
    channels: Size | None = None  # if it is causal
    stride: int = 1
    grouped: bool = False  # every group of channels has its own matrices
    lead: Size = 0  # so many rows in front of the text are computed too, for a convolution that follows
    of_image: bool = False
    frames: Size | None = None  # adjacent ones, of images [n, frames, in]; stored [out, in, frames, width, width]
    of_bands: bool = False
    is_led: bool = False  # the input has its rows in front of the text
    per_head: bool = False
    by_token: bool = False  # per head, with the softmax of a second input, [n, heads, width], as values of each token
    rows: Literal["frames", "tokens"] = "frames"  # what is adjacent
    # Where zeros are: of an image, as many on either side; only behind its rows and columns; or as few as leave a value
    # for each step, on either side; or as many behind its rows as reach, and as many on either side of its columns. Of
    # frames, on either side, of an odd number one more before them or, "fewer before", behind; or before them, so that
    # no later frame is seen. "filled": and behind them as many as the
    # last step needs. "halves": of what a step reads beyond its stride, half before them, rounded up, and half behind.
    zeros: Zeros | Unknown = "around"
    # Around an image: (width − 1) // 2 if None. Around frames: half of those that a step reads besides its own if None.
    n_zeros: Size | Unknown | None = None
    dilation: int | Unknown = 1  # frames from one that it reads to the next
    edges: Edges | Unknown = "zeros"  # what stands beyond frames: instead of zeros, mirrored ones, or the outermost one
    # Each of the first axis of the kernel is stored as its direction, and as its length, which is the last weight.
    by_length: bool = False
    enlarges: bool = False
    crops: tuple[int, int] | Unknown = (0, 0)  # of what it enlarges to, so many first and last frames are left out

    @property
    def state_shapes(self) -> tuple[tuple[Size, ...], ...]:
        return () if self.channels is None else ((self.channels, self.width - 1),)

    def describe(self) -> str:
        if self.channels is not None:
            return "causal, one matrix per group of channels" if self.grouped else "causal, depthwise"
        if self.by_token:
            return f"over {self.width} adjacent tokens, weighted per token and head"
        if self.per_head:
            return f"over {self.width} adjacent tokens, the same for all values of a head"
        if self.enlarges:
            return f"transposed, {self.width} {self.rows} from each, stride {self.stride}"
        adjacent = f"{self.width} {'past' if self.zeros in ('before', 'before, filled') else 'adjacent'} {self.rows}"
        if isinstance(self.dilation, int) and self.dilation > 1:
            adjacent = f"{self.width} {self.rows}, {self.dilation} apart"
        if self.of_image:
            adjacent = f"{self.width} × {self.width} adjacent patches"
        if self.frames is not None:
            adjacent += f" of {self.frames} past frames"
        if self.of_bands:
            adjacent += f" and {self.width} bands"
        grouped = ", one matrix per group of channels" if self.grouped else ""
        return f"over {adjacent}{grouped}" + (f", stride {self.stride}" if self.stride > 1 else "")

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        if self.by_token:
            return multiply((*out, self.width))
        return multiply((*(inputs[0] if self.enlarges else out)[:-1], *weights[0]))

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        if self.by_token:
            return self.convolve_by_token(*inputs)
        if self.by_length:
            direction, *others, length = weights
            size = np.sqrt((direction * direction).sum(tuple(range(1, direction.ndim)), keepdims=True))
            weights = (length * direction / size, *others)
        x, kernel = inputs[0], weights[0]
        width = kernel.shape[2]
        if len(inputs) > 1:
            return self.convolve_channels(x, inputs[1], kernel[:, 0])
        if self.per_head:
            padded = np.pad(x, ((width // 2, width // 2), (0, 0), (0, 0)))
            return np.asarray(sum(padded[i : i + len(x)] * kernel[:, 0, i] for i in range(width)))
        if self.of_bands:
            kernel = kernel.swapaxes(2, 3)
        if self.frames is not None:
            return self.convolve_video(x, kernel) + weights[1]
        if self.of_image or self.of_bands:
            image = self.convolve_image(x, kernel)
            return image + weights[1] if len(weights) > 1 else image
        if self.channels is not None:
            n_before = 0 if self.is_led else width - 1 + int(self.lead)
            before = run.state.get("inputs", np.zeros((n_before, x.shape[1]), np.float32))
            padded = np.concatenate((before, x))
            n = len(padded) - (width - 1)
            run.state["inputs"] = padded[n:]
            y = sum(self.mix_channels(padded[i : i + n], kernel[:, :, i]) for i in range(width))
        elif self.enlarges:
            y = self.enlarge(x, kernel)
        else:
            apart = int(require(self.dilation))
            reach = (width - 1) * apart
            padded = self.pad_frames(x, reach)
            n = (len(padded) - reach - 1) // self.stride + 1
            rows = [padded[i * apart :][: (n - 1) * self.stride + 1 : self.stride] for i in range(width)]
            y = sum(self.mix_adjacent(rows[i], kernel[:, :, i]) for i in range(width))
        return y + weights[1] if len(weights) > 1 else np.asarray(y)

    def pad_frames(self, x: Array, reach: int) -> Array:
        """Frames with what stands before and behind them. `reach`: from the first to the last one that a step reads."""
        zeros, edges = require(self.zeros), require(self.edges)
        before, behind = -(-reach // 2), reach // 2
        if self.n_zeros is not None:
            before = behind = int(require(self.n_zeros))
        if zeros == "around, fewer before":
            before, behind = behind, before
        elif zeros != "around":
            beyond = reach + 1 - self.stride
            behind = beyond // 2 if zeros == "halves, filled" else 0
            before = beyond - behind
            if zeros != "before":
                behind += -len(x) % self.stride
        elif edges == "mirrored":
            before, behind = behind, before
        n_more = 0
        if edges == "mirrored":  # a sound that is shorter than what is mirrored has zeros behind it
            n_more = max(max(before, behind) - len(x) + 1, 0)
            x = np.pad(x, ((0, n_more), (0, 0)))
        padded = np.pad(x, ((before, behind), (0, 0)), MODES[edges])
        return padded[: len(padded) - n_more]

    def enlarge(self, x: Array, kernel: Array) -> Array:
        """[n, in] with a kernel [in, out, width] to [n · stride, out], or with [in, size of a group, width]."""
        step, width = self.stride, kernel.shape[2]
        y = np.zeros(((len(x) - 1) * step + width, x.shape[1] if self.grouped else kernel.shape[1]), np.float32)
        for i in range(width):
            y[i : i + (len(x) - 1) * step + 1 : step] += self.mix_groups(x, kernel[:, :, i])
        first, last = require(self.crops)
        return y[first : len(y) - last]

    def mix_groups(self, x: Array, kernel: Array) -> Array:
        """[n, in] with a kernel [in, out] to [n, out], or with [in, size of a group] to as many channels."""
        if not self.grouped:
            return x @ kernel
        matrices = kernel.reshape(-1, kernel.shape[1], kernel.shape[1])
        return np.asarray(x.reshape(len(x), -1, 1, kernel.shape[1]) @ matrices).reshape(len(x), -1)

    def convolve_channels(self, x: Array, places: Array, kernel: Array) -> Array:
        """Patches [n, channels] at [n, 2], each channel with its kernel [channels, width, width]."""
        rows, columns = places.T
        width, (n_rows, n_columns) = kernel.shape[1], places.max(0) + 1
        padded = np.zeros((n_rows + width - 1, n_columns + width - 1, x.shape[1]), np.float32)
        padded[rows + width // 2, columns + width // 2] = x
        steps = [(down, across) for down in range(width) for across in range(width)]
        return np.asarray(sum(padded[rows + i, columns + j] * kernel[:, i, j] for i, j in steps))

    def convolve_by_token(self, x: Array, scores: Array) -> Array:
        """[n, heads, d] and scores [n, heads, width] to [n, heads, d]."""
        n, width = len(x), scores.shape[-1]
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares = shares / shares.sum(-1, keepdims=True)
        padded = np.pad(x, (((width - 1) // 2,) * 2, (0, 0), (0, 0)))
        return np.asarray(sum(padded[i : i + n] * shares[..., i : i + 1] for i in range(width)))

    def convolve_video(self, x: Array, kernel: Array) -> Array:
        """Square images [n, frames, in] with a kernel [out, in, frames, width, width]; zeros are in front of them."""
        n_frames = kernel.shape[2]
        padded = np.pad(x, ((0, 0), (n_frames - self.stride, 0), (0, 0)))
        starts = range(0, padded.shape[1] - n_frames + 1, self.stride)
        steps = range(n_frames)
        images = [sum(self.convolve_image(padded[:, i + j], kernel[:, :, j]) for j in steps) for i in starts]
        return np.stack(images, axis=1)

    def convolve_image(self, x: Array, kernel: Array) -> Array:
        side, width, step = round(len(x) ** 0.5), kernel.shape[2], self.stride if self.frames is None else 1
        image = x if x.ndim == 3 else x.reshape(side, side, -1)
        if self.grouped and len(kernel) != image.shape[-1]:  # several values of each channel
            image = image.repeat(len(kernel) // image.shape[-1], axis=-1)
        padded = np.pad(image, (*(self.pad(n, width, axis) for axis, n in enumerate(image.shape[:2])), (0, 0)))
        rows, columns = ((n - width) // step + 1 for n in padded.shape[:2])
        y = np.zeros((rows, columns, len(kernel)), np.float32)
        for i in range(width):
            for j in range(width):
                part = padded[i::step, j::step][:rows, :columns]
                y += part * kernel[:, 0, i, j] if self.grouped else part @ kernel[:, :, i, j].T
        return y if x.ndim == 3 else y.reshape(-1, len(kernel))

    def pad(self, n: int, width: int, axis: int) -> tuple[int, int]:
        """Zeros before and behind n rows or columns."""
        half = (width - 1) // 2 if self.n_zeros is None else int(require(self.n_zeros))
        if self.zeros == "least":
            zeros = max((-(-n // self.stride) - 1) * self.stride + width - n, 0)
            return zeros // 2, zeros - zeros // 2
        if self.zeros == "later rows" and axis == 0:
            return 0, width - 1
        return (0 if self.zeros == "behind" else half), half

    def mix_adjacent(self, x: Array, kernel: Array) -> Array:
        """[n, in] with a kernel [out, in], or [out, size of a group], to [n, out]."""
        if not self.grouped:
            return x @ kernel.T
        groups = x.shape[1] // kernel.shape[1]
        matrices = kernel.reshape(groups, -1, kernel.shape[1])
        y = x.reshape(len(x), groups, 1, -1) @ matrices.transpose(0, 2, 1)
        return y.reshape(len(x), -1)

    def mix_channels(self, x: Array, kernel: Array) -> Array:
        """[n, channels] with a kernel [channels, size of a group]."""
        return self.mix_adjacent(x, kernel) if self.grouped else x * kernel[:, 0]


def convolve(
    x: Data,
    name: str,
    d_conv: Size,
    *,
    bias: bool = True,
    component: str = "mixer.convolution",
    group: Size | None = None,
    lead: Size = 0,
    is_led: bool = False,
) -> Data:
    """Each channel, or each group of so many, over the last d_conv tokens: [n, channels] to [n, channels].

    `lead`: rows in front of the text that it computes too, because another convolution follows, which `is_led`.
    """
    channels = x.shape[-1]
    weights: tuple[Weight, ...] = (
        Weight(name + ".weight", component, (channels, 1 if group is None else group, d_conv)),
    )
    if bias:
        weights += (Weight(name + ".bias", component, (channels,)),)
    operation = Convolve(d_conv, channels, grouped=group is not None, lead=lead, is_led=is_led)
    return Data(operation, (x,), x.shape, weights)


def convolve_heads(x: Data, name: str, width: Size) -> Data:
    """Each head of [n, heads, d] over `width` adjacent tokens, an odd number."""
    weight = Weight(name + ".weight", "mixer.convolution", (x.shape[1], 1, width, 1))
    return Data(Convolve(width, per_head=True), (x,), x.shape, (weight,))


def convolve_by_token(x: Data, scores: Data, width: Size) -> Data:
    """Each head of [n, heads, d] over `width` adjacent tokens, an odd number, with the softmax of scores per token."""
    return Data(Convolve(width, by_token=True), (x, scores), x.shape)


class Shift(Operation):
    """The value of the token before, or behind; 0 for the first token, or the last."""

    only_moves: ClassVar[bool] = True
    channels: Size | None  # of the state; None if a text is read at once
    behind: bool = False

    @property
    def label(self) -> str:
        return "next token" if self.behind else "previous token"

    @property
    def state_shapes(self) -> tuple[tuple[Size, ...], ...]:
        return () if self.channels is None else ((self.channels,),)

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        if self.channels is None:
            zero = np.zeros((1, *x.shape[1:]), np.float32)
            return np.concatenate((x[1:], zero) if self.behind else (zero, x[:-1]))
        padded = np.concatenate((run.state.get("input", np.zeros((1, x.shape[1]), np.float32)), x))
        run.state["input"] = padded[-1:]
        return padded[:-1]


def token_before(x: Data) -> Data:
    return Data(Shift(x.shape[-1]), (x,), x.shape)


def neighbour(x: Data, *, behind: bool) -> Data:
    """The value of the token before or behind, in a text that is read at once."""
    return Data(Shift(None, behind), (x,), x.shape)


def convolve_frames(
    x: Data,
    name: str,
    channels: Size,
    width: Size,
    *,
    stride: int = 1,
    zeros: Zeros | Unknown = "around",
    group: Size | None = None,
    dilation: int | Unknown = 1,
    edges: Edges | Unknown = "zeros",
    bias: bool = True,
    by_length: bool = False,
    n_zeros: Size | None = None,
) -> Data:
    """All channels, or each group of so many, over `width` neighbouring frames. With a stride, only of some frames.
    `zeros`, `dilation`, `edges`, `by_length`, `n_zeros`: as in `Convolve`.
    """
    shape = (channels, x.shape[-1] if group is None else group, width)
    operation = Convolve(
        width,
        stride=stride,
        grouped=group is not None,
        zeros=zeros,
        dilation=dilation,
        edges=edges,
        by_length=by_length,
        n_zeros=n_zeros,
    )
    weights = store_kernel(name, shape, channels if bias else None, by_length)
    return Data(operation, (x,), (x.shape[0], channels), weights)


def store_kernel(name: str, shape: tuple[Size, ...], bias: Size | None, by_length: bool) -> tuple[Weight, ...]:
    """The weights of a convolution, with a bias of that size or none. Source: torch.nn.utils.parametrizations."""
    kernel = name + (".parametrizations.weight.original1" if by_length else ".weight")
    weights = [Weight(kernel, "mixer", shape)]
    if bias is not None:
        weights.append(Weight(name + ".bias", "mixer", (bias,)))
    if by_length:
        weights.append(Weight(name + ".parametrizations.weight.original0", "mixer", (shape[0], 1, 1)))
    return tuple(weights)


def enlarge_frames(
    x: Data,
    name: str,
    channels: Size,
    width: Size,
    rows: str,
    *,
    stride: int,
    crops: tuple[int, int] | Unknown = (0, 0),
    by_length: bool = False,
) -> Data:
    """Each frame becomes `stride` frames, by a transposed convolution: [n, in] to [rows, channels]. `crops`,
    `by_length`: as in `Convolve`.
    """
    operation = Convolve(width, stride=stride, enlarges=True, crops=crops, by_length=by_length)
    weights = store_kernel(name, (x.shape[-1], channels, width), channels, by_length)
    return Data(operation, (x,), (rows, channels), weights)


class Crop(Operation):
    """All frames but some first and some last ones."""

    only_moves: ClassVar[bool] = True
    name: ClassVar[str] = "crop"
    crops: tuple[int, int] | Unknown

    def describe(self) -> str:
        if isinstance(self.crops, Unknown):
            return ""
        return f"all frames but the first {self.crops[0]:,} and the last {self.crops[1]:,}"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        first, last = require(self.crops)
        return inputs[0][first : len(inputs[0]) - last]


def crop_frames(x: Data, crops: tuple[int, int] | Unknown) -> Data:
    return Data(Crop(crops), (x,), x.shape)


def enlarge_groups(
    x: Data, name: str, group: Size, width: Size, rows: str, *, stride: int, crops: tuple[int, int] | Unknown = (0, 0)
) -> Data:
    """The same for each group of so many channels, without a bias: [n, channels] to [rows, channels]."""
    kernel = Weight(name + ".weight", "mixer", (x.shape[-1], group, width))
    operation = Convolve(width, stride=stride, grouped=True, enlarges=True, crops=crops)
    return Data(operation, (x,), (rows, x.shape[-1]), (kernel,))


def convolve_tokens(
    x: Data,
    name: str,
    channels: Size,
    width: Size,
    *,
    group: Size | None = None,
    component: str = "mixer",
    bias: bool = True,
    zeros: Zeros = "around",
) -> Data:
    """All channels, or each group of so many, over `width` neighbouring tokens on both sides: [n, in] to [n, out].
    `zeros`: as in `Convolve`."""
    kernel = Weight(name + ".weight", component, (channels, x.shape[-1] if group is None else group, width))
    weights = (kernel, Weight(name + ".bias", component, (channels,))) if bias else (kernel,)
    operation = Convolve(width, grouped=group is not None, rows="tokens", zeros=zeros)
    return Data(operation, (x,), (x.shape[0], channels), weights)


def convolve_image(
    x: Data,
    name: str,
    component: str,
    channels: Size,
    width: Size,
    *,
    stride: int = 1,
    depthwise: bool = False,
    bias: bool = False,
    zeros: Literal["around", "behind", "least"] = "around",
    n_zeros: Size | Unknown | None = None,
) -> Data:
    """All channels, or each alone, over `width` × `width` patches of a square image: [n, in] to [n / stride²,
    channels]."""
    kernel = Weight(name + ".weight", component, (channels, 1 if depthwise else x.shape[-1], width, width))
    weights = (kernel, Weight(name + ".bias", component, (channels,))) if bias else (kernel,)
    rows = x.shape[0] if stride == 1 else "image"
    operation = Convolve(width, stride=stride, of_image=True, grouped=depthwise, zeros=zeros, n_zeros=n_zeros)
    return Data(operation, (x,), (rows, *x.shape[1:-1], channels), weights)


def convolve_video(
    x: Data, name: str, channels: Size, frames: int, width: Size, *, d_in: Size | None = None, stride: int = 1
) -> Data:
    """All channels over `width` × `width` patches of square images and over past frames, [n, frames, in] to [n, frames
    / stride, channels]. `d_in`: as stored, if images fit only where it is that of x.
    """
    kernel = Weight(name + ".weight", "mixer", (channels, x.shape[-1] if d_in is None else d_in, frames, width, width))
    operation = Convolve(width, stride=stride, of_image=True, frames=frames)
    n = x.shape[1] if stride == 1 else x.shape[1] // stride  # a number, as frames are
    return Data(operation, (x,), (x.shape[0], n, channels), (kernel, Weight(name + ".bias", "mixer", (channels,))))


def convolve_spectrum(
    x: Data,
    name: str,
    channels: Size,
    width: Size,
    bands: Size,
    *,
    stride: int,
    zeros: Literal["around", "later rows"] = "later rows",
) -> Data:
    """All channels over `width` frames and as many bands: [n, bands, in] to [n / stride, bands, channels], stored with
    frames before bands. `zeros`: whether frames on either side are read, or a frame and later ones."""
    kernel = Weight(name + ".weight", "mixer", (channels, x.shape[-1], width, width))
    operation = Convolve(width, stride=stride, of_image=True, zeros=zeros)
    return Data(operation, (x,), (x.shape[0], bands, channels), (kernel,))


def convolve_earlier_frames(x: Data, name: str, width: Size) -> Data:
    """Each channel over a frame and those before it: [n, channels] to the same, read at once."""
    kernel = Weight(name + ".weight", "mixer", (x.shape[-1], 1, width))
    return Data(Convolve(width, grouped=True, zeros="before"), (x,), x.shape, (kernel,))


def convolve_patches(x: Data, places: Data, name: str, component: str, width: Size) -> Data:
    """Each channel over `width` × `width` patches: [patches, channels] to the same. `places`: of the patches."""
    kernel = Weight(name + ".weight", component, (x.shape[-1], 1, width, width))
    return Data(Convolve(width, grouped=True, of_image=True), (x, places), x.shape, (kernel,))


def convolve_bands(
    x: Data,
    name: str,
    channels: Size,
    width: Size,
    bands: Size,
    *,
    stride: int = 1,
    depthwise: bool = False,
    frames_first: bool = False,
) -> Data:
    """All channels, or each alone, over `width` frames and as many bands: [n, bands, in] to [n / stride, bands,
    channels]. `frames_first`: stored with frames before bands."""
    kernel = Weight(name + ".weight", "mixer", (channels, 1 if depthwise else x.shape[-1], width, width))
    bias = Weight(name + ".bias", "mixer", (channels,))
    operation = Convolve(width, stride=stride, of_bands=not frames_first, of_image=frames_first, grouped=depthwise)
    return Data(operation, (x,), (x.shape[0], bands, channels), (kernel, bias))
