"""Pieces on lanes: what follows goes on in its lane, what branches off opens one below; arrows find their way between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paramcount.drawing.items import OUTSIDE, Item
from paramcount.drawing.pieces import JOINT, SMALL, Piece, piece
from paramcount.drawing.routing import Lines, Port
from paramcount.drawing.shapes import CARD, Arrow, Frame, Group, Point, Text

GAP = 22.0  # between two pieces, for the arrow
CLOSE = 6.0  # before and behind words, whose line is the arrow
APART = 20.0  # between lanes
PAD = 14.0  # inside a frame
SHOWN = 12  # experts that are drawn behind one another


class Laid(NamedTuple):
    """Items in their places: the axis of the first lane at height 0, the left edge at 0."""

    group: Group
    way_in: Point
    way_out: Point


class Edge(NamedTuple):
    """Data that go from one item to another."""

    start: int
    end: int
    operand: bool


def laid(items: Sequence[Item], scale: float, *, inside: bool = False) -> Laid:
    """Items in their places. `inside`: what comes from outside enters at the left edge."""
    pieces = [composite(item, scale) if item.kind == "experts" else piece(item, scale) for item in items]
    entry = None
    if inside:
        entry = len(pieces)
        pieces.append(Piece(Item("entry", OUTSIDE, ()), Group(), 0, (0, 0), (0, 0)))
    owner = {item.step: i for i, item in enumerate(items)}
    edges = list(edges_of(items, owner, entry))
    lanes, xs = spread(pieces, edges, entry)
    ys = heights(pieces, edges, lanes, xs)
    placed = [p.group.moved(x, ys[lane]) for p, x, lane in zip(pieces, xs, lanes)]
    lines = Lines(placed)
    follows = {edge for edge in edges if not edge.operand and lanes[edge.start] == lanes[edge.end] and next_in_lane(edge, lanes, xs)}
    ends: dict[int, Point] = {}
    for edge in sorted(edges, key=lambda e: (e not in follows, abs(xs[e.end] - xs[e.start]), e.end)):
        start, end = pieces[edge.start], pieces[edge.end]
        here = at(start.way_out, xs[edge.start], ys[lanes[edge.start]])
        lines.draw(here, ports(end, xs[edge.end], ys[lanes[edge.end]], edge), start.item.step, end.item.step, end.item.kind not in ("words", "sign") or edge not in follows)
    group = Group().with_(*placed, Group(arrows=tuple(lines.arrows)))
    last = max((i for i in range(len(items))), default=0)
    return Laid(group, (0.0, 0.0), at(pieces[last].way_out, xs[last], ys[lanes[last]]) if items else (0.0, 0.0))


def at(point: Point, x: float, y: float) -> Point:
    return point[0] + x, point[1] + y


def edges_of(items: Sequence[Item], owner: dict[int, int], entry: int | None) -> Iterator[Edge]:
    for i, item in enumerate(items):
        reads = dict.fromkeys((owner.get(step, entry), step == item.operand) for step in item.reads)
        for start, operand in reads:
            if start is not None:
                yield Edge(start, i, operand)
        if item.operand is not None and len(item.reads) == 1 and (start := owner.get(item.operand, entry)) is not None:
            yield Edge(start, i, False)  # multiplied with itself


def spread(pieces: Sequence[Piece], edges: Sequence[Edge], entry: int | None) -> tuple[list[int], list[float]]:
    """The lane of each piece and its place from the left: behind all that goes into it."""
    tails: list[int] = []
    lanes, xs = [0] * len(pieces), [0.0] * len(pieces)
    into: dict[int, list[Edge]] = {}
    for edge in edges:
        into.setdefault(edge.end, []).append(edge)
    if entry is not None:
        tails.append(entry)
    for i, one in enumerate(pieces):
        if i == entry:
            continue
        given = into.get(i, [])
        before = next((edge.start for edge in given if not edge.operand and edge.start in tails), None)
        if before is None:
            lanes[i] = len(tails)
            tails.append(i)
        else:
            lanes[i] = lanes[before]
            tails[lanes[i]] = i
        xs[i] = max((xs[edge.start] + pieces[edge.start].width + gap(pieces[edge.start], one) for edge in given), default=0.0)
    return lanes, xs


def gap(before: Piece, after: Piece) -> float:
    return CLOSE if after.item.kind == "words" else GAP - 4 if before.item.kind == "words" else GAP


def heights(pieces: Sequence[Piece], edges: Sequence[Edge], lanes: Sequence[int], xs: Sequence[float]) -> list[float]:
    """How far down the axis of each lane is: as high as what stands above lets it."""
    above: list[tuple[float, float, float]] = []  # left, right, bottom of all in the lanes above
    found: list[float] = []
    for lane in range(max(lanes, default=0) + 1):
        members = [i for i in range(len(pieces)) if lanes[i] == lane]
        spans = []
        for i in members:
            left, top, right, bottom = pieces[i].group.moved(xs[i], 0).box
            spans.append((left, right, top, bottom))
            reach = max((xs[e.end] for e in edges if e.start == i), default=right)
            spans.append((right, reach, -4.0, 4.0))
        y = max((bottom + APART - top for a, b, top, _ in spans for c, d, bottom in above if a < d + 10 and c < b + 10), default=0.0)
        y = max([y, *(one + 12 for one in found[-1:])])
        found.append(y)
        above += [(left, right, y + bottom) for left, right, _, bottom in spans]
    return found


def next_in_lane(edge: Edge, lanes: Sequence[int], xs: Sequence[float]) -> bool:
    return not any(lane == lanes[edge.start] and xs[edge.start] < x < xs[edge.end] for lane, x in zip(lanes, xs))


def ports(end: Piece, x: float, y: float, edge: Edge) -> list[Port]:
    """Where data may come in, the best first."""
    if edge.operand and end.operand:
        return [Port(*at(end.operand, x, y), "below")]
    way = Port(*at(end.way_in, x, y), "left")
    if end.item.kind == "sign" or (end.item.kind == "box" and len(end.item.reads) > 1):
        return [way, Port(x + JOINT, y + JOINT, "below"), Port(x + JOINT, y - JOINT, "above")]
    if end.item.kind == "words":
        return [way, Port(x + end.width / 2, y, "below")]
    return [way]


def composite(item: Item, scale: float) -> Piece:
    """An expert in a frame, with others behind it."""
    inner = laid(item.body, scale, inside=True)
    left, top, right, bottom = inner.group.box
    visited, count = item.experts
    cards = max(min(count, SHOWN) - 1, 0)
    shift = PAD - left
    frame = Frame(0, top - PAD, right - left + 2 * PAD, bottom - top + 2 * PAD, "expert", cards, max(min(visited, cards + 1) - 1, 0))
    heading = Text(frame.width / 2, frame.box[1] - 6, f"{visited:,} of {count:,} experts a token", SMALL + 1, role="name")
    way_in = (0.0, inner.way_in[1])
    ending = (inner.way_out[0] + shift, inner.way_out[1])
    lines = (
        Arrow((way_in, (shift, way_in[1])), item.step, item.step, head=False),
        Arrow((ending, (frame.box[2], ending[1])), item.step, item.step, head=False),
    )
    group = inner.group.moved(shift, 0).with_(Group(frames=(frame,), texts=(heading,), arrows=lines))
    return Piece(item, group, frame.box[2], way_in, (frame.width + CARD * cards, ending[1]))
