"""The cheapest path between two points on a grid of lines around obstacles, for arrows that find no simple way."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import TypeAlias

from paramcount.drawing.shapes import Box, Point

RIGHT, DOWN, LEFT, UP = range(4)
TURNS = ((RIGHT, DOWN, UP), (RIGHT, DOWN, LEFT), (DOWN, LEFT, UP), (RIGHT, LEFT, UP))  # any but back, by direction
MOST_NODES = 40_000  # to try
REACH, APART = (250.0, 500.0), 5.0  # how far lines may be outside of both ends in x and y, and how near to each other
MOST = float("inf")  # a cost
CORNER = 2.0  # the cost of a corner; 40 pixels cost 1

Toll: TypeAlias = tuple[Box, float, float]  # an area, and the cost of crossing it along x and along y


def find_path(
    start: Point,
    end: Point,
    arrival: int,
    tolls: Sequence[Toll],
    xs: Iterable[float],
    ys: Iterable[float],
    turns_late: bool = False,
) -> tuple[Point, ...]:
    """The cheapest path of horizontal and vertical lines, which leaves `start` to the right. Empty if none is
    found.

    `arrival`: the direction at the end. `xs`, `ys`: where lines may run, besides the positions of both points.
    `turns_late`: whether the last corner may be at the end itself.
    """
    columns, rows = (
        choose_lines((start[axis], end[axis]), others, REACH[axis]) for axis, others in enumerate((xs, ys))
    )
    # Places and nodes are integers, which are fast to look up: column · rows + row, and 4 · place + direction of
    # arrival.
    n_rows = len(rows)
    first = 4 * (bisect_left(columns, start[0]) * n_rows + bisect_left(rows, start[1])) + RIGHT
    last = 4 * (bisect_left(columns, end[0]) * n_rows + bisect_left(rows, end[1])) + arrival
    strides = (n_rows, 1, -n_rows, -1)  # from a place to the next one, by direction
    widths, heights = measure_steps(columns), measure_steps(rows)
    toll_x, toll_y = (sum_tolls(columns, rows, tolls, axis) for axis in (0, 1))
    best: dict[int, float] = {first: 0.0}
    origin: dict[int, int] = {}
    queue: list[tuple[float, float, int]] = [(0.0, 0.0, first)]  # (cost of the whole path at least, cost so far, end)
    for _ in range(MOST_NODES):
        if not queue:
            break
        _, cost, node = heappop(queue)
        if node == last:
            path = [node]
            while path[-1] in origin:
                path.append(origin[path[-1]])
            return tuple((columns[i], rows[j]) for i, j in (divmod(n // 4, n_rows) for n in reversed(path)))
        if cost > best[node]:
            continue
        place, direction = divmod(node, 4)
        if turns_late and place == last // 4 and (arrival - direction) % 2 and cost + CORNER < best.get(last, MOST):
            best[last], origin[last] = cost + CORNER, node
            heappush(queue, (cost + CORNER, cost + CORNER, last))
        i, j = divmod(place, n_rows)
        for turn in TURNS[direction] if node != first else (RIGHT,):
            if turn == RIGHT:
                total = cost + widths[i] + toll_x[place]
            elif turn == DOWN:
                total = cost + heights[j] + toll_y[place]
            elif turn == LEFT:
                total = cost + widths[i - 1] + toll_x[place - n_rows]
            else:
                total = cost + heights[j - 1] + toll_y[place - 1]
            if turn != direction:
                total += CORNER
            after = place + strides[turn]
            if total < best.get(4 * after + turn, MOST):
                best[4 * after + turn] = total
                origin[4 * after + turn] = node
                k, m = divmod(after, n_rows)
                rest = abs(columns[k] - end[0]) + abs(rows[m] - end[1])
                heappush(queue, (total + rest / 40, total, 4 * after + turn))
    return ()


def measure_steps(lines: Sequence[float]) -> list[float]:
    """The cost of the step from each line to the next one; infinite from the last one, and so to the one before the
    first.
    """
    return [*((b - a) / 40 for a, b in pairwise(lines)), MOST]


def choose_lines(ends: Sequence[float], others: Iterable[float], reach: float) -> list[float]:
    """The positions of the lines of a grid: the ends, and others within reach that are not too near to each other."""
    low, high = min(ends) - reach, max(ends) + reach
    lines = sorted(ends)
    for position in sorted(others):
        i = bisect_left(lines, position)
        if low <= position <= high and all(abs(position - line) >= APART for line in lines[max(i - 1, 0) : i + 1]):
            lines.insert(i, position)
    return sorted({*lines})


def sum_tolls(columns: Sequence[float], rows: Sequence[float], tolls: Sequence[Toll], axis: int) -> list[float]:
    """The toll of the line from each place to the next column, or for axis 1 to the next row."""
    costs = [0.0] * (len(columns) * len(rows))
    along, across = (rows, columns) if axis else (columns, rows)
    line_stride, piece_stride = (len(rows), 1) if axis else (1, len(rows))
    for box, *prices in tolls:
        if not prices[axis]:
            continue
        low, high, near, far = (box[1], box[3], box[0], box[2]) if axis else (box[0], box[2], box[1], box[3])
        lines = range(bisect_right(across, near), bisect_left(across, far))
        pieces = range(max(bisect_right(along, low) - 1, 0), min(bisect_left(along, high), len(along) - 1))
        for line in lines:
            for piece in pieces:
                costs[line * line_stride + piece * piece_stride] += prices[axis]
    return costs
