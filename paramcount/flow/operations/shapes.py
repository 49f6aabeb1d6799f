"""Operations that only rearrange values: split, join, reshape, select."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt, prod
from typing import ClassVar, Literal

from paramcount.errors import ParamcountError
from paramcount.flow.graph import Data, Size, Weight
from paramcount.flow.operation import Array, Form, Operation, Pass, Shape, Unknown, np, require


class Input(Operation):
    """An input of the model or of a repeated block: token ids, hidden states, pixels."""

    only_moves: ClassVar[bool] = True
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
    """One part of the last axis. The sequence of parts recurs `groups` times along it. Or one of equal parts of the
    rows."""

    only_moves: ClassVar[bool] = True
    name: ClassVar[str] = "split"
    form: ClassVar[Form] = Form.SPLIT
    named_by_weights: ClassVar[bool] = True
    widths: tuple[Size, ...]  # of all parts, over all groups
    part: int  # which of them
    groups: Size = 1
    component: str | None = None  # of its weights, if a fused matrix is split
    of_rows: bool = False

    def describe(self) -> str:
        if self.of_rows:
            return f"rows, part {self.part + 1} of {len(self.widths)}"
        if type(self.groups) is int and self.groups == 1:
            return ""
        same = type(self.groups) is int and self.groups == self.widths[self.part]
        return "interleaved" if same else f"interleaved in {self.groups:,} groups"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        if self.of_rows:
            return np.split(x, len(self.widths))[self.part]
        groups = int(self.groups)
        start = sum(self.widths[: self.part]) // groups
        y = x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)[
            ..., start : start + self.widths[self.part] // groups
        ]
        return np.ascontiguousarray(y).reshape(len(x), *shape[1:])


def split(x: Data, *widths: Size) -> tuple[Data, ...]:
    """The last axis cut into parts of these sizes."""
    return tuple(Data(Split(widths, i), (x,), (*x.shape[:-1], width)) for i, width in enumerate(widths))


def split_rows(x: Data, n: int, length: str) -> tuple[Data, ...]:
    """The rows cut into n parts, each of this length."""
    return tuple(Data(Split((1,) * n, i, of_rows=True), (x,), (length, *x.shape[1:])) for i in range(n))


def stack_rows(x: Data, *others: Data, length: str) -> Data:
    """The rows of all, one after the other. `length`: the name of their number."""
    return Data(Join(0), (x, *others), (length, *x.shape[1:]))


class Join(Operation):
    """Concatenation along the last axis, or another one; learned rows come first or last, or zeros last: as many rows
    as a second input has.
    """

    only_moves: ClassVar[bool] = True
    form: ClassVar[Form] = Form.CONCATENATION
    axis: int = -1
    learned: Literal["none", "first", "last", "zeros"] = "none"
    once: bool = False  # only the first part of a text gets something in front, not what continues it
    # What is learned ends each row of the patches of an image, a square one unless a second input has their places,
    # before squares of them were merged.
    each_row: bool = False
    id: int | Unknown | None = None  # what ends each row, of ids of tokens
    stacks: bool = False  # vectors become columns

    @property
    def label(self) -> str:
        if self.id is not None:
            return "end rows"
        if self.learned == "zeros":
            return "pad"
        return "concat" if self.learned == "none" else "class token"

    def describe(self) -> str:
        if self.learned == "none":
            return "prepended to the sequence" if self.axis == 0 else ""
        if self.learned == "zeros":
            return "padded with zeros"
        if self.each_row:
            return "appended to each row of patches"
        return "prepended to the sequence" if self.learned == "first" else "appended to the sequence"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        if self.once and run.positions[-1] >= len(inputs[1]):
            return inputs[1]
        if self.learned == "zeros":
            x, other = inputs
            return np.pad(x, ((0, len(other) - len(x)), *((0, 0),) * (x.ndim - 1)))
        if self.id is not None:
            ids = inputs[0].reshape(isqrt(len(inputs[0])), -1)
            return np.pad(ids, ((0, 0), (0, 1)), constant_values=require(self.id)).reshape(-1)
        if self.stacks:
            return np.stack(inputs, axis=-1)
        rows = [weight.reshape(-1, inputs[0].shape[-1]) for weight in weights]
        if self.each_row:
            x, *places = inputs
            down, across = (int(n) + 1 for n in places[0].max(0)) if places else (isqrt(len(x)), isqrt(len(x)))
            n_rows = down // isqrt(down * across // len(x))
            ends = np.broadcast_to(rows[0], (n_rows, 1, x.shape[-1]))
            return np.concatenate((x.reshape(n_rows, -1, x.shape[-1]), ends), axis=1).reshape(-1, x.shape[-1])
        return np.concatenate([*inputs, *rows] if self.learned == "last" else [*rows, *inputs], axis=self.axis)


def join(a: Data, b: Data) -> Data:
    return Data(Join(), (a, b), (*a.shape[:-1], a.shape[-1] + b.shape[-1]))


def join_columns(*columns: Data) -> Data:
    """Vectors [n] to a matrix [n, columns]."""
    return Data(Join(stacks=True), columns, (*columns[0].shape, len(columns)))


def put_in_front(a: Data, b: Data, axis: int = 0, *, once: bool = False) -> Data:
    """a before b, along the tokens unless another axis is given; in a flow it has the shape of b. `once`: as in
    `Join`."""
    return Data(Join(axis, once=once), (a, b), b.shape)


def class_token(x: Data, name: str, *shape: Size, component: str = "embedding", last: bool = False) -> Data:
    """x with a learned vector before its rows, or after them."""
    weight = Weight(name, component, shape or x.shape[-1:])
    return Data(Join(0, "last" if last else "first"), (x,), x.shape, (weight,))


def end_rows(x: Data, name: str, component: str, *places: Data) -> Data:
    """Patches of an image with a learned vector after each row of them. `places`: theirs before squares were merged, if
    the image need not be a square.
    """
    weight = Weight(name, component, x.shape[-1:])
    return Data(Join(0, "last", each_row=True), (x, *places), ("image", x.shape[-1]), (weight,))


def end_rows_of_ids(ids: Data, id: int | Unknown) -> Data:
    """The ids of the patches of a square image, with one more after each row of them."""
    return Data(Join(0, "last", each_row=True, id=id), (ids,), ("image",))


def pad_rows(x: Data, other: Data) -> Data:
    """x with zeros after it: as many rows as the other has."""
    return Data(Join(0, "zeros"), (x, other), (*other.shape[:1], *x.shape[1:]))


class Reshape(Operation):
    """The same values in other axes; the first axis stays, unless adjacent rows become one: "merged rows", or "merged
    channels" if all values of a channel stand together.

    Shared by all heads, streams or tokens: the same vector for each of them, [n, d] to [n, heads, d], or those of KV
    heads for all heads; for tokens, a learned vector; for later streams, zeros for the first. Pairs of heads: [n,
    heads, d] to [n, heads, 2·d]: a head of the first half beside one of the second, twice. Memory: values that are
    cached for later tokens, as they are. Larger image: each patch of a square image as four.
    Channels: [n, heads, d] to [d, heads, n], so that channels attend to one another; and back.
    """

    only_moves: ClassVar[bool] = True
    to: Literal[
        "heads", "groups", "one axis", "merged rows", "merged channels", "other axes", "all heads", "all streams",
        "later streams", "all tokens", "pairs of heads", "memory", "larger image",
        "channels",
    ] = "other axes"  # fmt: skip

    @property
    def form(self) -> Form:  # type: ignore[override]
        return Form.PLAIN if self.to.startswith(("all", "later", "pairs", "larger")) else Form.RESHAPE

    @property
    def label(self) -> str:
        names = {"one axis": "flatten", "other axes": "reshape", "memory": "memory", "channels": "transpose"}
        names |= dict.fromkeys(("merged rows", "merged channels"), "merge rows")
        if self.to.startswith(("all", "later", "pairs", "larger")):
            return f"expand to {self.to.removeprefix('all ')}"
        return names.get(self.to, f"reshape to {self.to}")

    def describe(self) -> str:
        if self.to == "pairs of heads":
            return "pairs each head of the first half with one of the second half"
        if self.to == "memory":
            return "cached for later tokens"
        if self.to == "larger image":
            return "each patch becomes four"
        shared = self.to.startswith(("all", "later"))
        return f"shared by all {self.to.removeprefix('all ')}" if shared else ""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x = inputs[0]
        if self.to == "channels":
            return x.transpose(2, 1, 0)
        if self.to == "all tokens":
            rows = (*weights, *inputs[1:])[0].reshape(-1, *shape[1:])
            return np.broadcast_to(rows[-1], (len(x), *shape[1:]))
        if self.to == "pairs of heads":
            pairs = np.concatenate(np.split(x, 2, axis=1), axis=-1)
            return np.concatenate((pairs, pairs), axis=1)
        if self.to == "larger image":
            side = round(len(x) ** 0.5)
            return x.reshape(side, side, -1).repeat(2, axis=0).repeat(2, axis=1).reshape(-1, x.shape[-1])
        if self.to == "later streams":
            return x[:, None] * (np.arange(shape[1]) > 0).astype(np.float32)[:, None]
        if self.to in ("all heads", "all streams"):
            heads = prod(shape[1:-1])
            if x.ndim == 3:
                return np.repeat(x, heads // x.shape[1], axis=1)
            return np.broadcast_to(x[:, None, :], (len(x), heads, x.shape[-1])).reshape(len(x), *shape[1:])
        if self.to == "merged channels":
            return x.reshape(-1, prod(shape[2:]), x.shape[-1]).transpose(0, 2, 1).reshape(-1, *shape[1:])
        return x.reshape(-1 if self.to == "merged rows" else len(x), *shape[1:])


def to_heads(x: Data, n_heads: Size, d_head: Size) -> Data:
    """[n, n_heads · d_head] to [n, n_heads, d_head]."""
    return Data(Reshape("heads"), (x,), (*x.shape[:1], n_heads, d_head))


def reshape(x: Data, *shape: Size) -> Data:
    """The same values of each token in other axes."""
    return Data(Reshape(), (x,), (*x.shape[:1], *shape))


def to_memory(x: Data) -> Data:
    return Data(Reshape("memory"), (x,), x.shape)


def to_every_head(x: Data, heads: Size) -> Data:
    return Data(Reshape("all heads"), (x,), (*x.shape[:1], heads, x.shape[-1]))


def to_every_stream(x: Data, streams: Size) -> Data:
    return Data(Reshape("all streams"), (x,), (*x.shape[:1], streams, x.shape[-1]))


def to_later_streams(x: Data, streams: Size) -> Data:
    """[n, d] to every stream but the first, which gets zeros."""
    return Data(Reshape("later streams"), (x,), (*x.shape[:1], streams, x.shape[-1]))


def to_every_token(x: Data, name: str, component: str, *stored: Size) -> Data:
    """A learned vector for every token of x, [n, d]. `stored`: its shape, if it has more axes."""
    return Data(Reshape("all tokens"), (x,), x.shape, (Weight(name, component, stored or x.shape[-1:]),))


def expand_to_tokens(x: Data, vector: Data) -> Data:
    """One vector, [1, d], for every token of x: [n, d]."""
    return Data(Reshape("all tokens"), (x, vector), (x.shape[0], *vector.shape[1:]))


def to_pairs_of_heads(x: Data) -> Data:
    return Data(Reshape("pairs of heads"), (x,), (*x.shape[:2], x.shape[2] + x.shape[2]))


def transpose_heads(x: Data) -> Data:
    """[n, heads, d] to [d, heads, n]."""
    return Data(Reshape("channels"), (x,), x.shape[::-1])


def enlarge(x: Data) -> Data:
    """Each patch of a square image as four, [n, d] to [4 · n, d]."""
    return Data(Reshape("larger image"), (x,), ("image", x.shape[-1]))


class Select(Operation):
    """One of several values for each token: one of the inputs behind the first, which says which of them, [n]; or the
    part of [n, parts, …] that has the layer's index, or another; or the row with the position of the token.

    For each pair of tokens, with an index [n, m]: one of the query's values in the second input, or of the key's, whose
    `axis` has the choices; the other one has heads. What comes out is [n, m, heads]. By bounds: the first input is the
    id of each token, and each bound the least id of the next input.
    """

    only_moves: ClassVar[bool] = True
    name: ClassVar[str] = "select"
    part: int | Unknown | Literal["layer", "second", "row"] | None = None  # second: of a tuple
    axis: Literal[1, 2] | None = None
    of_keys: bool = False
    bounds: tuple[int | Unknown, ...] = ()
    first_id: int | Unknown | None = None  # of the first token; the others have the row before that of their position

    def describe(self) -> str:
        if self.bounds:
            return "selected by token id"
        if self.axis is not None:
            return "selected for each pair of tokens"
        if self.part is None:
            return "selected for each token"
        if self.part == "second":
            return "second value of a tuple"
        if self.part == "row":
            return f"row {'at' if self.first_id is None else 'before'} the token's position"
        if self.part == "layer":
            return "slice of this layer"
        return f"slice {self.part}" if isinstance(self.part, int) else "one slice"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        if self.part == "second":
            return inputs[1]
        if self.part == "row":
            rows = inputs[1]
            if self.first_id is not None:
                rows = np.concatenate((np.full_like(rows[:1], require(self.first_id)), rows))
            return rows[run.positions]
        if self.part is not None:
            return inputs[0][:, run.layer if self.part == "layer" else require(self.part)]
        index, *values = inputs
        if self.axis is not None:
            of_heads = values[0] if self.axis == 1 else values[0].transpose(0, 2, 1)
            choices = np.clip(index.T if self.of_keys else index, 0, of_heads.shape[1] - 1)[..., None]
            found = np.take_along_axis(of_heads, choices, axis=1)
            return found.transpose(1, 0, 2) if self.of_keys else found
        for i, least in enumerate(self.bounds, 1):
            index = np.where(inputs[0] >= require(least), i, index if i > 1 else 0)
        return np.stack(values)[index, np.arange(len(index))]


def select(index: Data, *values: Data) -> Data:
    """One of the values for each token, by its index [n]."""
    return Data(Select(), (index, *values), values[0].shape)


def select_by_id(tokens: Data, bounds: tuple[int | Unknown, ...], *values: Data) -> Data:
    """One of the values for each token: the second from the first bound of its id on, and so on."""
    return Data(Select(bounds=bounds), (tokens, *values), values[0].shape)


def select_by_pair(index: Data, values: Data, axis: Literal[1, 2], *, of_keys: bool = False) -> Data:
    """The value that each query has for each key, [n, m, heads], by an index [n, m]. `axis`: of the choices. `of_keys`:
    the values are the keys'.
    """
    return Data(Select(axis=axis, of_keys=of_keys), (index, values), (*index.shape, values.shape[3 - axis]))


def rows_of_tokens(tokens: Data, x: Data, first_id: int | Unknown | None = None) -> Data:
    """For each token the row of x, [rows, d], with its position: [n, d].

    `first_id`: of the first token, if x has ids: the others have the row before that of their position.
    """
    return Data(Select("row", first_id=first_id), (tokens, x), (tokens.shape[0], *x.shape[1:]))


def select_part(x: Data, part: int | Unknown | Literal["layer"]) -> Data:
    """[n, parts, …] to [n, …]: the part with this index, or with that of the layer."""
    return Data(Select(part), (x,), (*x.shape[:1], *x.shape[2:]))


def second_value(x: Data, width: Size, rows: str = "text") -> Data:
    """The second value of the tuple x, such as the pooled vector of a text; of a stack, what its layers pass on."""
    return Data(Select("second"), (x,), (rows, width))


class Pool(Operation):
    """One vector for several tokens, or fewer tokens.

    "first token": that of the first. "last position": that of the last. "mean": of all. "best position": that of the
    token with the largest score, the second input, for all tokens; "weighted mean": by the softmax of these, which may
    be scores of each channel; "deviation": the standard deviation, weighted likewise if there are scores. "other
    tokens": all but the first, or all but the last; with a second input, the first ones, as many as it has, or those
    after them. "last tokens": `size` of them at most. "text": all but those in front of the first token. "block sums";
    the last block may be shorter. "block means": of complete blocks alone. "block starts": the first token of each
    block. "squares": those of `size` patches side by side; "means of squares", of which `size` are left, or that have
    `size` patches each if there is a second input; "largest of squares". The second input of squares: the row and
    column of each patch; without it the image is a square. "means of heads": one vector for each KV head, [n, heads, d]
    to [n, kv_heads, d]. "mean of streams": [n, d]. "weighted blocks": of all blocks of tokens that are complete, the
    mean of the values, each channel weighted by the softmax over the block of a second input plus a learned value per
    position in the block. If they overlap, the first half of the channels belongs to the next block, which has twice as
    many tokens.
    Source: arXiv:2606.19348 §2.3.
    """

    of: Unknown | Literal[
        "first token", "last position", "mean", "best position", "weighted mean", "deviation",
        "other tokens", "last tokens", "text", "block sums", "block means", "block starts", "weighted blocks",
        "squares", "means of squares", "largest of squares", "means of heads", "mean of streams", "sum of streams",
    ]  # fmt: skip
    size: Size | Unknown = 1  # tokens per block, or patches per square; of means: how many are left
    channels_first: bool = False  # in squares, all values of a channel stand together
    columns_first: bool = False  # in squares, the patches of a column stand together
    last: bool = False  # the token that others leave out is the last
    overlapping: bool = False
    from_cache: bool = False  # whether the inputs of weighted blocks are all tokens so far, as a cache returns them

    @property
    def saves_inputs(self) -> bool:  # type: ignore[override]
        return self.of == "weighted blocks"

    @property
    def label(self) -> str:
        if isinstance(self.of, Unknown):
            return "one position"
        names = {"squares": "merge patches", "means of squares": "average patches", "largest of squares": "max pool"}
        return names.get(self.of, self.of)

    def describe(self) -> str:
        if self.of in ("block sums", "block means", "block starts", "weighted blocks") and not isinstance(
            self.size, Unknown
        ):
            return f"blocks of {self.size} tokens" + (", overlapping" if self.overlapping else "")
        if self.of in ("squares", "means of squares", "largest of squares"):
            return "each square of adjacent patches is merged into one"
        if self.of == "last tokens" and not isinstance(self.size, Unknown):
            return f"at most {self.size:,}"
        if self.of == "text":
            return "all but the prepended prompt"
        return f"all but the {'last' if self.last else 'first'}" if self.of == "other tokens" else ""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x = inputs[0]
        if require(self.of) == "last position":
            return x[-1:]
        if self.of == "mean":
            return x.mean(0, keepdims=True)
        if self.of == "best position":
            return np.broadcast_to(x[inputs[1].reshape(-1).argmax()], x.shape)
        if self.of in ("weighted mean", "deviation"):
            scores = inputs[1].reshape(len(x), -1) if len(inputs) > 1 else np.zeros((len(x), 1), np.float32)
            shares = np.exp(scores - scores.max(0))
            shares = shares / shares.sum(0)
            mean = (x * shares).sum(0, keepdims=True)
            if self.of == "weighted mean":
                return mean
            return np.sqrt(np.maximum((shares * (x - mean) ** 2).sum(0, keepdims=True), np.float32(1e-12)))
        if self.of == "weighted blocks":
            return self.weigh_blocks(run, x, inputs[1], weights[0])
        if self.of == "first token":
            return x[:1]
        if self.of == "mean of streams":
            return x.mean(1)
        if self.of == "sum of streams":
            return x.sum(1)
        if self.of == "means of heads":
            return x.reshape(len(x), int(shape[1]), -1, x.shape[-1]).mean(2)
        if self.of == "other tokens":
            if len(inputs) > 1:
                return x[: len(inputs[1])] if self.last else x[len(inputs[1]) :]
            return x[:-1] if self.last else x[1:]
        if self.of == "last tokens":
            return x[max(0, len(x) - int(require(self.size))) :]
        if self.of == "text":
            return x[run.positions >= 0]
        if self.of == "block starts":
            return x[:: int(require(self.size))]
        if self.of == "block means":
            size = int(require(self.size))
            return x[: len(x) // size * size].reshape(-1, size, *x.shape[1:]).mean(1)
        if self.of != "block sums":
            return self.merge_squares(*inputs)
        starts = np.arange(len(x) // require(self.size)) * require(self.size)
        return np.add.reduceat(x, starts, axis=0) if len(starts) else x[:0]

    def merge_squares(self, x: Array, places: Array | None = None) -> Array:
        """[patches, d], row by row, to [patches / size, size · d], or to their means, [size, d]."""
        rows = columns = round(len(x) ** 0.5)
        if places is not None:
            rows, columns = (int(n) + 1 for n in places[-1])
        side = round(require(self.size) ** 0.5)
        if side * side != self.size:
            raise ParamcountError(f"cannot merge {self.size} patches, which do not form a square")
        if self.of == "means of squares":
            side = rows // side if places is None else side
        if rows * columns != len(x) or rows % side or columns % side:
            found = f"an image of {rows} × {columns} patches"
            raise ParamcountError(found, where="pixels", expected=f"multiples of {side} patches")
        order = (0, 2, 3, 1, 4) if self.columns_first else (0, 2, 1, 3, 4)
        squares = x.reshape(rows // side, side, columns // side, side, -1).transpose(order)
        squares = squares.reshape(-1, side * side, x.shape[-1])
        if self.of == "means of squares":
            return squares.mean(1)
        if self.of == "largest of squares":
            return squares.max(1)
        return (squares.transpose(0, 2, 1) if self.channels_first else squares).reshape(len(squares), -1)

    def weigh_blocks(self, run: Pass, values: Array, scores: Array, by_position: Array) -> Array:
        """All blocks so far. Unless all tokens come out of a cache, those of the last, incomplete block are kept,
        and the half that the next one reads.
        """
        size, d = int(require(self.size)), values.shape[-1]
        if self.from_cache:
            run.state.clear()
        kept = [run.state.get(name, np.zeros((0, d), np.float32)) for name in ("values", "scores")]
        values, scores = np.concatenate((kept[0], values)), np.concatenate((kept[1], scores))
        n, whole = len(values) // size, len(values) // size * size
        run.state.update(values=values[whole:], scores=scores[whole:])
        values = values[:whole].reshape(n, size, d)
        scores = scores[:whole].reshape(n, size, d) + by_position
        if self.overlapping and n:
            half = d // 2
            before = run.state.get("before", np.stack((np.zeros((size, half)), np.full((size, half), -np.inf))))
            run.state["before"] = np.stack((values[-1, :, :half], scores[-1, :, :half]))
            earlier = [np.concatenate((first[None], x[:-1, :, :half])) for first, x in zip(before, (values, scores))]
            values = np.concatenate((earlier[0], values[..., half:]), axis=1)
            scores = np.concatenate((earlier[1], scores[..., half:]), axis=1)
        shares = np.exp(scores - scores.max(1, keepdims=True)) if n else scores
        width = d // 2 if self.overlapping else d
        new = (values * shares / shares.sum(1, keepdims=True)).sum(1) if n else np.zeros((0, width))
        blocks = np.concatenate((run.state.get("blocks", np.zeros((0, width), np.float32)), new)).astype(np.float32)
        run.state["blocks"] = blocks
        return blocks


def first_token(x: Data) -> Data:
    return Data(Pool("first token"), (x,), ("text", *x.shape[1:]))


def pool_text(x: Data, of: Literal["last position", "mean"] | Unknown) -> Data:
    """One vector for the text."""
    return Data(Pool(of), (x,), ("text", *x.shape[1:]))


def best_position(x: Data, scores: Data) -> Data:
    """The vector of the token with the largest score, for every token of x."""
    return Data(Pool("best position"), (x, scores), x.shape)


def weighted_mean(x: Data, scores: Data) -> Data:
    """The mean of all tokens, weighted by the softmax of their scores [n, 1]."""
    return Data(Pool("weighted mean"), (x, scores), ("text", *x.shape[1:]))


def deviation(x: Data, *scores: Data) -> Data:
    """The standard deviation of each channel over all rows, weighted by the softmax of scores, if there are any."""
    return Data(Pool("deviation"), (x, *scores), ("text", *x.shape[1:]))


def other_tokens(x: Data, *, last: bool = False) -> Data:
    """x without its first row, or without its last."""
    return Data(Pool("other tokens", last=last), (x,), x.shape)


def drop_rows(x: Data, other: Data) -> Data:
    """The first rows of x: as many as the other has."""
    return Data(Pool("other tokens", last=True), (x, other), (*other.shape[:1], *x.shape[1:]))


def later_rows(x: Data, other: Data) -> Data:
    """The rows of x after the first ones, as many as the other has."""
    return Data(Pool("other tokens"), (x, other), ("text", *x.shape[1:]))


def last_tokens(x: Data, n: Size) -> Data:
    """The last rows of x, n at most."""
    return Data(Pool("last tokens", n), (x,), x.shape)


def text_alone(x: Data) -> Data:
    """x without the rows in front of the first token."""
    return Data(Pool("text"), (x,), x.shape)


def merge_squares(x: Data, n: Size, *places: Data, channels_first: bool = False, columns_first: bool = False) -> Data:
    """Squares of n patches to one row each: [patches, d] to [patches / n, n · d]."""
    return Data(Pool("squares", n, channels_first, columns_first), (x, *places), ("image", n * x.shape[-1]))


def mean_of_squares(x: Data, n: Size | Unknown, *places: Data) -> Data:
    """Means of squares of patches: [patches, d] to [n, d]; with the places of patches, each square has n of them."""
    return Data(Pool("means of squares", n), (x, *places), ("image" if places else n, x.shape[-1]))


def largest_of_squares(x: Data, n: Size, *places: Data) -> Data:
    """The largest value of each channel in squares of n patches: [patches, d] to [patches / n, d]."""
    return Data(Pool("largest of squares", n), (x, *places), ("image", x.shape[-1]))


def merge_rows(x: Data, n: Size) -> Data:
    """n adjacent rows as one: [rows, d] to [rows / n, n · d]."""
    return Data(Reshape("merged rows"), (x,), ("image", n * x.shape[-1]))


def merge_channels(x: Data, side: Size) -> Data:
    """The rows of each square of patches as a small image: [rows, d] to [rows / side², d, side, side]."""
    return Data(Reshape("merged channels"), (x,), ("image", x.shape[-1], side, side))


def channels_first(x: Data) -> Data:
    """The values of each row by channel: [n, bands, channels] to [n, channels, bands]."""
    return Data(Reshape("merged channels"), (x,), (x.shape[0], x.shape[2], x.shape[1]))


def sum_blocks(x: Data, size: int | Unknown) -> Data:
    """[n, d] to [n / size, d]. Source: arXiv:2112.07916, section 3.1.2."""
    return Data(Pool("block sums", size), (x,), ("blocks", *x.shape[1:]))


def mean_of_blocks(x: Data, size: Size) -> Data:
    """[n, d] to [n / size, d]."""
    return Data(Pool("block means", size), (x,), ("blocks", *x.shape[1:]))


def block_starts(x: Data, size: int | Unknown) -> Data:
    """The first of every `size` rows: [n, d] to [n / size, d]."""
    return Data(Pool("block starts", size), (x,), ("blocks", *x.shape[1:]))


def weigh_blocks(
    values: Data,
    scores: Data,
    by_position: Weight,
    width: Size,
    size: Size,
    *,
    overlapping: bool = False,
    from_cache: bool = False,
) -> Data:
    """[n, d] to [blocks, width], where d is twice as large if blocks overlap. `from_cache`: values and scores are
    cached."""
    operation = Pool("weighted blocks", size, overlapping=overlapping, from_cache=from_cache)
    return Data(operation, (values, scores), ("blocks", width), (by_position,))


def means_of_heads(x: Data, n_kv_heads: Size) -> Data:
    """The mean of the heads that share keys and values: [n, heads, d] to [n, kv_heads, d]."""
    return Data(Pool("means of heads"), (x,), (x.shape[0], n_kv_heads, x.shape[2]))


def mean_of_streams(x: Data) -> Data:
    return Data(Pool("mean of streams"), (x,), (x.shape[0], x.shape[2]))


def sum_of_streams(x: Data) -> Data:
    return Data(Pool("sum of streams"), (x,), (x.shape[0], x.shape[2]))


class Tuple(Operation):
    """Several values at once, which a layer passes to the next."""

    only_moves: ClassVar[bool] = True
    name: ClassVar[str] = "tuple"


def bundle(x: Data, *more: Data) -> Data:
    """A tuple of x and more values; its shape is that of x."""
    return Data(Tuple(), (x, *more), x.shape)
