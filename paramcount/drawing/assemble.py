"""Stacks the sections of a drawing: rows with captions, frames around layers, arrows between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from paramcount.drawing.items import Item
from paramcount.drawing.layout import lay_out, shift_point, split_rows, spread_items
from paramcount.drawing.route import Lines
from paramcount.drawing.sections import DrawnSection, SectionBand, is_linked, make_heading
from paramcount.drawing.shapes import Arrow, Frame, Group, Point, Text, text_width
from paramcount.tracing.trace import Step

PAD = 26.0  # inside a frame
ROW_GAP = 30.0  # between the rows of a section
SECTION_GAP = 34.0  # between sections
CAPTION, HEADING = 11.0, 14.0
TURN = 12.0  # distance between a line and the row that it goes around


class PlacedSection(NamedTuple):
    """A drawn section, its upper left corner at (0, 0)."""

    group: Group
    way_in: Point
    way_out: Point
    right: float  # right edge of its last row


def make_row(band: SectionBand, scale: float) -> tuple[Group, Point, Point]:
    """A row with its upper left corner at (0, 0), and the points where data enter and leave."""
    layout = lay_out(band.items, scale)
    left, top, _, _ = layout.group.box
    caption = Group(texts=(Text(0, CAPTION, band.name, CAPTION, "start", "caption"),)) if band.name else Group()
    y = -top + (CAPTION + 12 if band.name else 0)
    group = caption.combine(layout.group.move(-left, y))
    return group, shift_point(layout.way_in, -left, y), shift_point(layout.way_out, -left, y)


def make_section(
    section: DrawnSection, steps: Sequence[Step], scale: float, parts: int, layer: int | None
) -> PlacedSection:
    """A section: heading, rows, and a frame around layers."""
    rows = [
        SectionBand("" if i else band.name, items)
        for band in section.bands
        for i, items in enumerate(split_rows(band.items, steps, scale))
    ]
    has_frame = bool(section.layers)
    group, y = Group(), 0.0
    text = make_heading(section, steps, parts, layer)
    if has_frame:
        times = f"{section.times:,} ×" if layer is None else f"layer {layer:,}"
        times_text = Text(0, HEADING, times, 16, "start", "times")
        heading = Text(14 + text_width(times, 16, bold=True), HEADING, text, 12, "start", "heading")
        group = Group(texts=(times_text, heading))
        y = HEADING + 10 + PAD
    elif text:
        group = Group(texts=(Text(0, HEADING, text, 12, "start", "heading"),))
        y = HEADING + 10
    left, right = PAD if has_frame else 0.0, 0.0
    ways: list[tuple[Point, Point]] = []
    frame_top = HEADING + 10
    for row in rows:
        row_group, way_in, way_out = make_row(row, scale)
        row_group = row_group.move(left, y)
        way_in, way_out = shift_point(way_in, left, y), shift_point(way_out, left, y)
        if ways:
            arrow = make_return_arrow(
                group, ways[-1][1], way_in, right, y - ROW_GAP / 2, left - TURN, row.items[0].step
            )
            group = group.combine(Group(arrows=(arrow,)))
        group = group.combine(row_group)
        ways.append((way_in, way_out))
        right = row_group.box[2]
        y = row_group.box[3] + ROW_GAP
    if has_frame:
        box = group.box
        frame = Frame(0, frame_top, box[2] + PAD, box[3] + PAD - frame_top, "layer")
        group = Group(frames=(frame,)).combine(group)
    return PlacedSection(group, ways[0][0], ways[-1][1], right)


def make_return_arrow(
    above: Group, start: Point, end: Point, right: float, between: float, left: float, step: int
) -> Arrow:
    """A line from the end of a row to the start of the next row."""
    way_out = Lines([above]).find_way_out(start, (right + TURN, between))
    return Arrow((*way_out, (left, between), (left, end[1]), end), step, step)


def assemble_sections(
    sections: Sequence[DrawnSection], steps: Sequence[Step], scale: float, parts: int, layer: int | None
) -> Group:
    group, y = Group(), 0.0
    previous_place: tuple[PlacedSection, float] | None = None
    for section, previous in zip(sections, [None, *sections]):
        placed = make_section(section, steps, scale, parts, layer)
        left = 0.0 if section.layers else PAD
        section_group = placed.group.move(left, y)
        if previous_place and previous and is_linked(previous, section, steps):
            above, above_y = previous_place
            shift = 0.0 if above.group.frames and above.group.frames[0].role == "layer" else PAD
            start, end = shift_point(above.way_out, shift, above_y), shift_point(placed.way_in, left, y)
            step = section.bands[0].items[0].step
            shapes = above.group.move(shift, above_y)
            shapes = shapes._replace(frames=tuple(frame for frame in shapes.frames if frame.role != "layer"))
            arrow = make_return_arrow(shapes, start, end, above.right + shift, y - SECTION_GAP / 2, -TURN, step)
            group = group.combine(Group(arrows=(arrow,)))
        group = group.combine(section_group)
        previous_place = placed, y
        y = section_group.box[3] + SECTION_GAP
    width = max((frame.width for frame in group.frames if frame.role == "layer"), default=0.0)
    frames = [frame._replace(width=width) if frame.role == "layer" else frame for frame in group.frames]
    return group._replace(frames=tuple(frames))


def measure_width(sections: Sequence[DrawnSection], scale: float) -> float:
    return max(max(spread_items(band.items, scale).rights) for section in sections for band in section.bands)


def list_all_items(items: Sequence[Item]) -> list[Item]:
    return [each for item in items for each in (item, *list_all_items(item.body))]
