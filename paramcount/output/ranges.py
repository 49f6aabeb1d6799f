"""Spans of indices: neighbours joined, and how people write them."""

from __future__ import annotations

from collections.abc import Iterable


def join_ranges(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Spans of indices (the first, how many) in order, neighbours as one.

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
    """Spans of indices as people write them.

    >>> format_ranges([(0, 3), (7, 1)])
    ['0–2', '7']
    """
    return [f"{first}{dash}{first + length - 1}" if length > 1 else f"{first}" for first, length in spans]
