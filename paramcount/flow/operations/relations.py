"""How tokens stand to each other: the biases of attention, and the rows of tables of relative positions."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import ClassVar

from paramcount.flow.graph import Data, Size, make_step
from paramcount.flow.operation import Array, Operation, Pass, Shape, Unknown, np, require


def find_alibi_slopes(heads: int) -> Array:
    """The slope of each head. Source: arXiv:2108.12409 §3."""
    whole = 2 ** int(np.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / whole) for i in range(whole)]
    slopes += [2 ** (-4 * (2 * i + 1) / whole) for i in range(heads - whole)]
    return np.array(slopes)


class Alibi(Operation, name="ALiBi", saves_inputs=False, reads_only_lengths=True):
    """A bias on the attention scores, proportional to the distance: [n, m, heads]. Source: arXiv:2108.12409 §3."""

    phrase: ClassVar[str] = "bias on the attention scores, proportional to the distance"
    over_root: Size | None = None  # divided by the square root of this size, as the scores are: Falcon

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        biases = find_distances(run)[..., None] * -find_alibi_slopes(shape[-1])
        return (biases if self.over_root is None else biases / sqrt(self.over_root)).astype(np.float32)


def alibi(q: Data, heads: Size, *, over_root: Size | None = None) -> Data:
    return Data(Alibi(over_root), (q,), ("tokens", "tokens", heads))


def find_distances(run: Pass, first_key: int = 0) -> Array:
    """The query's position minus the key's, [n, m], of all keys so far from the first one on."""
    return run.positions[:, None] - np.arange(first_key, int(run.positions[-1]) + 1)


OF_TOKENS = "distance between each pair of tokens"
BUCKETS = "in {n_buckets:,} buckets up to {farthest:,}"


class Relation(Operation, name="relative positions", phrase=OF_TOKENS, saves_inputs=False, reads_only_lengths=True):
    """What relates each query to each key, as a row of a table: [n, m]."""

    plain: ClassVar[str] = OF_TOKENS


class DistanceBuckets(Relation, phrase=f"{OF_TOKENS}, {BUCKETS}, half per direction"):
    """Buckets of distances, exact if near, on a log scale if far, then one for all; half of them for either direction.

    Source: arXiv:1910.10683 §2.1; T5Attention._relative_position_bucket of the reference.
    """

    n_buckets: Size
    farthest: int | Unknown  # from this distance on there is one bucket
    ahead: int = 0  # how many positions the query stands behind its row

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return self.choose_buckets(find_distances(run) + self.ahead)

    def choose_buckets(self, distances: Array) -> Array:
        half = int(self.n_buckets) // 2
        return self.find_buckets(abs(distances), half) + half * (distances < 0)

    def find_buckets(self, distances: Array, n: int) -> Array:
        exact = n // 2
        ratio = np.log(np.maximum(distances, 1).astype(np.float32) / np.float32(exact))
        far = exact + (ratio / np.float32(log(require(self.farthest) / exact)) * np.float32(n - exact)).astype(np.int64)
        return np.where(distances < exact, distances, np.minimum(far, n - 1))


class CausalDistanceBuckets(DistanceBuckets, phrase=f"{OF_TOKENS}, {BUCKETS}"):
    """The same of keys before the query; later ones are in the bucket of distance 0."""

    def choose_buckets(self, distances: Array) -> Array:
        return self.find_buckets(np.maximum(distances, 0), int(self.n_buckets))


class BlockDistanceBuckets(DistanceBuckets, phrase=f"distance between token and block, {BUCKETS}, half per direction"):
    """The same of blocks of tokens, counted from the block of the query: [n, blocks]. Source: arXiv:2112.07916."""

    block: int | Unknown = 1  # tokens of each

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        n_blocks = (int(run.positions[-1]) + 1) // require(self.block)
        queries = np.minimum(run.positions // require(self.block), n_blocks - 1)  # the last one takes what is left
        return self.choose_buckets(queries[:, None] - np.arange(n_blocks))


def bucket_distances(
    x: Data,
    n_buckets: Size,
    farthest: int | Unknown,
    *,
    causal: bool,
    block: int | Unknown | None = None,
    ahead: int = 0,
) -> Data:
    """[n, …] to the buckets of all pairs of tokens, [n, m], or of tokens and blocks of so many tokens."""
    if block is not None:
        return Data(BlockDistanceBuckets(n_buckets, farthest, block=block), (x,), (x.shape[0], "blocks"))
    kind = CausalDistanceBuckets if causal else DistanceBuckets
    return Data(kind(n_buckets, farthest, ahead), (x,), (x.shape[0], x.shape[0]))


class Distances(Relation):
    """The row of each distance among those of all tokens, from the largest on. A second input has as many rows as
    there are keys, if a cache may hold fewer than all.
    """

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        n_keys = len(inputs[1]) if len(inputs) > 1 else int(run.positions[-1]) + 1
        return n_keys - find_distances(run, int(run.positions[-1]) + 1 - n_keys)


def index_distances(x: Data, *keys: Data) -> Data:
    """For all pairs of tokens, the row of their distance in `distance_sinusoids`, [n, m]. `keys`: those that a cache
    holds, if it may hold fewer than all.
    """
    return Data(Distances(), (x, *keys), (x.shape[0], x.shape[0]))


class SignedDistances(Relation, phrase=OF_TOKENS + ", in {n_rows:,} rows"):
    """The row of each distance in a table whose middle is for 0; later keys have the first rows."""

    n_rows: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return self.find_rows(find_distances(run))

    def find_rows(self, distances: Array) -> Array:
        half = int(self.n_rows) // 2
        return np.clip(distances + half, 0, 2 * half - 1)


class LogDistances(SignedDistances):
    """The same, exact if near and on a log scale if far.

    Source: arXiv:2006.03654 §3.1; make_log_bucket_position of the reference.
    """

    phrase: ClassVar[str] = OF_TOKENS + ", in {n_rows:,} buckets up to {farthest:,}, half per direction"
    farthest: int | Unknown  # the distance of the last row

    def find_rows(self, distances: Array) -> Array:
        exact, farthest = int(self.n_rows) // 4, require(self.farthest)
        ratio = np.log(np.maximum(abs(distances), exact - 1) / np.float32(exact), dtype=np.float32)
        share = ratio / np.log(np.float32((farthest - 1) / exact))
        far = (np.ceil(share * np.float32(exact - 1)) + exact).astype(np.int64)
        return super().find_rows(np.where(abs(distances) <= exact, distances, far * np.sign(distances)))


def index_signed_distances(x: Data, rows: Size, farthest: int | Unknown = 0) -> Data:
    """For all pairs of tokens, the row of their distance in a table whose middle is for 0, [n, m]. `farthest`: if rows
    are on a log scale, which the last one ends.
    """
    operation = LogDistances(rows, farthest) if farthest != 0 else SignedDistances(rows)
    return Data(operation, (x,), (x.shape[0], x.shape[0]))


@make_step(
    "relative positions",
    Relation,
    phrase=OF_TOKENS + ", at most {before:,} before and {after:,} after",
    shape=lambda x, before, after: (x.shape[0], x.shape[0]),
)
def index_clipped_distances(run: Pass, x: Array, before: int, after: int) -> Array:
    """For all pairs of tokens, the row of their distance in a table whose first row is for keys `before` tokens before
    the query and more, and whose last row is for keys `after` tokens after it and more, [n, m].
    """
    return np.clip(-find_distances(run), -int(before), int(after)) + int(before)


class PatchDistances(Relation, reads_only_lengths=False):
    """The row of each pair of patches, by their distance in rows and columns, from their places [n, 2]: [n, n].

    Distances of `rows` rows or `columns` columns and more are taken for one less.
    """

    phrase: ClassVar[str] = "distance between each pair of patches, in rows and columns"
    rows: Size
    columns: Size

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        places, rows, columns = inputs[0], int(self.rows), int(self.columns)
        farthest = np.array([rows - 1, columns - 1])
        distances = np.clip(places[:, None] - places + farthest, 0, 2 * farthest)
        return np.asarray(distances[..., 0] * (2 * columns - 1) + distances[..., 1], np.int64)


class ClassPatchDistances(PatchDistances):
    """The same with a class token in front. Behind all distances are the rows of pairs of class token and patch, of
    patch and class token, and of the class token alone.
    """

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        n = (2 * int(self.rows) - 1) * (2 * int(self.columns) - 1)
        index = super().compute(run, inputs, weights, shape)
        found: Array = np.pad(index, ((1, 0), (1, 0)), constant_values=n + 1)
        found[0, :] = n
        found[0, 0] = n + 2
        return found


def index_places(places: Data, rows: Size, columns: Size, *, has_class: bool = False) -> Data:
    """For all pairs of patches, the row of their distance in rows and columns in a table of (2 · rows - 1) · (2 ·
    columns - 1) rows, [n, n]. `has_class`: one more token stands in front, whose pairs have three more rows.
    """
    kind = ClassPatchDistances if has_class else PatchDistances
    return Data(kind(rows, columns), (places,), (places.shape[0], places.shape[0]))


class PositionInCell(Operation, name="position in its cell", saves_inputs=False):
    """How many tokens stand between each token and the first one with the same values in all inputs behind the first:
    [n].
    """

    phrase: ClassVar[str] = "distance from the first token of the cell"
    farthest: Size  # the largest position

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        _, first, cell = np.unique(np.stack(inputs[1:]), axis=1, return_index=True, return_inverse=True)
        return np.minimum(np.arange(len(inputs[0])) - first[cell.reshape(-1)], int(self.farthest))


def position_in_cell(tokens: Data, column: Data, row: Data, n_positions: Size) -> Data:
    """The position of each token in the cell of a table, [n]."""
    return Data(PositionInCell(n_positions - 1), (tokens, column, row), tokens.shape)


def extend_segments(run: Pass, segments: Array) -> Array:
    """The segments of all tokens so far."""
    run.state["segments"] = np.concatenate((run.state.get("segments", segments[:0]), segments))
    return run.state["segments"]


@make_step(
    "same segment",
    Relation,
    phrase="whether each pair of tokens is in the same segment",
    reads_only_lengths=False,
    shape=lambda segments: (segments.shape[0], segments.shape[0]),
)
def compare_segments(run: Pass, segments: Array) -> Array:
    """Segments [n] to 0 for two tokens of one segment and 1 for others, [n, m]."""
    return (segments[:, None] != extend_segments(run, segments)).astype(np.int64)


class SegmentBuckets(DistanceBuckets, reads_only_lengths=False):
    """The bucket of the distance if both tokens are in one segment; else, behind the buckets, one for each pair of
    segments.
    """

    phrase: ClassVar[str] = DistanceBuckets.phrase + ", or the pair of their segments"
    n_segments: Size = 1

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        of_queries, segments = inputs[0][:, None], extend_segments(run, inputs[0])
        buckets = self.choose_buckets(find_distances(run, int(run.positions[-1]) + 1 - len(segments)))
        pairs = int(self.n_buckets) + of_queries * int(self.n_segments) + segments
        return np.where(of_queries == segments, buckets, pairs).astype(np.int64)


def bucket_distances_or_segments(segments: Data, n_buckets: Size, farthest: int | Unknown, n_segments: Size) -> Data:
    """Segments [n] to the buckets of all pairs of tokens, [n, m], behind which are those of pairs of segments."""
    operation = SegmentBuckets(n_buckets, farthest, n_segments=n_segments)
    return Data(operation, (segments,), (segments.shape[0], segments.shape[0]))
