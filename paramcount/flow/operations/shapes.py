"""Operations that only rearrange values: split, join, reshape, select."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt, prod
from typing import Literal

from paramcount.flow.graph import Data, Size, Weight, make_step
from paramcount.flow.operation import Array, Form, Move, Pass, Shape, Unknown, np, require


class Input(Move):
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


# ---- parts


class Split(Move, name="split", form=Form.SPLIT, named_by_weights=True):
    """One part of the last axis. The sequence of parts recurs `groups` times along it."""

    widths: tuple[Size, ...]  # of all parts, over all groups
    part: int  # which of them
    groups: Size = 1
    component: str | None = None  # of its weights, if a fused matrix is split

    def describe(self) -> str:
        if type(self.groups) is int and self.groups == 1:
            return ""
        same = type(self.groups) is int and self.groups == self.widths[self.part]
        return "interleaved" if same else f"interleaved in {self.groups:,} groups"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,), groups = inputs, int(self.groups)
        start = sum(self.widths[: self.part]) // groups
        y = x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)
        y = y[..., start : start + self.widths[self.part] // groups]
        return np.ascontiguousarray(y).reshape(len(x), *shape[1:])


def split(x: Data, *widths: Size) -> tuple[Data, ...]:
    """The last axis cut into parts of these sizes."""
    return tuple(Data(Split(widths, i), (x,), (*x.shape[:-1], width)) for i, width in enumerate(widths))


class SplitRows(Move, name="split", form=Form.SPLIT, named_by_weights=True):
    """One of equal parts of the rows."""

    n_parts: int
    part: int

    def describe(self) -> str:
        return f"rows, part {self.part + 1} of {self.n_parts}"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return np.split(inputs[0], self.n_parts)[self.part]


def split_rows(x: Data, n: int, length: str) -> tuple[Data, ...]:
    """The rows cut into n parts, each of this length."""
    return tuple(Data(SplitRows(n, i), (x,), (length, *x.shape[1:])) for i in range(n))


# ---- several values in one


class Concatenation(Move, form=Form.CONCATENATION):
    """Several values become one."""


class Join(Concatenation, name="concat"):
    """Concatenation along the last axis, or another one."""

    axis: int = -1

    def describe(self) -> str:
        return "prepended to the sequence" if self.axis == 0 else ""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return np.concatenate(inputs, axis=self.axis)


class JoinPrompt(Join):
    """Rows in front of the first part of a text alone, not of what continues it."""

    axis = 0

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[1] if run.positions[-1] >= len(inputs[1]) else np.concatenate(inputs)


def join(a: Data, b: Data) -> Data:
    return Data(Join(), (a, b), (*a.shape[:-1], a.shape[-1] + b.shape[-1]))


def stack_rows(x: Data, *others: Data, length: str) -> Data:
    """The rows of all, one after the other. `length`: the name of their number."""
    return Data(Join(0), (x, *others), (length, *x.shape[1:]))


def put_in_front(a: Data, b: Data, axis: int = 0, *, once: bool = False) -> Data:
    """a before b, along the tokens unless another axis is given; in a flow it has the shape of b. `once`: only the
    first part of a text gets a in front.
    """
    return Data(JoinPrompt() if once else Join(axis), (a, b), b.shape)


class JoinColumns(Concatenation, name="concat"):
    """Vectors [n] become the columns of a matrix."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return np.stack(inputs, axis=-1)


def join_columns(*columns: Data) -> Data:
    """Vectors [n] to a matrix [n, columns]."""
    return Data(JoinColumns(), columns, (*columns[0].shape, len(columns)))


class ClassToken(Concatenation, name="class token", phrase="prepended to the sequence"):
    """Learned rows before those of the input. Source: arXiv:2010.11929 §3.1."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return self.add(inputs, weights[0].reshape(-1, inputs[0].shape[-1]))

    def add(self, inputs: Sequence[Array], rows: Array) -> Array:
        return np.concatenate((rows, inputs[0]))


class LastClassToken(ClassToken, phrase="appended to the sequence"):
    """Learned rows after those of the input."""

    def add(self, inputs: Sequence[Array], rows: Array) -> Array:
        return np.concatenate((inputs[0], rows))


class EndRows(ClassToken, phrase="appended to each row of patches"):
    """Patches of an image with a learned vector after each row of them; a square image, unless a second input has the
    places of patches before squares of them were merged.
    """

    def add(self, inputs: Sequence[Array], rows: Array) -> Array:
        x, *places = inputs
        down, across = (int(n) + 1 for n in places[0].max(0)) if places else (isqrt(len(x)), isqrt(len(x)))
        n_rows = down // isqrt(down * across // len(x))
        ends = np.broadcast_to(rows, (n_rows, 1, x.shape[-1]))
        return np.concatenate((x.reshape(n_rows, -1, x.shape[-1]), ends), axis=1).reshape(-1, x.shape[-1])


def class_token(x: Data, name: str, *shape: Size, component: str = "embedding", last: bool = False) -> Data:
    """x with a learned vector before its rows, or after them."""
    weight = Weight(name, component, shape or x.shape[-1:])
    return Data(LastClassToken() if last else ClassToken(), (x,), x.shape, (weight,))


def end_rows(x: Data, name: str, component: str, *places: Data) -> Data:
    """Patches of an image with a learned vector after each row of them. `places`: theirs before squares were merged, if
    the image need not be a square.
    """
    return Data(EndRows(), (x, *places), ("image", x.shape[-1]), (Weight(name, component, x.shape[-1:]),))


@make_step("end rows", Concatenation, phrase="appended to each row of patches", shape=lambda ids, id: ("image",))
def end_rows_of_ids(ids: Array, id: int | Unknown) -> Array:
    """The ids of the patches of a square image, with one more after each row of them."""
    rows = ids.reshape(isqrt(len(ids)), -1)
    return np.pad(rows, ((0, 0), (0, 1)), constant_values=require(id)).reshape(-1)


@make_step("pad", Concatenation, phrase="padded with zeros", shape=lambda x, other: (*other.shape[:1], *x.shape[1:]))
def pad_rows(x: Array, other: Array) -> Array:
    """x with zeros after it: as many rows as the other has."""
    return np.pad(x, ((0, len(other) - len(x)), *((0, 0),) * (x.ndim - 1)))


class Tuple(Move, name="tuple"):
    """Several values at once, which a layer passes to the next."""


def bundle(x: Data, *more: Data) -> Data:
    """A tuple of x and more values; its shape is that of x."""
    return Data(Tuple(), (x, *more), x.shape)


# ---- other axes


class Reshaping(Move, form=Form.RESHAPE):
    """The same values in other axes."""


class Reshape(Reshaping):
    """The same values in other axes; the first axis stays."""

    to: Literal["heads", "groups", "other axes"] = "other axes"  # what the axes are

    @property
    def label(self) -> str:
        return "reshape" if self.to == "other axes" else f"reshape to {self.to}"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0].reshape(len(inputs[0]), *shape[1:])


def to_heads(x: Data, n_heads: Size, d_head: Size) -> Data:
    """[n, n_heads · d_head] to [n, n_heads, d_head]."""
    return Data(Reshape("heads"), (x,), (*x.shape[:1], n_heads, d_head))


def to_groups(x: Data, n_groups: Size, d_group: Size) -> Data:
    """[n, …] to [n, n_groups, d_group]."""
    return Data(Reshape("groups"), (x,), (*x.shape[:1], n_groups, d_group))


def reshape(x: Data, *shape: Size) -> Data:
    return Data(Reshape(), (x,), (*x.shape[:1], *shape))


class MergeRows(Reshaping, name="merge rows"):
    """Adjacent rows become one."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0].reshape(-1, *shape[1:])


class MergeRowsByChannel(MergeRows):
    """Adjacent rows become one, in which all values of a channel stand together."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x = inputs[0]
        return x.reshape(-1, prod(shape[2:]), x.shape[-1]).transpose(0, 2, 1).reshape(-1, *shape[1:])


def merge_rows(x: Data, n: Size, rows: str = "image") -> Data:
    """n adjacent rows as one: [rows, d] to [rows / n, n · d]."""
    return Data(MergeRows(), (x,), (rows, n * x.shape[-1]))


def merge_channels(x: Data, side: Size) -> Data:
    """The rows of each square of patches as a small image: [rows, d] to [rows / side², d, side, side]."""
    return Data(MergeRowsByChannel(), (x,), ("image", x.shape[-1], side, side))


def channels_first(x: Data) -> Data:
    """The values of each row by channel: [n, bands, channels] to [n, channels, bands]."""
    return Data(MergeRowsByChannel(), (x,), (x.shape[0], x.shape[2], x.shape[1]))


@make_step("transpose", Reshaping, shape=lambda x: x.shape[::-1])
def transpose_heads(x: Array) -> Array:
    """[n, heads, d] to [d, heads, n], so that channels attend to one another; and back."""
    return x.transpose(2, 1, 0)


@make_step("memory", Reshaping, phrase="cached for later tokens")
def to_memory(x: Array) -> Array:
    """Values that are cached for later tokens, as they are."""
    return x


# ---- the same values several times


class Expand(Move, name="expand to {to}", phrase="shared by all {to}"):
    """The same vector for each head or stream: [n, d] to [n, heads, d]; or the KV heads for all heads that share them:
    [n, kv_heads, d] to [n, heads, d].
    """

    to: Literal["heads", "streams"]  # what the new axis is

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x, heads = inputs[0], prod(shape[1:-1])
        if x.ndim == 3:
            return np.repeat(x, heads // x.shape[1], axis=1)
        return np.broadcast_to(x[:, None, :], (len(x), heads, x.shape[-1])).reshape(len(x), *shape[1:])


def to_every_head(x: Data, heads: Size) -> Data:
    return Data(Expand("heads"), (x,), (*x.shape[:1], heads, x.shape[-1]))


def to_every_stream(x: Data, streams: Size) -> Data:
    return Data(Expand("streams"), (x,), (*x.shape[:1], streams, x.shape[-1]))


@make_step(
    "expand to later streams",
    Move,
    phrase="shared by all later streams",
    shape=lambda x, streams: (*x.shape[:1], streams, x.shape[-1]),
)
def to_later_streams(x: Array, streams: int) -> Array:
    """[n, d] to every stream but the first, which gets zeros."""
    return np.asarray(x[:, None] * (np.arange(streams) > 0).astype(np.float32)[:, None])


class ExpandToTokens(Move, name="expand to tokens", phrase="shared by all tokens"):
    """One vector for every row of the first input: a learned one, or the last row of the second input."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        rows = (*weights, *inputs[1:])[0].reshape(-1, *shape[1:])
        return np.broadcast_to(rows[-1], (len(inputs[0]), *shape[1:]))


def to_every_token(x: Data, name: str, component: str, *stored: Size) -> Data:
    """A learned vector for every token of x, [n, d]. `stored`: its shape, if it has more axes."""
    return Data(ExpandToTokens(), (x,), x.shape, (Weight(name, component, stored or x.shape[-1:]),))


def expand_to_tokens(x: Data, vector: Data) -> Data:
    """One vector, [1, d], for every token of x: [n, d]."""
    return Data(ExpandToTokens(), (x, vector), (x.shape[0], *vector.shape[1:]))


@make_step(
    "expand to pairs of heads",
    Move,
    phrase="pairs each head of the first half with one of the second half",
    shape=lambda x: (*x.shape[:2], x.shape[2] + x.shape[2]),
)
def to_pairs_of_heads(x: Array) -> Array:
    """A head of the first half beside one of the second, twice: [n, heads, d] to [n, heads, 2 · d]."""
    pairs = np.concatenate(np.split(x, 2, axis=1), axis=-1)
    return np.concatenate((pairs, pairs), axis=1)


@make_step("expand to larger image", Move, phrase="each patch becomes four", shape=lambda x: ("image", x.shape[-1]))
def enlarge(x: Array) -> Array:
    """Each patch of a square image as four, [n, d] to [4 · n, d]."""
    side = round(len(x) ** 0.5)
    return x.reshape(side, side, -1).repeat(2, axis=0).repeat(2, axis=1).reshape(-1, x.shape[-1])


# ---- one of several values


class ValueChoice(Move, name="select"):
    """Some of the values of its inputs."""


class Select(ValueChoice, phrase="selected for each token"):
    """One of several values for each token: of the inputs behind the first, which says which of them, [n]."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return np.stack(inputs[1:])[inputs[0], np.arange(len(inputs[0]))]


def select(index: Data, *values: Data) -> Data:
    """One of the values for each token, by its index [n]."""
    return Data(Select(), (index, *values), values[0].shape)


class SelectById(ValueChoice, phrase="selected by token id"):
    """One of several values for each token, by its id, the first input: each bound is the least id of the next one."""

    bounds: tuple[int | Unknown, ...]

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        index = np.zeros_like(inputs[0])
        for i, least in enumerate(self.bounds, 1):
            index = np.where(inputs[0] >= require(least), i, index)
        return np.stack(inputs[1:])[index, np.arange(len(index))]


def select_by_id(tokens: Data, bounds: tuple[int | Unknown, ...], *values: Data) -> Data:
    return Data(SelectById(bounds), (tokens, *values), values[0].shape)


class SelectByPair(ValueChoice, phrase="selected for each pair of tokens"):
    """One of the query's values for each key, by an index [n, m]: [n, m, heads]."""

    axis: Literal[1, 2]  # of the choices; the other one has heads

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        index, values = inputs
        of_heads = values if self.axis == 1 else values.transpose(0, 2, 1)
        choices = np.clip(index, 0, of_heads.shape[1] - 1)[..., None]
        return np.take_along_axis(of_heads, choices, axis=1)


class SelectByKey(SelectByPair):
    """One of the key's values for each query, by an index [n, m]: [n, m, heads]."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return super().compute(run, (inputs[0].T, inputs[1]), weights, shape).transpose(1, 0, 2)


def select_by_pair(index: Data, values: Data, axis: Literal[1, 2], *, of_keys: bool = False) -> Data:
    """The value that each query has for each key, [n, m, heads], by an index [n, m]. `axis`: of the choices. `of_keys`:
    the values are the keys'.
    """
    operation = SelectByKey(axis) if of_keys else SelectByPair(axis)
    return Data(operation, (index, values), (*index.shape, values.shape[3 - axis]))


class RowOfPosition(ValueChoice, phrase="row at the token's position"):
    """The row of the second input with the position of each token."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[1][run.positions]


class PrecedingId(ValueChoice, phrase="row before the token's position"):
    """The id in the second input before the position of each token; the first token has an id of its own."""

    first_id: int | Unknown

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        ids = inputs[1]
        return np.concatenate((np.full_like(ids[:1], require(self.first_id)), ids))[run.positions]


def rows_of_tokens(tokens: Data, x: Data, first_id: int | Unknown | None = None) -> Data:
    """For each token the row of x, [rows, d], with its position: [n, d].

    `first_id`: of the first token, if x has ids: the others have the row before that of their position.
    """
    operation = RowOfPosition() if first_id is None else PrecedingId(first_id)
    return Data(operation, (tokens, x), (tokens.shape[0], *x.shape[1:]))


class SelectPart(ValueChoice, phrase="slice {part}", plain="one slice"):
    """The part of [n, parts, …] with this index."""

    part: int | Unknown

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0][:, require(self.part)]


class SelectLayer(ValueChoice, phrase="slice of this layer"):
    """The part of [n, layers, …] with the index of the layer."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0][:, run.layer]


def select_part(x: Data, part: int | Unknown | Literal["layer"]) -> Data:
    """[n, parts, …] to [n, …]: the part with this index, or with that of the layer."""
    operation = SelectLayer() if part == "layer" else SelectPart(part)
    return Data(operation, (x,), (*x.shape[:1], *x.shape[2:]))


class SecondValue(ValueChoice, phrase="second value of a tuple"):
    """The second value of a tuple."""


def second_value(x: Data, width: Size, rows: str = "text") -> Data:
    """The second value of the tuple x, such as the pooled vector of a text; of a stack, what its layers pass on."""
    return Data(SecondValue(), (x,), (rows, width))
