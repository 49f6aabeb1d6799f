"""Rectangles whose areas are given: a squarified treemap, and grids of equal cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log, sqrt
from typing import NamedTuple

MAX_RATIO = 2.0  # of the sides of a cell in equal rows


class Area(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


class CellRow(NamedTuple):
    """Equal rows of a grid, one below the other."""

    area: Area  # of all of them
    rows: int
    columns: int

    @property
    def width(self) -> float:
        return self.area.width / self.columns

    @property
    def height(self) -> float:
        return self.area.height / self.rows


def squarify(values: Sequence[float], area: Area) -> list[Area]:
    """One rectangle for each value, with areas in proportion. The values are positive, in descending order.

    The first is in the upper left corner.
    Source: Bruls, Huizing and van Wijk, "Squarified Treemaps", 2000.

    >>> [(area.x, area.y, area.width, area.height) for area in squarify([6, 3, 3], Area(0.0, 0.0, 4.0, 3.0))]
    [(0.0, 0.0, 2.0, 3.0), (2.0, 0.0, 2.0, 1.5), (2.0, 1.5, 2.0, 1.5)]
    """
    areas: list[Area] = []
    rest = sum(values)
    while len(areas) < len(values):
        remaining = values[len(areas) :]
        x, y, width, height = area
        is_wide = width >= height
        long, short = (width, height) if is_wide else (height, width)
        strip = choose_strip(remaining, short, long / rest if rest else 0.0)
        part = sum(strip)
        is_last = len(strip) == len(remaining)
        thickness = long if is_last else long * part / rest
        offset = 0.0
        for value in strip:
            length = short * value / part
            if is_wide:
                areas.append(Area(x, y + offset, thickness, length))
            else:
                areas.append(Area(x + offset, y, length, thickness))
            offset += length
        rest -= part
        area = (
            Area(x + thickness, y, width - thickness, height)
            if is_wide
            else Area(x, y + thickness, width, height - thickness)
        )
    return areas


def choose_strip(values: Sequence[float], short: float, scale: float) -> Sequence[float]:
    """The first values, as many as make the least square rectangle of a strip as square as possible. `short`: the
    length of the strip. `scale`: the thickness of the strip for each unit of its values."""
    best = float("inf")
    for n in range(1, len(values) + 1):
        worst = measure_worst_ratio(values[:n], short, scale)
        if worst > best:
            return values[: n - 1]
        best = worst
    return values


def measure_worst_ratio(strip: Sequence[float], short: float, scale: float) -> float:
    part = sum(strip)
    thickness = part * scale
    lengths = [short * strip[0] / part, short * strip[-1] / part]
    if not thickness or not lengths[1]:
        return 1.0
    return max(max(thickness / length, length / thickness) for length in lengths)


def divide_area(area: Area, cells: int) -> Iterator[CellRow]:
    """The area as cells of equal size, nearly square: equal rows, or rows whose numbers of cells differ by one.

    >>> [(row.rows, row.columns) for row in divide_area(Area(0, 0, 30, 20), 32)]
    [(4, 8)]
    >>> [(row.rows, row.columns) for row in divide_area(Area(0, 0, 30, 20), 58)]
    [(4, 10), (2, 9)]
    """
    rows = choose_rows(area, cells)
    columns, longer = divmod(cells, rows)
    y = area.y
    for n, k in ((longer, columns + 1), (rows - longer, columns)):
        if n:
            height = area.height * n * k / cells
            yield CellRow(Area(area.x, y, area.width, height), n, k)
            y += height


def choose_rows(area: Area, cells: int) -> int:
    """The number of rows that makes cells most nearly square, with equal rows if their cells are square enough."""
    ratio = area.height / area.width if area.width else float(cells)
    best = min(max(sqrt(cells * ratio), 1.0), float(cells))
    nearby = range(max(1, ceil(best / sqrt(MAX_RATIO))), min(cells, floor(best * sqrt(MAX_RATIO))) + 1)
    even = [rows for rows in nearby if cells % rows == 0]
    return min(even, key=lambda rows: abs(log(rows / best))) if even else round(best)
