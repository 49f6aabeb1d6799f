"""The rows of a sweep for which a condition holds, and their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paramcount.errors import ParamcountError, count_noun, make_printable
from paramcount.sweeping.columns import find_columns
from paramcount.sweeping.sweep import Arrays
from paramcount.zoo import Model
from paramcount.zoo.columns import TableField
from paramcount.zoo.what_if import get_size, list_paths

MOST_SORTED = 10_000_000  # rows, which are all in memory


def find_sweep_field(name: str, models: Sequence[Model]) -> TableField:
    """The column of a sweep that a name refers to. Raises: ParamcountError for one without numbers or flags."""
    (model,) = models
    (column,) = find_columns(model, [name])
    value = get_size(model.sizes, column) if column in list_paths(model.sizes) else 0
    if type(value) not in (int, bool):
        found = f"is not a number: {type(value).__name__} {make_printable(value, 40)}"
        raise ParamcountError(found, where=column, expected="a count, or a size that is an integer or a flag")
    return TableField(column, "flag" if type(value) is bool else "integer", "", "", lambda *_: None)


@dataclass
class SweepSelection:
    """Which rows of a sweep are shown: those that `matches`, in the order of a column, without the columns that only
    the condition and the order need. `excluded` counts the others."""

    matches: Callable[[Mapping[str, Any]], bool] | None
    sort: str | None  # a column, with - in front for descending
    hidden: frozenset[str]
    excluded: int = 0
    seen: int = 0

    def apply(self, chunks: Iterable[Arrays]) -> Iterator[Arrays]:
        """The selected rows of chunks; sorted ones in one chunk.

        Raises: ParamcountError if there are too many to sort.
        """
        selected = map(self.filter, chunks)
        for chunk in selected if self.sort is None else self.sort_chunks(selected):
            yield {name: array for name, array in chunk.items() if name not in self.hidden}

    def filter(self, chunk: Arrays) -> Arrays:
        """The rows of a chunk for which the condition holds."""
        import numpy as np

        if self.matches is None:
            return chunk
        rows = zip(*(array.tolist() for array in chunk.values()))
        is_match = np.array([self.matches(dict(zip(chunk, row))) for row in rows], dtype=bool)
        self.excluded += int((~is_match).sum())
        self.seen += len(is_match)
        return {name: array[is_match] for name, array in chunk.items()}

    def sort_chunks(self, chunks: Iterable[Arrays]) -> Iterator[Arrays]:
        import numpy as np

        parts: list[Arrays] = []
        n = 0
        for chunk in chunks:
            parts.append(chunk)
            n += len(next(iter(chunk.values())))
            if n > MOST_SORTED:
                found = f"more than {MOST_SORTED:,} rows are too many to sort"
                raise ParamcountError(found, where="--sort", expected="fewer combinations, or --where")
        if not parts:
            return
        whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        key = whole[str(self.sort).removeprefix("-")]
        # Equal rows keep their order, in a descending one too.
        order = len(key) - 1 - np.argsort(key[::-1], kind="stable")[::-1] if str(self.sort).startswith("-") else None
        order = np.argsort(key, kind="stable") if order is None else order
        yield {name: array[order] for name, array in whole.items()}

    def describe(self) -> str:
        """The excluded rows in words."""
        verb = "does" if self.excluded == 1 else "do"
        return f"{self.excluded:,} of {count_noun(self.seen, 'valid combination')} {verb} not meet --where"
