"""The cheapest path between two points on a grid of lines around obstacles, for arrows that find no simple way."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import TypeAlias

from paramcount.drawing.shapes import Box, Point

RIGHT, DOWN, LEFT, UP = range(4)
STEPS = {RIGHT: (1, 0), DOWN: (0, 1), LEFT: (-1, 0), UP: (0, -1)}
MOST_NODES = 40_000  # to try
REACH, APART = (250.0, 500.0), 5.0  # how far lines may be outside of both ends in x and y, and how near to each other
MOST = float("inf")  # a cost
CORNER = 2.0  # the cost of a corner; 40 pixels cost 1

Node: TypeAlias = tuple[int, int, int]  # column, row, direction in which it was reached
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
    costs = [sum_tolls(columns, rows, tolls, axis) for axis in (0, 1)]
    first = (bisect_left(columns, start[0]), bisect_left(rows, start[1]), RIGHT)
    last = (bisect_left(columns, end[0]), bisect_left(rows, end[1]), arrival)
    best: dict[Node, float] = {first: 0.0}
    origin: dict[Node, Node] = {}
    queue: list[tuple[float, float, Node]] = [(0.0, 0.0, first)]  # (cost of the whole path at least, cost so far, end)
    for _ in range(MOST_NODES):
        if not queue:
            break
        _, cost, node = heappop(queue)
        if node == last:
            return trace_back(node, origin, columns, rows)
        if cost > best[node]:
            continue
        i, j, direction = node
        if turns_late and (i, j) == last[:2] and (last[2] - direction) % 2 and cost + CORNER < best.get(last, MOST):
            best[last], origin[last] = cost + CORNER, node
            heappush(queue, (cost + CORNER, cost + CORNER, last))
        for turn, (di, dj) in STEPS.items():
            k, m = i + di, j + dj
            is_back = (turn - direction) % 4 == 2
            if is_back or (node == first and turn != RIGHT) or not (0 <= k < len(columns) and 0 <= m < len(rows)):
                continue
            length = abs(columns[k] - columns[i]) + abs(rows[m] - rows[j])
            toll = costs[dj != 0].get((min(i, k), min(j, m)), 0.0)
            total = cost + length / 40 + toll + (CORNER if turn != direction else 0.0)
            if total < best.get((k, m, turn), MOST):
                best[k, m, turn] = total
                origin[k, m, turn] = node
                rest = abs(columns[k] - end[0]) + abs(rows[m] - end[1])
                heappush(queue, (total + rest / 40, total, (k, m, turn)))
    return ()


def choose_lines(ends: Sequence[float], others: Iterable[float], reach: float) -> list[float]:
    """The positions of the lines of a grid: the ends, and others within reach that are not too near to each other."""
    low, high = min(ends) - reach, max(ends) + reach
    lines = sorted(ends)
    for position in sorted(others):
        i = bisect_left(lines, position)
        if low <= position <= high and all(abs(position - line) >= APART for line in lines[max(i - 1, 0) : i + 1]):
            lines.insert(i, position)
    return sorted({*lines})


def sum_tolls(
    columns: Sequence[float], rows: Sequence[float], tolls: Sequence[Toll], axis: int
) -> dict[tuple[int, int], float]:
    """{(column, row): cost of the line from there to the next column, or for axis 1 to the next row}."""
    costs: dict[tuple[int, int], float] = {}
    along, across = (rows, columns) if axis else (columns, rows)
    for box, *prices in tolls:
        low, high, near, far = (box[1], box[3], box[0], box[2]) if axis else (box[0], box[2], box[1], box[3])
        lines = range(bisect_right(across, near), bisect_left(across, far))
        pieces = range(max(bisect_right(along, low) - 1, 0), min(bisect_left(along, high), len(along) - 1))
        for line in lines:
            for piece in pieces:
                place = (line, piece) if axis else (piece, line)
                costs[place] = costs.get(place, 0.0) + prices[axis]
    return costs


def trace_back(
    node: Node, origin: dict[Node, Node], columns: Sequence[float], rows: Sequence[float]
) -> tuple[Point, ...]:
    path = [node]
    while path[-1] in origin:
        path.append(origin[path[-1]])
    return tuple((columns[i], rows[j]) for i, j, _ in reversed(path))
