"""Routes arrows at right angles around obstacles, as far as possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from paramcount.drawing.search import CORNER, DOWN, RIGHT, UP, find_path
from paramcount.drawing.shapes import Arrow, Box, Group, Point

LINE_GAP = 6.0  # between two parallel lines
HALF_LINE = 2.0  # what others keep from the middle of a line
TURN = 9.0  # distance before the first turn
TRACKS, NEAREST = 5, 12  # channels to try: above and below everything, and near the endpoints
BLOCKED, OVERLAP, CROSSING = 100.0, 30.0, 4.0  # costs of crossing a shape, overlapping a line, crossing a line
MOST_SEARCHES = 24  # more are needed only in rows of a thousand shapes, where none of them finds a way
CLEAR = 9.0  # a path with a lower extra cost is good enough
SLACK = 0.5  # tolerance
MARGIN = 7.0  # between a line and the shape that it goes around


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
                    self.boxes.append((min(a, c), min(b, d) - HALF_LINE, max(a, c), max(b, d) + HALF_LINE))
        self.boxes = [(a + SLACK, b + SLACK, c - SLACK, d - SLACK) for a, b, c, d in self.boxes]
        self.top = min((box[1] for box in self.boxes), default=0.0)
        self.bottom = max((box[3] for box in self.boxes), default=0.0)
        self.n_searches = 0
        self.used: tuple[list[Stretch], list[Stretch]] = [], []  # horizontal, vertical

    def draw(self, start: Point, ports: Sequence[Port], step: int, end: int, head: bool) -> None:
        """Add an arrow to the port with the cheapest path: direct if nothing is in the way, else along a channel."""
        lowest_cost, best = float("inf"), tuple[Point, ...]((start,))
        for allows_detours in (False, True):
            for rank, port in enumerate(ports):
                paths = list_direct_paths(start, port)
                if allows_detours:
                    paths = list_detours(start, port, self.list_channels(start, port))
                for points in paths:
                    cost = self.compute_cost(points, step, lowest_cost - rank / 2) + rank / 2
                    if cost < lowest_cost:
                        lowest_cost, best = cost, points
            if lowest_cost < measure_path(best) + CLEAR:
                break
        for turns_late in (False, True):
            for port in reversed(ports):  # from below or above, if possible: there is more room
                if lowest_cost >= BLOCKED and self.n_searches < MOST_SEARCHES:
                    self.n_searches += 1
                    path = self.search(start, port, step, turns_late)
                    if path and (cost := self.compute_cost(path, step, lowest_cost)) < lowest_cost:
                        lowest_cost, best = cost, path
        points = simplify_path(best)
        for a, b in pairwise(points):
            is_vertical = a[0] == b[0]
            low, high = sorted((a[is_vertical], b[is_vertical]))
            self.used[is_vertical].append((a[1 - is_vertical], low, high, step))
        self.arrows.append(Arrow(points, step, end, head))

    def find_way_out(self, start: Point, end: Point) -> tuple[Point, ...]:
        """The path of a line that leaves all shapes at the right and ends below them."""
        straight = (start, (end[0], start[1]), end)
        if self.compute_cost(straight, -1, float("inf")) < BLOCKED:
            return straight
        return self.search(start, Port(*end, "above"), -1) or straight

    def search(self, start: Point, port: Port, step: int, turns_late: bool = False) -> tuple[Point, ...]:
        """The cheapest path along the edges of all shapes. `turns_late`: its last corner may be next to the port."""
        before = {"left": (port.x - TURN, port.y), "below": (port.x, port.y + TURN), "above": (port.x, port.y - TURN)}
        beginning, end = (start[0] + TURN, start[1]), before[port.side]
        arrival = {"left": RIGHT, "below": UP, "above": DOWN}[port.side]
        tolls = [(box, BLOCKED, BLOCKED) for box in self.boxes]
        for is_vertical, stretches in enumerate(self.used):
            for at, low, high, other in stretches:
                if other != step:
                    near, line = (at - LINE_GAP + 1, at + LINE_GAP - 1), (at - SLACK, at + SLACK)
                    if is_vertical:
                        tolls.append(((near[0], low, near[1], high), 0.0, OVERLAP))
                        tolls.append(((line[0], low, line[1], high), CROSSING, 0.0))
                    else:
                        tolls.append(((low, near[0], high, near[1]), OVERLAP, 0.0))
                        tolls.append(((low, line[0], high, line[1]), 0.0, CROSSING))
        xs = [x for left, _, right, _ in self.boxes for x in (left - MARGIN, right + MARGIN)]
        ys = [y for _, top, _, bottom in self.boxes for y in (top - MARGIN, bottom + MARGIN)]
        path = find_path(beginning, end, arrival, tolls, xs, [*ys, *self.list_channels(start, port)], turns_late)
        return simplify_path((start, *path, (port.x, port.y))) if path else ()

    def list_channels(self, start: Point, port: Port) -> list[float]:
        """y positions for long lines: above and below everything, and right above and below single shapes."""
        boxes = [box for box in self.boxes if box[2] > start[0] and box[0] < port.x]
        edges = {y for _, top, _, bottom in boxes for y in (top - MARGIN, bottom + MARGIN)}
        near = sorted(edges, key=lambda y: (abs(y - port.y) + abs(y - start[1]), y))[:NEAREST]
        above = [self.top - TURN - i * LINE_GAP for i in range(TRACKS)]
        below = [self.bottom + TURN + i * LINE_GAP for i in range(TRACKS)]
        return [*above, *near, *below]

    def compute_cost(self, points: Sequence[Point], step: int, limit: float) -> float:
        """The cost of a path: length, corners, crossed shapes and lines. A path over `limit` is not finished."""
        cost = measure_path(points)
        for a, b in pairwise(points):
            if cost >= limit:
                return cost
            is_vertical = a[0] == b[0]
            at = a[1 - is_vertical]
            low, high = a[is_vertical], b[is_vertical]
            if low > high:
                low, high = high, low
            if is_vertical:
                cost += BLOCKED * sum(1 for x, y, x2, y2 in self.boxes if x < at < x2 and low < y2 and y < high)
            else:
                cost += BLOCKED * sum(1 for x, y, x2, y2 in self.boxes if y < at < y2 and low < x2 and x < high)
            for other, start, end, other_step in self.used[is_vertical]:
                if abs(at - other) < LINE_GAP - 1 and low < end and start < high and other_step != step:
                    cost += OVERLAP
            for other, start, end, other_step in self.used[not is_vertical]:
                if low < other < high and start < at < end and other_step != step:
                    cost += CROSSING
        return cost


def measure_path(points: Sequence[Point]) -> float:
    return CORNER * len(points) + sum(abs(a - c) + abs(b - d) for (a, b), (c, d) in pairwise(points)) / 40


def list_direct_paths(start: Point, port: Port) -> Iterator[tuple[Point, ...]]:
    (x, y), end = start, (port.x, port.y)
    if port.side != "left":
        if (y > port.y) == (port.side == "below") and abs(y - port.y) > 4 and x < port.x:
            yield start, (port.x, y), end
        return
    if abs(y - port.y) < 0.01:
        yield start, end
    for at in (port.x - TURN, *(x + TURN + i * LINE_GAP for i in range(3))):
        if x < at < port.x:
            yield start, (at, y), (at, port.y), end


def list_detours(start: Point, port: Port, channels: Sequence[float]) -> Iterator[tuple[Point, ...]]:
    (x, y), end = start, (port.x, port.y)
    for c in channels:
        for i in range(2):
            first = x + TURN + i * LINE_GAP
            if port.side == "left":
                yield start, (first, y), (first, c), (port.x - TURN, c), (port.x - TURN, port.y), end
            elif (c > port.y + 4) if port.side == "below" else (c < port.y - 4):
                yield start, (first, y), (first, c), (port.x, c), end


def simplify_path(points: Sequence[Point]) -> tuple[Point, ...]:
    path = [points[0]]
    for point in points[1:]:
        if point == path[-1]:
            continue
        if len(path) > 1 and (path[-2][0] == path[-1][0] == point[0] or path[-2][1] == path[-1][1] == point[1]):
            path.pop()
        path.append(point)
    return tuple(path)
