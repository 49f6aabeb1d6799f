"""Ranges of indices: joined, and formatted as text."""

from __future__ import annotations

from collections.abc import Iterable


def join_ranges(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges of indices (first, length), sorted, with adjacent ones joined.

    >>> join_ranges([(7, 1), (0, 3), (3, 2)])
    ((0, 5), (7, 1))
    """
    ranges: list[tuple[int, int]] = []
    for first, length in sorted(spans):
        if ranges and sum(ranges[-1]) == first:
            ranges[-1] = ranges[-1][0], ranges[-1][1] + length
        else:
            ranges.append((first, length))
    return tuple(ranges)


def format_ranges(spans: Iterable[tuple[int, int]], dash: str = "–") -> list[str]:
    """Ranges of indices as text.

    >>> format_ranges([(0, 3), (7, 1)])
    ['0–2', '7']
    """
    return [f"{first}{dash}{first + length - 1}" if length > 1 else f"{first}" for first, length in spans]
