"""Operations that only rearrange values: split, join, reshape, select."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar, Literal

from paramcount.flow.graph import Data, Size, Weight
from paramcount.flow.operation import Array, Form, Operation, Pass, Shape, Unknown, np, require


class Input(Operation):
    """An input of the model or of a repeated block: token ids, hidden states, pixels."""

    what: str = ""  # "" for that of a block
    default: int | Unknown | None = None  # of every token, if it is not given

    @property
    def label(self) -> str:
        ids = {"tokens": "token ids", "source tokens": "source token ids", "segments": "segment ids"}
        return ids.get(self.what, self.what) or "input"


def given(name: str, *shape: Size, default: int | Unknown | None = None) -> Data:
    """An input of the model: token ids, pixels or audio frames. `default`: of every token, if it is not given."""
    return Data(Input(name, default), (), shape)


class Split(Operation):
    """One part of the last axis. The sequence of parts recurs `groups` times along it."""

    name: ClassVar[str] = "split"
    form: ClassVar[Form] = Form.SPLIT
    named_by_weights: ClassVar[bool] = True
    widths: tuple[Size, ...]  # of all parts, over all groups
    part: int  # which of them
    groups: Size = 1
    component: str | None = None  # of its weights, if a fused matrix is split

    def describe(self) -> str:
        if type(self.groups) is int and self.groups == 1:
            return ""
        same = type(self.groups) is int and self.groups == self.widths[self.part]
        return "interleaved" if same else f"a part of each of {self.groups:,} groups"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        groups = int(self.groups)
        start = sum(self.widths[: self.part]) // groups
        y = x.reshape(*x.shape[:-1], groups, -1)[..., start : start + self.widths[self.part] // groups]
        return np.ascontiguousarray(y).reshape(len(x), *shape[1:])


def split(x: Data, *widths: Size) -> tuple[Data, ...]:
    """The last axis cut into parts of these sizes."""
    return tuple(Data(Split(widths, i), (x,), (*x.shape[:-1], width)) for i, width in enumerate(widths))


class Join(Operation):
    """Concatenation along the last axis, or another one."""

    name: ClassVar[str] = "concat"
    form: ClassVar[Form] = Form.CONCATENATION
    axis: int = -1

    def describe(self) -> str:
        return "prepended, so there are more rows" if self.axis == 0 else ""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return np.concatenate(inputs, axis=self.axis)


def join(a: Data, b: Data) -> Data:
    return Data(Join(), (a, b), (*a.shape[:-1], a.shape[-1] + b.shape[-1]))


def put_in_front(a: Data, b: Data, axis: int = 0) -> Data:
    """a before b, along the tokens unless another axis is given; in a flow it has the shape of b."""
    return Data(Join(axis), (a, b), b.shape)


class Reshape(Operation):
    """The same values in other axes; the first axis stays."""

    form: ClassVar[Form] = Form.RESHAPE
    to: Literal["heads", "groups", "one axis", "other axes"] = "other axes"

    @property
    def label(self) -> str:
        return {"one axis": "flatten", "other axes": "reshape"}.get(self.to, f"reshape to {self.to}")

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0].reshape(len(inputs[0]), *shape[1:])


def to_heads(x: Data, n_heads: Size, d_head: Size) -> Data:
    """[n, n_heads · d_head] to [n, n_heads, d_head]."""
    return Data(Reshape("heads"), (x,), (*x.shape[:1], n_heads, d_head))


def reshape(x: Data, *shape: Size) -> Data:
    """The same values of each token in other axes."""
    return Data(Reshape(), (x,), (*x.shape[:1], *shape))


class Expand(Operation):
    """The same vector for every head or stream: [n, d] to [n, heads, d], or [n, kv_heads, d] to [n, heads, d].

    To pairs of heads: [n, heads, d] to [n, heads, 2·d]: a head of the first half beside one of the second, twice.
    To every token: a learned vector. To later streams: zeros for the first.
    """

    to: Literal["heads", "streams", "later streams", "tokens", "pairs of heads"] = "heads"

    @property
    def label(self) -> str:
        return f"expand to {self.to}"

    def describe(self) -> str:
        if self.to == "pairs of heads":
            return "each head of the first half with one of the second"
        return f"shared by all {self.to}"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        if self.to == "tokens":
            return np.broadcast_to(weights[0], (len(x), *shape[1:]))
        if self.to == "pairs of heads":
            pairs = np.concatenate(np.split(x, 2, axis=1), axis=-1)
            return np.concatenate((pairs, pairs), axis=1)
        heads = prod(shape[1:-1])
        if x.ndim == 3:
            return np.repeat(x, heads // x.shape[1], axis=1)
        if self.to == "later streams":
            return x[:, None] * (np.arange(heads) > 0).astype(np.float32)[:, None]
        return np.broadcast_to(x[:, None, :], (len(x), heads, x.shape[-1])).reshape(len(x), *shape[1:])


def to_every_head(x: Data, heads: Size) -> Data:
    return Data(Expand(), (x,), (*x.shape[:1], heads, x.shape[-1]))


def to_every_stream(x: Data, streams: Size) -> Data:
    return Data(Expand("streams"), (x,), (*x.shape[:1], streams, x.shape[-1]))


def to_later_streams(x: Data, streams: Size) -> Data:
    """[n, d] to every stream but the first, which gets zeros."""
    return Data(Expand("later streams"), (x,), (*x.shape[:1], streams, x.shape[-1]))


def to_every_token(x: Data, name: str, component: str) -> Data:
    """A learned vector for every token of x, [n, d]."""
    return Data(Expand("tokens"), (x,), x.shape, (Weight(name, component, x.shape[-1:]),))


def to_pairs_of_heads(x: Data) -> Data:
    return Data(Expand("pairs of heads"), (x,), (*x.shape[:2], x.shape[2] + x.shape[2]))


class Select(Operation):
    """One of several values for each token: one of the inputs behind the first, which says which of them, [n]; or the
    part of [n, parts, …] that has the layer's index, or another."""

    name: ClassVar[str] = "select"
    part: int | Unknown | Literal["layer"] | None = None

    def describe(self) -> str:
        if self.part is None:
            return "one of its inputs per token"
        if self.part == "layer":
            return "the part of this layer"
        return f"part {self.part} of each token" if isinstance(self.part, int) else "one part of each token"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        if self.part is not None:
            return inputs[0][:, run.layer if self.part == "layer" else require(self.part)]
        index, *values = inputs
        return np.stack(values)[index, np.arange(len(index))]


def select(index: Data, *values: Data) -> Data:
    """One of the values for each token, by its index [n]."""
    return Data(Select(), (index, *values), values[0].shape)


def select_part(x: Data, part: int | Unknown | Literal["layer"]) -> Data:
    """[n, parts, …] to [n, …]: the part with this index, or with that of the layer."""
    return Data(Select(part), (x,), (*x.shape[:1], *x.shape[2:]))


class Pool(Operation):
    """One vector for several tokens: that of the first, or the sum over each block; the last block may be shorter.

    Means of heads: one vector for each KV head, [n, heads, d] to [n, kv_heads, d]. Mean of streams: [n, d].
    """

    of: Literal["first token", "block sums", "means of heads", "mean of streams"]
    size: int | Unknown = 1  # tokens per block

    @property
    def label(self) -> str:
        return self.of

    def describe(self) -> str:
        return "" if self.of != "block sums" or isinstance(self.size, Unknown) else f"of {self.size} tokens each"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        if self.of == "first token":
            return x[:1]
        if self.of == "mean of streams":
            return x.mean(1)
        if self.of == "means of heads":
            return x.reshape(len(x), int(shape[1]), -1, x.shape[-1]).mean(2)
        starts = np.arange(len(x) // require(self.size)) * require(self.size)
        return np.add.reduceat(x, starts, axis=0) if len(starts) else x[:0]


def first_token(x: Data) -> Data:
    return Data(Pool("first token"), (x,), ("text", *x.shape[1:]))


def sum_blocks(x: Data, size: int | Unknown) -> Data:
    """[n, d] to [n / size, d]. Source: arXiv:2112.07916, section 3.1.2."""
    return Data(Pool("block sums", size), (x,), ("blocks", *x.shape[1:]))


def means_of_heads(x: Data, n_kv_heads: Size) -> Data:
    """The mean of the heads that share keys and values: [n, heads, d] to [n, kv_heads, d]."""
    return Data(Pool("means of heads"), (x,), (x.shape[0], n_kv_heads, x.shape[2]))


def mean_of_streams(x: Data) -> Data:
    return Data(Pool("mean of streams"), (x,), (x.shape[0], x.shape[2]))


class Tuple(Operation):
    """Several values at once, which a layer passes to the next."""

    name: ClassVar[str] = "tuple"


def bundle(x: Data, *more: Data) -> Data:
    """x with further values beside it; its shape is that of x."""
    return Data(Tuple(), (x, *more), x.shape)
