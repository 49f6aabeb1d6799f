"""How tokens stand to each other: the biases of attention."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import ClassVar, Literal

from paramcount.flow.graph import Data, Size
from paramcount.flow.operation import Array, Operation, Pass, Shape, Unknown, np, require


def find_alibi_slopes(heads: int) -> Array:
    """The slope of each head. Source: arXiv:2108.12409 §3."""
    whole = 2 ** int(np.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / whole) for i in range(whole)]
    slopes += [2 ** (-4 * (2 * i + 1) / whole) for i in range(heads - whole)]
    return np.array(slopes)


class Alibi(Operation):
    """A bias on the attention scores, proportional to the distance: [n, m, heads]. Source: arXiv:2108.12409 §3."""

    saves_inputs: ClassVar[bool] = False
    name: ClassVar[str] = "ALiBi"
    reads_only_lengths: ClassVar[bool] = True
    over_root: Size | None = None  # divided by the square root of this size, as the scores are: Falcon

    def describe(self) -> str:
        return "bias on the attention scores, proportional to the distance"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        heads = shape[-1]
        distances = np.arange(int(run.positions[-1]) + 1) - run.positions[:, None]
        biases = distances[..., None] * find_alibi_slopes(heads)
        return (biases if self.over_root is None else biases / sqrt(self.over_root)).astype(np.float32)


def alibi(q: Data, heads: Size, *, over_root: Size | None = None) -> Data:
    return Data(Alibi(over_root), (q,), ("tokens", "tokens", heads))


class Relations(Operation):
    """What relates each query to each key, as an index: [n, m].

    "distance buckets": of distances, exact if near, on a log scale if far, then one for all. "distances": the row of
    `Sinusoids` of distances. "signed distances": of the query's position minus the key's, from the middle of n_buckets
    rows on either side, exact if near, on a log scale if far and `farthest` is not 0. "clipped distances": of the key's
    position minus the query's, at most `reach` tokens before it and after it. "segments": 0 if both tokens are
    in one segment, else 1. "distance buckets or segments": the bucket if both are in one segment, else, behind the
    buckets, one for each pair of segments. "cells": not of pairs, but of each token to the first one with the same
    values in all inputs behind the first: how many tokens stand between, [n], at most `farthest`.

    Source: arXiv:1910.10683 §2.1; T5Attention._relative_position_bucket of the reference; signed distances
    arXiv:2006.03654 §3.1, make_log_bucket_position of the reference.
    """

    saves_inputs: ClassVar[bool] = False
    name: ClassVar[str] = "relative positions"
    of: Literal[
        "distance buckets", "distances", "signed distances", "segments", "distance buckets or segments", "cells",
        "places", "clipped distances",
    ]  # fmt: skip
    n_buckets: Size = 0
    farthest: int | Unknown = 0  # from this distance on there is one bucket
    causal: bool = False  # keys after the query are in the bucket of distance 0; else buckets for either side
    block: int | Unknown | None = None  # keys are blocks of so many tokens, counted from the block of the query
    n_segments: Size = 1
    ahead: int = 0  # how many positions the query stands behind its row
    # Of places: the distances in rows and in columns are less. Of clipped distances: most tokens before and after.
    reach: tuple[Size, Size] = (1, 1)
    has_class: bool = False  # of places: one more token stands in front of the patches

    @property
    def label(self) -> str:
        if self.of == "cells":
            return "position in its cell"
        return "same segment" if self.of == "segments" else self.name

    @property
    def reads_only_lengths(self) -> bool:  # type: ignore[override]
        return not self.of.endswith(("segments", "cells", "places"))

    def describe(self) -> str:
        if self.of == "cells":
            return "distance from the first token of the cell"
        if self.of == "places":
            return "distance between each pair of patches, in rows and columns"
        if self.of == "segments":
            return "whether each pair of tokens is in the same segment"
        if self.of == "distances" or isinstance(self.farthest, Unknown):
            return "distance between each pair of tokens"
        if self.of == "signed distances" and not self.farthest:
            return f"distance between each pair of tokens, in {self.n_buckets:,} rows"
        if self.of == "clipped distances":
            before, after = self.reach
            return f"distance between each pair of tokens, at most {before:,} before and {after:,} after"
        sides = "" if self.causal else ", half per direction"
        pair = "each pair of tokens" if self.block is None else "token and block"
        more = ", or the pair of their segments" if self.of == "distance buckets or segments" else ""
        return f"distance between {pair}, in {self.n_buckets:,} buckets up to {self.farthest:,}{sides}{more}"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        queries, n_keys = run.positions, int(run.positions[-1]) + 1
        if self.of == "cells":
            _, first, cell = np.unique(np.stack(inputs[1:]), axis=1, return_index=True, return_inverse=True)
            return np.minimum(np.arange(len(inputs[0])) - first[cell.reshape(-1)], require(self.farthest))
        if self.of == "places":
            return self.index_places(inputs[0])
        if self.of.endswith("segments"):
            segments = np.concatenate((run.state.get("segments", inputs[0][:0]), inputs[0]))
            run.state["segments"] = segments
            of_queries = inputs[0][:, None]
            if self.of == "segments":
                return (of_queries != segments).astype(np.int64)
            buckets = self.find_sides(queries[:, None] - np.arange(n_keys - len(segments), n_keys))
            pairs = of_queries * int(self.n_segments) + segments
            return np.where(of_queries == segments, buckets, int(self.n_buckets) + pairs).astype(np.int64)
        if self.block is not None:
            n_keys = n_keys // require(self.block)
            queries = np.minimum(queries // require(self.block), n_keys - 1)  # the last one takes what is left
        first_key = n_keys - len(inputs[1]) if len(inputs) > 1 else 0
        distances = queries[:, None] + self.ahead - np.arange(first_key, n_keys)
        if self.of == "signed distances":
            return self.find_signed(distances)
        if self.of == "clipped distances":
            before, after = (int(n) for n in self.reach)
            return np.clip(-distances, -before, after) + before
        return n_keys - first_key - distances if self.of == "distances" else self.find_sides(distances)

    def index_places(self, places: Array) -> Array:
        """[n, 2] to the row of each pair of patches. Behind all distances are the rows of pairs of class token and
        patch, of patch and class token, and of the class token alone."""
        rows, columns = (int(n) for n in self.reach)
        farthest = np.array([rows - 1, columns - 1])
        distances = np.clip(places[:, None] - places + farthest, 0, 2 * farthest)
        index = distances[..., 0] * (2 * columns - 1) + distances[..., 1]
        if not self.has_class:
            return np.asarray(index, np.int64)
        n = (2 * rows - 1) * (2 * columns - 1)
        found: Array = np.pad(index, ((1, 0), (1, 0)), constant_values=n + 1)
        found[0, :] = n
        found[0, 0] = n + 2
        return found

    def find_signed(self, distances: Array) -> Array:
        half, farthest = int(self.n_buckets) // 2, require(self.farthest)
        if farthest:
            exact = half // 2
            ratio = np.log(np.maximum(abs(distances), exact - 1) / np.float32(exact), dtype=np.float32)
            share = ratio / np.log(np.float32((farthest - 1) / exact))
            far = (np.ceil(share * np.float32(exact - 1)) + exact).astype(np.int64)
            distances = np.where(abs(distances) <= exact, distances, far * np.sign(distances))
        return np.clip(distances + half, 0, 2 * half - 1)

    def find_sides(self, distances: Array) -> Array:
        if self.causal:
            return self.find_buckets(np.maximum(distances, 0), int(self.n_buckets))
        half = int(self.n_buckets) // 2
        return self.find_buckets(abs(distances), half) + half * (distances < 0)

    def find_buckets(self, distances: Array, n: int) -> Array:
        exact = n // 2
        ratio = np.log(np.maximum(distances, 1).astype(np.float32) / np.float32(exact))
        far = exact + (ratio / np.float32(log(require(self.farthest) / exact)) * np.float32(n - exact)).astype(np.int64)
        return np.where(distances < exact, distances, np.minimum(far, n - 1))


def bucket_distances(
    x: Data,
    n_buckets: Size,
    farthest: int | Unknown,
    *,
    causal: bool,
    block: int | Unknown | None = None,
    ahead: int = 0,
) -> Data:
    """[n, …] to the buckets of all pairs of tokens, [n, m], or of tokens and blocks."""
    keys = x.shape[0] if block is None else "blocks"
    operation = Relations("distance buckets", n_buckets, farthest, causal, block, ahead=ahead)
    return Data(operation, (x,), (x.shape[0], keys))


def index_distances(x: Data, *keys: Data) -> Data:
    """For all pairs of tokens, the row of their distance in `distance_sinusoids`, [n, m]. `keys`: those that a cache
    holds, if it may hold fewer than all.
    """
    return Data(Relations("distances"), (x, *keys), (x.shape[0], x.shape[0]))


def index_signed_distances(x: Data, rows: Size, farthest: int | Unknown = 0) -> Data:
    """For all pairs of tokens, the row of their distance in a table whose middle is for 0, [n, m]. `farthest`: if rows
    are on a log scale, which the last one ends.
    """
    return Data(Relations("signed distances", rows, farthest), (x,), (x.shape[0], x.shape[0]))


def index_clipped_distances(x: Data, before: Size, after: Size) -> Data:
    """For all pairs of tokens, the row of their distance in a table whose first row is for keys `before` tokens before
    the query and more, and whose last row is for keys `after` tokens after it and more, [n, m].
    """
    operation = Relations("clipped distances", before + after + 1, reach=(before, after))
    return Data(operation, (x,), (x.shape[0], x.shape[0]))


def index_places(places: Data, rows: Size, columns: Size, *, has_class: bool = False) -> Data:
    """For all pairs of patches, the row of their distance in rows and columns in a table of (2 · rows - 1) · (2 ·
    columns - 1) rows, [n, n]. `has_class`: one more token stands in front, whose pairs have three more rows.
    """
    n = places.shape[0]
    return Data(Relations("places", reach=(rows, columns), has_class=has_class), (places,), (n, n))


def position_in_cell(tokens: Data, column: Data, row: Data, n_positions: Size) -> Data:
    """The position of each token in the cell of a table, [n]."""
    return Data(Relations("cells", farthest=n_positions - 1), (tokens, column, row), tokens.shape)


def compare_segments(segments: Data) -> Data:
    """Segments [n] to 0 for two tokens of one segment and 1 for others, [n, m]."""
    return Data(Relations("segments"), (segments,), (segments.shape[0], segments.shape[0]))


def bucket_distances_or_segments(segments: Data, n_buckets: Size, farthest: int | Unknown, n_segments: Size) -> Data:
    """Segments [n] to the buckets of all pairs of tokens, [n, m], behind which are those of pairs of segments."""
    operation = Relations("distance buckets or segments", n_buckets, farthest, n_segments=n_segments)
    return Data(operation, (segments,), (segments.shape[0], segments.shape[0]))
