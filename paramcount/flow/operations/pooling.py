"""Operations that leave fewer rows: one for a text, for a block of tokens or for a square of patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from paramcount.errors import ParamcountError
from paramcount.flow.graph import Data, Size, Weight, make_step
from paramcount.flow.operation import Array, Operation, Pass, Shape, Unknown, np, require


class Pooling(Operation, saves_inputs=False):
    """One vector for several tokens, or fewer tokens."""


# ---- one row for a text


@make_step("first token", Pooling, shape=lambda x: ("text", *x.shape[1:]))
def first_token(x: Array) -> Array:
    """The row of the first token."""
    return x[:1]


class LastPosition(Pooling, name="last position"):
    """The row of the last token."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0][-1:]


class Mean(Pooling, name="mean"):
    """The mean of all rows."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0].mean(0, keepdims=True)


class OnePosition(Pooling, name="one position"):
    """One row, of a position that nothing states."""

    position: Unknown

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0][require(self.position)]


def pool_text(x: Data, of: Literal["last position", "mean"] | Unknown) -> Data:
    """One vector for the text."""
    operation = OnePosition(of) if isinstance(of, Unknown) else LastPosition() if of == "last position" else Mean()
    return Data(operation, (x,), ("text", *x.shape[1:]))


@make_step("best position", Pooling)
def best_position(x: Array, scores: Array) -> Array:
    """The row of the token with the largest score, for all tokens."""
    return np.broadcast_to(x[scores.reshape(-1).argmax()], x.shape)


def weigh_rows(x: Array, *scores: Array) -> Array:
    """The weight of each row: the softmax of its scores, which may be one for each channel; equal without scores."""
    logits = scores[0].reshape(len(x), -1) if scores else np.zeros((len(x), 1), np.float32)
    shares = np.exp(logits - logits.max(0))
    return shares / shares.sum(0)


@make_step("weighted mean", Pooling, shape=lambda x, scores: ("text", *x.shape[1:]))
def weighted_mean(x: Array, scores: Array) -> Array:
    """The mean of all rows, weighted by the softmax of their scores."""
    return np.asarray((x * weigh_rows(x, scores)).sum(0, keepdims=True))


class Deviation(Pooling, name="deviation"):
    """The standard deviation of each channel over all rows, weighted by the softmax of the second input, if any."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x, shares = inputs[0], weigh_rows(*inputs)
        mean = (x * shares).sum(0, keepdims=True)
        return np.sqrt(np.maximum((shares * (x - mean) ** 2).sum(0, keepdims=True), np.float32(1e-12)))


def deviation(x: Data, *scores: Data) -> Data:
    return Data(Deviation(), (x, *scores), ("text", *x.shape[1:]))


# ---- some of the rows


class OtherTokens(Pooling, name="other tokens", phrase="all but the first"):
    """All rows but the first; with a second input, those after as many rows as it has."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0][len(inputs[1]) if len(inputs) > 1 else 1 :]


class EarlierTokens(OtherTokens, phrase="all but the last"):
    """All rows but the last; with a second input, as many of them as it has."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0][: len(inputs[1]) if len(inputs) > 1 else -1]


def other_tokens(x: Data, *, last: bool = False) -> Data:
    """x without its first row, or without its last."""
    return Data(EarlierTokens() if last else OtherTokens(), (x,), x.shape)


def drop_rows(x: Data, other: Data) -> Data:
    """The first rows of x: as many as the other has."""
    return Data(EarlierTokens(), (x, other), (*other.shape[:1], *x.shape[1:]))


def later_rows(x: Data, other: Data) -> Data:
    """The rows of x after the first ones, as many as the other has."""
    return Data(OtherTokens(), (x, other), ("text", *x.shape[1:]))


class LastTokens(Pooling, name="last tokens", phrase="at most {size:,}"):
    """The last rows, `size` at most."""

    size: Size | Unknown

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0][max(0, len(inputs[0]) - int(require(self.size))) :]


def last_tokens(x: Data, n: Size) -> Data:
    return Data(LastTokens(n), (x,), x.shape)


@make_step("text", Pooling, phrase="all but the prepended prompt")
def text_alone(run: Pass, x: Array) -> Array:
    """All rows but those in front of the first token."""
    return x[run.positions >= 0]


# ---- one row for a block of tokens


BLOCKS = "blocks of {size} tokens"


class BlockPool(Pooling, phrase=BLOCKS):
    """One row for each block of tokens."""

    size: Size | Unknown  # tokens per block


class BlockSums(BlockPool, name="block sums"):
    """The sum of each block; the last one has the remaining tokens. Source: arXiv:2112.07916 §3.1.2."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,), size = inputs, require(self.size)
        starts = np.arange(len(x) // size) * size
        return np.add.reduceat(x, starts, axis=0) if len(starts) else x[:0]


@make_step("block means", Pooling, phrase=BLOCKS, shape=lambda x, size: ("blocks", *x.shape[1:]))
def mean_of_blocks(x: Array, size: int | Unknown) -> Array:
    """The mean of each complete block: [n, d] to [n / size, d]."""
    n = int(require(size))
    return np.asarray(x[: len(x) // n * n].reshape(-1, n, *x.shape[1:]).mean(1))


@make_step("block starts", Pooling, phrase=BLOCKS, shape=lambda x, size: ("blocks", *x.shape[1:]))
def block_starts(x: Array, size: int | Unknown) -> Array:
    """The first row of each block: [n, d] to [n / size, d]."""
    return x[:: int(require(size))]


def sum_blocks(x: Data, size: int | Unknown) -> Data:
    """[n, d] to [n / size, d]."""
    return Data(BlockSums(size), (x,), ("blocks", *x.shape[1:]))


class WeightedBlocks(BlockPool, name="weighted blocks", saves_inputs=True):
    """The mean of the values of each complete block so far, each channel weighted by the softmax over the block of a
    second input plus a learned value per position in the block.

    The tokens of the last, incomplete block are kept. Source: arXiv:2606.19348 §2.3.
    """

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        size, d = int(require(self.size)), inputs[0].shape[-1]
        names, empty = ("values", "scores"), np.zeros((0, d), np.float32)
        values, scores = (np.concatenate((run.state.get(name, empty), x)) for name, x in zip(names, inputs))
        whole = len(values) // size * size
        run.state.update(values=values[whole:], scores=scores[whole:])
        values, scores = values[:whole].reshape(-1, size, d), scores[:whole].reshape(-1, size, d) + weights[0]
        new = np.zeros((0, shape[-1]), np.float32)
        if whole:
            values, scores = self.widen(run, values, scores)
            shares = np.exp(scores - scores.max(1, keepdims=True))
            new = (values * shares / shares.sum(1, keepdims=True)).sum(1).astype(np.float32)
        run.state["blocks"] = np.concatenate((run.state.get("blocks", new[:0]), new))
        return run.state["blocks"]

    def widen(self, run: Pass, values: Array, scores: Array) -> tuple[Array, Array]:
        """The values and scores of the tokens of each block."""
        return values, scores


class OverlappingBlocks(WeightedBlocks, phrase="blocks of {size} tokens, overlapping"):
    """The same of blocks with twice as many tokens: the first half of the channels belongs to the next block."""

    def widen(self, run: Pass, values: Array, scores: Array) -> tuple[Array, Array]:
        size, half = values.shape[1], values.shape[2] // 2
        before = run.state.get("before", np.stack((np.zeros((size, half)), np.full((size, half), -np.inf))))
        run.state["before"] = np.stack((values[-1, :, :half], scores[-1, :, :half]))
        values, scores = (
            np.concatenate((np.concatenate((first[None], x[:-1, :, :half])), x[..., half:]), axis=1)
            for first, x in zip(before, (values, scores))
        )
        return values, scores


class CachedWeightedBlocks(WeightedBlocks):
    """The same if the inputs are all tokens so far, as a cache returns them, so that nothing else is kept."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        run.state.clear()
        return super().compute(run, inputs, weights, shape)


def weigh_blocks(values: Data, scores: Data, by_position: Weight, width: Size, operation: WeightedBlocks) -> Data:
    """[n, d] to [blocks, width], where d is twice as large if blocks overlap."""
    return Data(operation, (values, scores), ("blocks", width), (by_position,))


# ---- one row for a square of patches


class MergeSquares(Pooling, name="merge patches", phrase="each square of adjacent patches is merged into one"):
    """Squares of `size` adjacent patches become one row each, the values of its patches row by row.

    The second input has the row and column of each patch; without it the image is a square.
    """

    axes: ClassVar[tuple[int, ...]] = (0, 2, 1, 3, 4)  # rows and columns of squares, those of their patches, channels
    size: Size | Unknown  # patches per square

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x, *places = inputs
        rows = columns = round(len(x) ** 0.5)
        if places:
            rows, columns = (int(n) + 1 for n in places[0][-1])
        side = round(require(self.size) ** 0.5)
        if side * side != self.size:
            raise ParamcountError(f"cannot merge {self.size} patches, which do not form a square")
        side = side if places else self.find_side(side, rows)
        if rows * columns != len(x) or rows % side or columns % side:
            found = f"an image of {rows} × {columns} patches"
            raise ParamcountError(found, where="pixels", expected=f"multiples of {side} patches")
        squares = x.reshape(rows // side, side, columns // side, side, -1).transpose(self.axes)
        return self.merge(squares.reshape(-1, side * side, x.shape[-1]))

    def find_side(self, side: int, rows: int) -> int:
        return side

    def merge(self, squares: Array) -> Array:
        """[squares, patches, d] to [squares, …]."""
        return squares.reshape(len(squares), -1)


class MergeSquaresByChannel(MergeSquares):
    """The same, but all values of a channel stand together."""

    def merge(self, squares: Array) -> Array:
        return squares.transpose(0, 2, 1).reshape(len(squares), -1)


class MergeSquaresByColumn(MergeSquares):
    """The same, but the patches of a column stand together."""

    axes: ClassVar[tuple[int, ...]] = (0, 2, 3, 1, 4)


class MeanOfSquares(MergeSquares, name="average patches"):
    """The mean of each square of `size` patches; in an image without places, of so many equal squares."""

    def find_side(self, side: int, rows: int) -> int:
        return rows // side

    def merge(self, squares: Array) -> Array:
        return squares.mean(1)


class LargestOfSquares(MergeSquares, name="max pool"):
    """The largest value of each channel in squares of `size` patches."""

    def merge(self, squares: Array) -> Array:
        return squares.max(1)


def merge_squares(x: Data, n: Size, *places: Data, channels_first: bool = False, columns_first: bool = False) -> Data:
    """Squares of n patches to one row each: [patches, d] to [patches / n, n · d]."""
    kind = MergeSquaresByChannel if channels_first else MergeSquaresByColumn if columns_first else MergeSquares
    return Data(kind(n), (x, *places), ("image", n * x.shape[-1]))


def mean_of_squares(x: Data, n: Size | Unknown, *places: Data) -> Data:
    """Means of squares of patches: [patches, d] to [n, d]; with the places of patches, each square has n of them."""
    return Data(MeanOfSquares(n), (x, *places), ("image" if places else n, x.shape[-1]))


def largest_of_squares(x: Data, n: Size, *places: Data) -> Data:
    return Data(LargestOfSquares(n), (x, *places), ("image", x.shape[-1]))


# ---- one vector for several of a row


@make_step("means of heads", Pooling, shape=lambda x, n_kv_heads: (x.shape[0], n_kv_heads, x.shape[2]))
def means_of_heads(x: Array, n_kv_heads: int) -> Array:
    """The mean of the heads that share keys and values: [n, heads, d] to [n, kv_heads, d]."""
    return np.asarray(x.reshape(len(x), int(n_kv_heads), -1, x.shape[-1]).mean(2))


@make_step("mean of streams", Pooling, shape=lambda x: (x.shape[0], x.shape[2]))
def mean_of_streams(x: Array) -> Array:
    """The mean of all streams: [n, streams, d] to [n, d]."""
    return np.asarray(x.mean(1))


@make_step("sum of streams", Pooling, shape=lambda x: (x.shape[0], x.shape[2]))
def sum_of_streams(x: Array) -> Array:
    """The sum of all streams: [n, streams, d] to [n, d]."""
    return np.asarray(x.sum(1))
