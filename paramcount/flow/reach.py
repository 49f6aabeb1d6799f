"""How far a query sees, as far as positions decide: as an array, and how many pairs that leaves."""

from __future__ import annotations

from typing import NamedTuple

from paramcount.flow.operation import Array

ALL = 2**60  # more than all keys


class Reach(NamedTuple):
    """How far a query sees. Rows in front of the text have positions less than 0."""

    before: int = ALL  # positions before the query
    after: int = ALL
    most: int = ALL  # keys in all: of those that it sees, so many at most are chosen
    chunk: int | None = None  # it sees its own chunk of so many tokens
    offset: int = 0  # tokens that are missing from the first chunk
    chunks_before: int = 0  # so many chunks before its own, and after it, are seen too
    chunks_after: int = 0

    def show(self, queries: Array, keys: Array) -> Array:
        """Positions [n, 1] and [m] to [n, m]: which keys each query sees, before any is chosen."""
        shown = (keys >= queries - self.before) & (keys <= queries + self.after)
        if self.chunk is not None:
            apart = (keys + self.offset) // self.chunk - (queries + self.offset) // self.chunk
            shown = shown & (apart >= -self.chunks_before) & (apart <= self.chunks_after)
        return shown

    def count_pairs(self, queries: range, keys: range) -> int:
        """The pairs of a query and a key that it sees.

        >>> Reach(after=0).count_pairs(range(4), range(4)), Reach(1, 0).count_pairs(range(4), range(4))
        (10, 7)
        >>> Reach(chunk=2).count_pairs(range(5), range(5)), Reach(chunk=2, offset=1).count_pairs(range(5), range(5))
        (9, 9)
        >>> Reach(after=0, chunk=8192).count_pairs(range(9999, 10000), range(10000))  # Llama 4 Scout
        1808
        """
        if self.chunk is None:
            return self.count_within(queries, keys)
        size, offset = self.chunk, self.offset
        first, end = (queries.start + offset) // size, -(-(queries.stop + offset) // size)
        # Chunks with all of their queries and keys have equally many pairs
        whole = range(
            max(-(-(queries.start + offset) // size), -(-(keys.start + offset) // size) + self.chunks_before),
            min((queries.stop + offset) // size, (keys.stop + offset) // size - self.chunks_after),
        )
        others = [*range(first, whole.start), *range(whole.stop, end)] if whole else range(first, end)
        return len(whole) * self.count_chunk(whole.start, queries, keys) + sum(
            self.count_chunk(i, queries, keys) for i in others
        )

    def count_chunk(self, i: int, queries: range, keys: range) -> int:
        """The pairs of the queries of one chunk."""
        size = self.chunk or 1
        start = i * size - self.offset
        seen = clip_range(keys, start - self.chunks_before * size, start + (self.chunks_after + 1) * size)
        return self.count_within(clip_range(queries, start, start + size), seen)

    def count_within(self, queries: range, keys: range) -> int:
        """The pairs if there are no chunks.

        A query at position i sees as many keys as its reach, those behind its first and those up to its last leave:
        of the two latter, at least one leaves as many as the reach.
        """
        n, most = len(queries), min(self.before + self.after + 1, len(keys), self.most)
        if n == 0 or most <= 0:
            return 0
        up_to_last = sum_clipped(queries.start + self.after - keys.start + 1, n, most)
        from_first = sum_clipped(keys.stop - (queries.stop - 1) + self.before, n, most)
        return up_to_last + from_first - n * most

    def merge(self, other: Reach) -> Reach:
        """What both leave. At most one of them has chunks."""
        with_chunks = other if self.chunk is None else self
        before, after, most = map(min, self[:3], other[:3])
        return with_chunks._replace(before=before, after=after, most=most)


def clip_range(positions: range, start: int, stop: int) -> range:
    """Those from `start` on, and before `stop`."""
    return range(max(positions.start, start), min(positions.stop, stop))


def sum_clipped(start: int, n: int, most: int) -> int:
    """The sum of n integers from `start` on, where those less than 0 count as 0, and those above `most` as `most`.

    >>> sum_clipped(-1, 6, 2)  # 0 + 0 + 1 + 2 + 2 + 2
    7
    """

    def sum_below(end: int) -> int:
        low = min(max(end, 0), most + 1)
        return low * (low - 1) // 2 + (max(end, 0) - low) * most

    return sum_below(start + n) - sum_below(start)


def count_ended(queries: range, block: int, most: int = ALL) -> int:
    """The pairs of a query and a block of tokens that ends with it or before; of these blocks it sees `most`.

    >>> count_ended(range(7), 3), count_ended(range(7), 3, most=1)  # 0 + 0 + 1 + 1 + 1 + 2 + 2
    (7, 5)
    """

    def count_below(end: int) -> int:
        """Those of the queries at the positions 0 … end - 1, of which the last few see `most`."""
        blocks, rest = divmod(min(end + 1, block * most), block)
        return block * blocks * (blocks - 1) // 2 + blocks * rest + max(0, end + 1 - block * most) * most

    return count_below(max(0, queries.stop)) - count_below(max(0, queries.start))
