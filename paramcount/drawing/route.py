"""Routes arrows at right angles around obstacles, as far as possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from paramcount.drawing.shapes import Arrow, Box, Group, Point

STEP = 6.0  # between two parallel lines
OUT = 9.0  # distance before the first turn
TRACKS, NEAREST = 5, 12  # channels to try: above and below everything, and near the endpoints
BLOCKED, ALONG, ACROSS = 100.0, 30.0, 4.0  # costs of crossing a shape, overlapping a line, crossing a line
CLEAR = 9.0  # a path whose extra cost is below this is good enough
SLACK = 0.5  # tolerance


Stretch: TypeAlias = tuple[float, float, float, int]  # position, start, end, step


class Port(NamedTuple):
    """A possible end of a line, and the side it comes from."""

    x: float
    y: float
    side: str  # left | below | above


class Lines:
    """The arrows drawn so far, and the obstacles."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.arrows: list[Arrow] = []
        self.boxes: list[Box] = [box for group in groups for box in group.boxes]
        for group in groups:
            for arrow in group.arrows:
                for (a, b), (c, d) in pairwise(arrow.points):
                    self.boxes.append((min(a, c), min(b, d) - 2, max(a, c), max(b, d) + 2))
        self.boxes = [(a + SLACK, b + SLACK, c - SLACK, d - SLACK) for a, b, c, d in self.boxes]
        self.top = min((box[1] for box in self.boxes), default=0.0)
        self.bottom = max((box[3] for box in self.boxes), default=0.0)
        self.used: tuple[list[Stretch], list[Stretch]] = [], []  # horizontal, vertical

    def draw(self, start: Point, ports: Sequence[Port], step: int, end: int, head: bool) -> None:
        """Add an arrow to the port with the cheapest path: direct if nothing is in the way, else along a channel."""
        least, best = float("inf"), tuple[Point, ...]((start,))
        for around in (False, True):
            for rank, port in enumerate(ports):
                for points in (
                    list_detours(start, port, self.channels(start, port)) if around else list_direct_paths(start, port)
                ):
                    cost = self.cost(points, step, least - rank / 2) + rank / 2
                    if cost < least:
                        least, best = cost, points
            if least < measure_path(best) + CLEAR:
                break
        points = simplify_path(best)
        for a, b in pairwise(points):
            upright = a[0] == b[0]
            low, high = sorted((a[upright], b[upright]))
            self.used[upright].append((a[1 - upright], low, high, step))
        self.arrows.append(Arrow(points, step, end, head))

    def channels(self, start: Point, port: Port) -> list[float]:
        """y positions for long lines: above and below everything, and right above and below single shapes."""
        between = {
            y
            for left, top, right, bottom in self.boxes
            if right > start[0] and left < port.x
            for y in (top - 7, bottom + 7)
        }
        near = sorted(between, key=lambda y: (abs(y - port.y) + abs(y - start[1]), y))[:NEAREST]
        return [
            *(self.top - OUT - i * STEP for i in range(TRACKS)),
            *near,
            *(self.bottom + OUT + i * STEP for i in range(TRACKS)),
        ]

    def cost(self, points: Sequence[Point], step: int, most: float) -> float:
        """The cost of a path: length, corners, crossed shapes and lines. Stops once it exceeds `most`."""
        found = measure_path(points)
        for a, b in pairwise(points):
            if found >= most:
                return found
            upright = a[0] == b[0]
            at = a[1 - upright]
            low, high = (a[upright], b[upright]) if a[upright] <= b[upright] else (b[upright], a[upright])
            if upright:
                found += BLOCKED * sum(1 for x, y, x2, y2 in self.boxes if x < at < x2 and low < y2 and y < high)
            else:
                found += BLOCKED * sum(1 for x, y, x2, y2 in self.boxes if y < at < y2 and low < x2 and x < high)
            along, across = self.used[upright], self.used[not upright]
            found += ALONG * sum(
                1
                for other, start, end, begun in along
                if abs(at - other) < STEP - 1 and low < end and start < high and begun != step
            )
            found += ACROSS * sum(
                1 for other, start, end, begun in across if low < other < high and start < at < end and begun != step
            )
        return found


def measure_path(points: Sequence[Point]) -> float:
    """The cost of a path's length and corners."""
    return 2.0 * len(points) + sum(abs(a - c) + abs(b - d) for (a, b), (c, d) in pairwise(points)) / 40


def list_direct_paths(start: Point, port: Port) -> Iterator[tuple[Point, ...]]:
    """Paths to a port with at most two corners."""
    (x, y), end = start, (port.x, port.y)
    if port.side != "left":
        if (y > port.y) == (port.side == "below") and abs(y - port.y) > 4 and x < port.x:
            yield start, (port.x, y), end
        return
    if abs(y - port.y) < 0.01:
        yield start, end
    for at in (port.x - OUT, *(x + OUT + i * STEP for i in range(3))):
        if x < at < port.x:
            yield start, (at, y), (at, port.y), end


def list_detours(start: Point, port: Port, channels: Sequence[float]) -> Iterator[tuple[Point, ...]]:
    """Paths to a port along a channel."""
    (x, y), end = start, (port.x, port.y)
    for c in channels:
        for i in range(2):
            first = x + OUT + i * STEP
            if port.side == "left":
                yield start, (first, y), (first, c), (port.x - OUT, c), (port.x - OUT, port.y), end
            elif (c > port.y + 4) if port.side == "below" else (c < port.y - 4):
                yield start, (first, y), (first, c), (port.x, c), end


def simplify_path(points: Sequence[Point]) -> tuple[Point, ...]:
    """The path without redundant points."""
    found = [points[0]]
    for point in points[1:]:
        if point == found[-1]:
            continue
        if len(found) > 1 and (found[-2][0] == found[-1][0] == point[0] or found[-2][1] == found[-1][1] == point[1]):
            found.pop()
        found.append(point)
    return tuple(found)
