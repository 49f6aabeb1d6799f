"""Arranges pieces in lanes: a branch opens a new lane below. Arrows are routed between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paramcount.drawing.items import OUTSIDE, Item
from paramcount.drawing.matrices import make_output
from paramcount.drawing.pieces import JOINT, SMALL, Piece, make_piece
from paramcount.drawing.route import HALF_LINE, Lines, Port
from paramcount.drawing.shapes import CARD, Arrow, Frame, Group, Point, Text
from paramcount.tracing.trace import Step

GAP = 22.0  # between two pieces, for the arrow
WORDS_GAP = 6.0  # before words, which include a line
LANE_GAP = 20.0  # between lanes
PAD = 14.0  # inside a frame
MAX_ROW, MIN_SHARE = 2000.0, 0.35  # largest width of a row; the smallest share of it that a cut may leave
MAX_EXPERTS = 12  # drawn


class Layout(NamedTuple):
    """Arranged items. The axis of the first lane is at y = 0, the left edge at x = 0."""

    group: Group
    way_in: Point
    way_out: Point


class Edge(NamedTuple):
    """Data that flow from one item to another."""

    start: int
    end: int
    operand: bool


class Spread(NamedTuple):
    """Drawn items with their lanes and x positions."""

    pieces: list[Piece]
    edges: list[Edge]
    lanes: list[int]
    xs: list[float]

    @property
    def rights(self) -> list[float]:
        return [x + piece.width for x, piece in zip(self.xs, self.pieces)]


def spread_items(items: Sequence[Item], scale: float, *, inside: bool = False) -> Spread:
    """The lane and x position of each item, to the right of its inputs. `inside`: data enter at the left edge."""
    pieces = [make_experts(item, scale) if item.kind == "experts" else make_piece(item, scale) for item in items]
    entry = len(pieces) if inside else None
    if inside:
        pieces.append(Piece(Item("entry", OUTSIDE, ()), Group(), 0, (0, 0), (0, 0)))
    edges = list(list_edges(items, entry))
    incoming: dict[int, list[Edge]] = {}
    for edge in edges:
        incoming.setdefault(edge.end, []).append(edge)
    tails = [] if entry is None else [entry]  # the last item of each lane
    lanes, xs = [0] * len(pieces), [0.0] * len(pieces)
    for i in range(len(items)):
        inputs = [edge.start for edge in incoming.get(i, [])]
        main_inputs = [edge.start for edge in incoming.get(i, []) if not edge.operand]
        previous = next((start for start in main_inputs if start in tails), None)
        lanes[i] = len(tails) if previous is None else lanes[previous]
        tails[lanes[i] : lanes[i] + 1] = [i]
        rights = [xs[start] + pieces[start].width + choose_gap(pieces[start], pieces[i]) for start in inputs]
        xs[i] = max(rights, default=0.0)
    return Spread(pieces, edges, lanes, shift_lanes(pieces, edges, lanes, xs))


def shift_lanes(
    pieces: Sequence[Piece], edges: Sequence[Edge], lanes: Sequence[int], xs: Sequence[float]
) -> list[float]:
    """x positions with lanes shifted to the right if that makes way for arrows to the lanes below."""
    shifted = list(xs)
    for lane in range(1, max(lanes, default=0)):
        members = [i for i in range(len(pieces)) if lanes[i] == lane]
        first_x = shifted[members[0]]
        crossing = [e for e in edges if lanes[e.start] < lane < lanes[e.end] and not e.operand]
        below = [shifted[e.end] for e in crossing if xs[e.end] > xs[e.start]]
        wanted = max((x for x in below if x < first_x + 200), default=0.0) - first_x
        outgoing = [e for e in edges if lanes[e.start] == lane != lanes[e.end]]
        slack = [shifted[e.end] - shifted[e.start] - pieces[e.start].width - GAP for e in outgoing]
        shift = min(wanted, min(slack, default=0.0))
        if shift > 0:
            for i in members:
                shifted[i] += shift
    return shifted


def lay_out(items: Sequence[Item], scale: float, *, inside: bool = False) -> Layout:
    pieces, edges, lanes, xs = spread_items(items, scale, inside=inside)
    ys = choose_heights(pieces, edges, lanes, xs)
    groups = [piece.group.move(x, ys[lane]) for piece, x, lane in zip(pieces, xs, lanes)]
    lines = Lines(groups)
    straight = {
        edge
        for edge in edges
        if not edge.operand and lanes[edge.start] == lanes[edge.end]
        if not any(lane == lanes[edge.start] and xs[edge.start] < x < xs[edge.end] for lane, x in zip(lanes, xs))
    }
    for edge in sorted(edges, key=lambda e: (e not in straight, abs(xs[e.end] - xs[e.start]), e.end)):
        start, end = pieces[edge.start], pieces[edge.end]
        point = shift_point(start.way_out, xs[edge.start], ys[lanes[edge.start]])
        ports = list_ports(end, xs[edge.end], ys[lanes[edge.end]], edge)
        has_head = edge not in straight or end.item.kind not in ("words", "sign")
        lines.draw(point, ports, start.item.step, end.item.step, has_head)
    group = Group().combine(*groups, Group(arrows=tuple(lines.arrows)))
    last = len(items) - 1
    return Layout(group, (0.0, 0.0), shift_point(pieces[last].way_out, xs[last], ys[lanes[last]]))


def shift_point(point: Point, x: float, y: float) -> Point:
    return point[0] + x, point[1] + y


def list_edges(items: Sequence[Item], entry: int | None) -> Iterator[Edge]:
    owner = {item.step: i for i, item in enumerate(items)}
    for i, item in enumerate(items):
        reads = dict.fromkeys((owner.get(step, entry), step == item.operand) for step in item.reads)
        for start, operand in reads:
            if start is not None:
                yield Edge(start, i, operand)
        if item.operand is not None and len(item.reads) == 1 and (start := owner.get(item.operand, entry)) is not None:
            yield Edge(start, i, False)  # multiplied by itself


def choose_gap(previous: Piece, piece: Piece) -> float:
    if piece.item.kind == "words":
        return WORDS_GAP
    return GAP - 4 if previous.item.kind == "words" else GAP


def choose_heights(
    pieces: Sequence[Piece], edges: Sequence[Edge], lanes: Sequence[int], xs: Sequence[float]
) -> list[float]:
    """The y of each lane, as high as the lanes above allow."""
    above: list[tuple[float, float, float]] = []  # (left, right, bottom) of all shapes in the lanes above
    ys: list[float] = []
    for lane in range(max(lanes, default=0) + 1):
        members = [i for i in range(len(pieces)) if lanes[i] == lane]
        spans = []
        for i in members:
            left, top, right, bottom = pieces[i].group.move(xs[i], 0).box
            spans.append((left, right, top, bottom))
            arrow_end = max((xs[e.end] for e in edges if e.start == i), default=right)
            spans.append((right, arrow_end, -4.0, 4.0))
        lowest = [
            bottom + LANE_GAP - top
            for left, right, top, _ in spans
            for other_left, other_right, bottom in above
            if left < other_right + 10 and other_left < right + 10
        ]
        y = max(lowest, default=0.0)
        if ys:
            y = max(y, ys[-1] + 12)
        ys.append(y)
        above += [(left, right, y + bottom) for left, right, _, bottom in spans]
    return ys


def list_ports(end: Piece, x: float, y: float, edge: Edge) -> list[Port]:
    """The points where data may enter, best first."""
    if edge.operand and end.operand:
        return [Port(*shift_point(end.operand, x, y), "below")]
    way = Port(*shift_point(end.way_in, x, y), "left")
    if end.item.kind == "sign" or (end.item.kind == "box" and len(end.item.reads) > 1):
        return [way, Port(x + end.joint, y + JOINT, "below"), Port(x + end.joint, y - JOINT, "above")]
    if end.item.kind == "words":
        return [way, Port(x + end.joint, y + HALF_LINE, "below")]
    return [way]


def make_experts(item: Item, scale: float) -> Piece:
    """One expert in a frame, with the frames of others behind it."""
    layout = lay_out(item.body, scale, inside=True)
    left, top, right, bottom = layout.group.box
    active, count = item.experts
    cards = max(min(count, MAX_EXPERTS) - 1, 0)
    active_cards = max(min(active, cards + 1) - 1, 0)
    shift = PAD - left
    width, height = right - left + 2 * PAD, bottom - top + 2 * PAD
    frame = Frame(0, top - PAD, width, height, "expert", cards, active_cards)
    heading = Text(frame.width / 2, frame.box[1] - 6, describe_experts(item), SMALL + 1, role="name")
    way_in = (0.0, layout.way_in[1])
    end = shift_point(layout.way_out, shift, 0)
    lines = (
        Arrow((way_in, (shift, way_in[1])), item.step, item.step, head=False),
        Arrow((end, (frame.box[2], end[1])), item.step, item.step, head=False),
    )
    group = layout.group.move(shift, 0).combine(Group(frames=(frame,), texts=(heading,), arrows=lines))
    return Piece(item, group, frame.box[2], way_in, (frame.width + CARD * cards, end[1]))


def describe_experts(item: Item) -> str:
    """The number of experts, in total and active.

    >>> describe_experts(Item("experts", 0, (), experts=(8, 256), layers=58))
    '256 experts × 58 layers = 14,848, 8 active per token (first 12 shown)'
    """
    active, count = item.experts
    layers = f" × {item.layers:,} layers = {count * item.layers:,}" if item.layers > 1 else ""
    limit = f" (first {MAX_EXPERTS} shown)" if count > MAX_EXPERTS else ""
    return f"{count:,} experts{layers}, {active:,} active per token{limit}"


# ---- rows


def split_rows(items: Sequence[Item], steps: Sequence[Step], scale: float) -> Iterator[tuple[Item, ...]]:
    """The items in rows that are not too wide. A row ends where the fewest data cross; the next row repeats those."""
    rights = spread_items(items, scale).rights
    ends = [right for i, right in enumerate(rights) if MIN_SHARE * MAX_ROW < right < MAX_ROW and is_good_cut(items, i)]
    if max(rights) <= MAX_ROW or not ends:
        yield tuple(items)
        return
    cuts = [i for i, right in enumerate(rights[:-1]) if right in ends]
    cut = min(cuts, key=lambda i: (len(find_crossing_steps(items, i)), -rights[i]))
    main, *others = sorted(find_crossing_steps(items, cut), key=lambda step: (step != items[cut].step, step))
    rest = [Item("source", main, (), make_output(steps[main], main)), *items[cut + 1 :]]
    for step in others:
        at = next(i for i, item in enumerate(rest) if step in item.reads)
        rest.insert(at, Item("source", step, (), make_output(steps[step], step, label="from above")))
    yield tuple(items[: cut + 1])
    yield from split_rows(rest, steps, scale)


def find_crossing_steps(items: Sequence[Item], cut: int) -> set[int]:
    """The steps up to an item that later items read."""
    drawn = {item.step for item in items[: cut + 1]}
    return {step for item in items[cut + 1 :] for step in item.reads if step in drawn}


def is_good_cut(items: Sequence[Item], cut: int) -> bool:
    """Whether later items read this one, and draw a product or experts, so that they are worth a row of their own."""
    has_products = any(item.kind in ("product", "experts") for item in items[cut + 1 :])
    return has_products and items[cut].step in find_crossing_steps(items, cut)
