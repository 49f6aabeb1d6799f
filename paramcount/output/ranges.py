"""Ranges of indices: joined, and formatted as text."""

from __future__ import annotations

from collections.abc import Iterable


def join_ranges(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges of indices (first, length), sorted, with adjacent ones joined.

    >>> join_ranges([(7, 1), (0, 3), (3, 2)])
    ((0, 5), (7, 1))
    """
    found: list[tuple[int, int]] = []
    for first, length in sorted(spans):
        if found and sum(found[-1]) == first:
            found[-1] = found[-1][0], found[-1][1] + length
        else:
            found.append((first, length))
    return tuple(found)


def format_ranges(spans: Iterable[tuple[int, int]], dash: str = "–") -> list[str]:
    """Ranges of indices as text.

    >>> format_ranges([(0, 3), (7, 1)])
    ['0–2', '7']
    """
    return [f"{first}{dash}{first + length - 1}" if length > 1 else f"{first}" for first, length in spans]
