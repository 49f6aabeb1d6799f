"""Arrows between pieces, in right angles, around what stands in the way as far as they can."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paramcount.drawing.shapes import Arrow, Box, Group, Point

STEP = 6.0  # between two lines side by side
OUT = 9.0  # how far a line goes before it turns


class Port(NamedTuple):
    """Where a line may end, and from which side it comes."""

    x: float
    y: float
    side: str  # left | below | above


class Lines:
    """The arrows drawn so far, and what they must go around."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.arrows: list[Arrow] = []
        self.boxes: list[Box] = [part.box for group in groups for part in (*group.rectangles, *group.texts, *group.signs)]
        self.boxes += [frame.box for group in groups for frame in group.frames]
        for group in groups:
            for arrow in group.arrows:
                for (a, b), (c, d) in zip(arrow.points, arrow.points[1:]):
                    self.boxes.append((min(a, c), min(b, d) - 1, max(a, c), max(b, d) + 1))
        self.top = min((box[1] for box in self.boxes), default=0.0)
        self.bottom = max((box[3] for box in self.boxes), default=0.0)
        self.used: list[tuple[Point, Point, int]] = []

    def draw(self, start: Point, ports: Sequence[Port], step: int, end: int, head: bool) -> None:
        """An arrow from a point to the port that is reached best."""
        best: tuple[float, tuple[Point, ...]] | None = None
        for rank, port in enumerate(ports):
            for points in ways(start, port, self.channels(start, port)):
                cost = self.cost(points, step, best[0] if best else float("inf")) + 0.5 * rank
                if best is None or cost < best[0]:
                    best = cost, points
            if best and best[0] < 20:
                break
        assert best  # noqa: S101 - there is a way to every port
        points = tidy(best[1])
        self.used += [(a, b, step) for a, b in zip(points, points[1:])]
        self.arrows.append(Arrow(points, step, end, head))

    def channels(self, start: Point, port: Port) -> Iterator[float]:
        """Heights at which a line may run for long: above everything, below everything, and right above and below single things."""
        for i in range(6):
            yield self.top - OUT - i * STEP
        near = sorted(
            {
                y
                for left, top, right, bottom in self.boxes
                if right > start[0] and left < port.x and (left, right) != (start[0], port.x)
                for y in (top - 7, bottom + 7)
            },
            key=lambda y: abs(y - port.y) + abs(y - start[1]),
        )
        yield from near[:24]
        for i in range(6):
            yield self.bottom + OUT + i * STEP

    def cost(self, points: Sequence[Point], step: int, most: float) -> float:
        """What is against a way: things in it, lines on it and across it, its length and its corners."""
        found = 2.0 * len(points) + sum(abs(a - c) + abs(b - d) for (a, b), (c, d) in zip(points, points[1:])) / 40
        for a, b in zip(points, points[1:]):
            left, right = min(a[0], b[0]), max(a[0], b[0])
            top, bottom = min(a[1], b[1]), max(a[1], b[1])
            for x, y, x2, y2 in self.boxes:
                if left < x2 - 0.5 and x + 0.5 < right and top < y2 - 0.5 and y + 0.5 < bottom:
                    found += 100
                elif left == right and x + 0.5 < left < x2 - 0.5 and top < y2 - 0.5 and y + 0.5 < bottom:
                    found += 100
                elif top == bottom and y + 0.5 < top < y2 - 0.5 and left < x2 - 0.5 and x + 0.5 < right:
                    found += 100
            if found > most:
                return found
            for c, d, other in self.used:
                if other != step:
                    found += meeting(a, b, c, d)
        return found


def meeting(a: Point, b: Point, c: Point, d: Point) -> float:
    """What two stretches of lines cost each other: much where they lie on one another, little where they cross."""
    upright, other = a[0] == b[0], c[0] == d[0]
    i = 1 if upright else 0
    low, high = min(a[i], b[i]), max(a[i], b[i])
    if upright == other:
        near = abs(a[1 - i] - c[1 - i]) < STEP - 1
        return 30.0 if near and low < max(c[i], d[i]) and min(c[i], d[i]) < high else 0.0
    return 4.0 if low < c[i] < high and min(c[1 - i], d[1 - i]) < a[1 - i] < max(c[1 - i], d[1 - i]) else 0.0


def ways(start: Point, port: Port, channels: Iterator[float]) -> Iterator[tuple[Point, ...]]:
    """Ways to a port, simple ones first."""
    (x, y), end = start, (port.x, port.y)
    if port.side == "left":
        if abs(y - port.y) < 0.01:
            yield start, end
        for at in (port.x - OUT, *(x + OUT + i * STEP for i in range(3))):
            if x < at < port.x:
                yield start, (at, y), (at, port.y), end
        for c in channels:
            for i in range(2):
                first, last = x + OUT + i * STEP, port.x - OUT
                yield start, (first, y), (first, c), (last, c), (last, port.y), end
        return
    below = port.side == "below"
    if (y > port.y) == below and abs(y - port.y) > 4 and x < port.x:
        yield start, (port.x, y), end
    for c in channels:
        if (c > port.y + 4) if below else (c < port.y - 4):
            for i in range(3):
                first = x + OUT + i * STEP
                yield start, (first, y), (first, c), (port.x, c), end


def tidy(points: Sequence[Point]) -> tuple[Point, ...]:
    """Without corners that are none."""
    found = [points[0]]
    for point in points[1:]:
        if point == found[-1]:
            continue
        if len(found) > 1 and (found[-2][0] == found[-1][0] == point[0] or found[-2][1] == found[-1][1] == point[1]):
            found.pop()
        found.append(point)
    return tuple(found)
