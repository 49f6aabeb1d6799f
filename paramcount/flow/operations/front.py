"""Windows and caches that never forget the rows in front of a text, such as meta tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paramcount.flow.graph import Data, Size
from paramcount.flow.masks import Mask, Pairs, Window
from paramcount.flow.operation import Array, Pass, Shape, np
from paramcount.flow.operations.attention import Cache


class WindowAndFront(Window):
    """The last n tokens, the query's own included, and the rows in front of the text, of which there are `front`."""

    front: Size = 0

    @property
    def trim(self) -> Size | None:
        return self.n + self.front

    def show(self, pairs: Pairs, data: Iterator[Array], seen: Array | bool = True) -> Array | bool:
        shown = self.reach.show(pairs.queries, pairs.keys)
        return shown | (np.arange(pairs.m) < int(self.front)) | (pairs.queries < 0)


class CacheAndFront(Cache):
    """Rows in front of the text stay when those of a window are forgotten."""

    front: Size = 0

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        rows = np.concatenate((run.state["rows"], inputs[0])) if "rows" in run.state else inputs[0]
        front, trim = int(self.front), self.mask.trim
        later = front if trim is None else max(front, len(rows) - (int(trim) - 1 - front))
        run.state["rows"] = np.concatenate((rows[:front], rows[later:]))
        return rows


def cache_and_front(x: Data, mask: Mask, front: Size) -> Data:
    """What later tokens read of x through the mask, too, and of the rows in front of the text."""
    return Data(CacheAndFront(mask, front=front), (x,), x.shape)
