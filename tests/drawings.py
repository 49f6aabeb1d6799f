"""What must hold of every drawing."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import prod

from paramcount.drawing.pieces import BROKEN, LONGEST, THINNEST, UNKNOWN
from paramcount.drawing.shapes import Box, Drawing, Rectangle, snap
from paramcount.tracing.run import has_encoder_input, trace_model
from paramcount.tracing.trace import Trace
from paramcount.tracing.walk import TraceOptions
from paramcount.zoo import Model

SVG = "{http://www.w3.org/2000/svg}"


def trace_drawing(model: Model, drawing: Drawing) -> Trace:
    """The trace that a drawing shows."""
    source = drawing.tokens if has_encoder_input(model) else None
    return trace_model(model, TraceOptions(drawing.tokens, source=source))


def assert_to_scale(drawing: Drawing) -> None:
    """Every side is as long as the scale says, or the rectangle says of it what it is instead."""
    for r in drawing.rectangles:
        for axis, n, side in (("rows", r.rows, r.height), ("cols", r.cols, r.width)):
            said = [mark for mark in ("broken", "thin", "unknown") if axis in getattr(r, mark)]
            if isinstance(n, str):
                assert (said, side) == (["unknown"], UNKNOWN), r
            elif snap(n / drawing.scale) > LONGEST:
                assert (said, side) == (["broken"], BROKEN), r
            elif snap(n / drawing.scale) < THINNEST:
                assert (said, side) == (["thin"], THINNEST), r
            else:
                assert said == [], r
                assert abs(side - n / drawing.scale) <= 1 / 128, r


def assert_shapes_are_printed(drawing: Drawing) -> None:
    """A rectangle's rows, columns and copies are those that are printed at it."""
    texts = {text.text for text in drawing.texts}
    for r in drawing.rectangles:
        assert parse_shape(r) in (drawn_shape(r), printed_shape(r)), r
        one = r.shape.rpartition(" × ")[2]
        bias = r.role == "weight" and r.rows == 1
        if not bias and r.shape not in texts:
            assert {one, f"{r.copies} ×"} <= texts, r


def parse_shape(r: Rectangle) -> tuple[int, ...]:
    """Those of a printed shape but for ones, smallest first; words left out."""
    return tuple(sorted(n for n in map(int, re.findall(r"\d+", r.shape)) if n != 1))


def drawn_shape(r: Rectangle) -> tuple[int, ...]:
    sides = [n for n in (r.rows, r.cols, r.copies) if isinstance(n, int) and n != 1]
    return tuple(sorted(sides))


def printed_shape(r: Rectangle) -> tuple[int, ...]:
    """Where a side is a product of what is printed, such as heads side by side: the printed shape if it multiplies to
    the same.
    """
    found = parse_shape(r)
    words = [n for n in (r.rows, r.cols) if isinstance(n, str)]
    return found if words or prod(found) == prod(drawn_shape(r)) else ()


def list_items(drawing: Drawing) -> list[tuple[Box, object]]:
    return [
        *((r.box, r) for r in drawing.rectangles),
        *((text.box, text) for text in drawing.texts),
        *((sign.box, sign) for sign in drawing.signs),
    ]


def find_overlaps(drawing: Drawing) -> Iterator[tuple[object, object]]:
    """Rectangles, texts and signs that lie on one another."""
    found = sorted(list_items(drawing), key=lambda pair: pair[0][0])
    for i, (a, one) in enumerate(found):
        for b, other in found[i + 1 :]:
            if b[0] >= a[2] - 0.01:
                break
            if a[1] < b[3] - 0.01 and b[1] < a[3] - 0.01:
                yield one, other


def assert_on_grid(drawing: Drawing) -> None:
    """Every coordinate is a small binary fraction.

    Sums of such floats are exact, so that none depends on how it was added up.
    """
    points = [point for arrow in drawing.arrows for point in arrow.points]
    boxes = [box for box, _ in list_items(drawing)] + [frame.box for frame in drawing.frames]
    for n in [drawing.width, drawing.height, *(n for place in (*points, *boxes) for n in place)]:
        assert (1024 * n).is_integer(), n


def assert_all_inside(drawing: Drawing) -> None:
    for (left, top, right, bottom), thing in [*list_items(drawing), *((frame.box, frame) for frame in drawing.frames)]:
        assert left >= 0, thing
        assert top >= 0, thing
        assert right <= drawing.width, thing
        assert bottom <= drawing.height, thing
    for arrow in drawing.arrows:
        assert all(0 <= x <= drawing.width and 0 <= y <= drawing.height for x, y in arrow.points), arrow


def count_crossings(drawing: Drawing) -> int:
    """How many stretches of arrows run through a rectangle, a text or a sign."""
    boxes = [box for box, _ in list_items(drawing)]
    found = 0
    for arrow in drawing.arrows:
        for (a, b), (c, d) in pairwise(arrow.points):
            left, right, top, bottom = min(a, c) - 0.01, max(a, c) + 0.01, min(b, d) - 0.01, max(b, d) + 0.01
            found += sum(
                1 for x, y, x2, y2 in boxes if left < x2 - 1 and x + 1 < right and top < y2 - 1 and y + 1 < bottom
            )
    return found


def count_drawn_weights(drawing: Drawing) -> Counter[int]:
    """How many numbers the weights of each step hold, as they are drawn."""
    found: Counter[int] = Counter()
    for r in drawing.rectangles:
        if r.role == "weight":
            assert isinstance(r.rows, int)
            assert isinstance(r.cols, int)
            found[r.step] += r.rows * r.cols * r.copies
    return found


def count_traced_weights(trace: Trace) -> dict[int, int]:
    """How many numbers the weights of each step hold."""
    return {
        i: sum(prod(map(int, weight.shape)) for weight in step.weights)
        for i, step in enumerate(trace.steps)
        if step.weights
    }


def assert_flows(drawing: Drawing, trace: Trace) -> None:
    """Arrows lead from what was before to what is after it, and to the right until a row ends."""
    for arrow in drawing.arrows:
        assert arrow.start <= arrow.end < len(trace.steps), arrow
        assert len(arrow.points) > 1, arrow
        for (a, b), (c, d) in pairwise(arrow.points):
            assert 0 in (a - c, b - d), arrow
        for first, corner, last in zip(arrow.points, arrow.points[1:], arrow.points[2:]):
            assert (first[0] == corner[0]) != (corner[0] == last[0]), arrow


def parse_svg(svg: str) -> ET.Element:
    """An SVG as XML: well-formed, with a title, ids that occur once, nothing in it that could act or be fetched."""
    root = ET.fromstring(svg)  # noqa: S314 - our own
    assert root.tag == f"{SVG}svg"
    names = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    assert len(names) == len(set(names))
    allowed = {"svg", "title", "desc", "style", "defs", "marker", "g", "path", "rect", "circle", "text", "tspan"}
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= allowed
    for element in root.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on"), name
            assert "href" not in name, name
            assert "url(" not in value or value.startswith("url(#"), value
    return root


def list_texts(root: ET.Element) -> list[str]:
    """The texts of an SVG in order."""
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def path_extent(path: str) -> Box:
    """What a path of straight lines covers: M, L, H, V and their relative forms."""
    x = y = 0.0
    points = []
    for letter, rest in re.findall(r"([a-zA-Z])([^a-zA-Z]*)", path):
        numbers = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", rest)]
        match letter:
            case "M" | "L":
                (x, y) = numbers
            case "H":
                (x,) = numbers
            case "V":
                (y,) = numbers
            case "h":
                x += numbers[0]
            case "v":
                y += numbers[0]
        points.append((x, y))
    return min(x for x, _ in points), min(y for _, y in points), max(x for x, _ in points), max(y for _, y in points)
