"""Properties that every drawing has."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import prod

from paramcount.drawing.pieces import BROKEN, LONGEST, THINNEST, UNKNOWN
from paramcount.drawing.shapes import Box, Drawing, Rectangle, snap
from paramcount.flow.operation import Form
from paramcount.tracing.run import has_encoder_input, trace_model
from paramcount.tracing.shapes import TraceOptions
from paramcount.tracing.trace import Trace
from paramcount.zoo import Model

SVG = "{http://www.w3.org/2000/svg}"


def trace_drawing(model: Model, drawing: Drawing) -> Trace:
    """The trace that a drawing shows."""
    source = drawing.tokens if has_encoder_input(model) else None
    return trace_model(model, TraceOptions(drawing.tokens, source=source))


def assert_to_scale(drawing: Drawing) -> None:
    """Every side has the length that the scale gives, or a mark that explains why not."""
    for r in drawing.rectangles:
        for axis, n, side in (("rows", r.rows, r.height), ("cols", r.cols, r.width)):
            marks = [mark for mark in ("broken", "thin", "unknown") if axis in getattr(r, mark)]
            if isinstance(n, str):
                assert (marks, side) == (["unknown"], UNKNOWN), r
            elif snap(n / drawing.scale) > LONGEST:
                assert (marks, side) == (["broken"], BROKEN), r
            elif snap(n / drawing.scale) < THINNEST:
                assert (marks, side) == (["thin"], THINNEST), r
            else:
                assert marks == [], r
                assert abs(side - n / drawing.scale) <= 1 / 128, r


def assert_shapes_are_printed(drawing: Drawing) -> None:
    """The text at each rectangle states its rows, columns and copies."""
    texts = {text.text for text in drawing.texts}
    for r in drawing.rectangles:
        assert parse_shape(r) in (get_drawn_shape(r), get_expected_shape(r)), r
        single_shape = r.shape.rpartition(" × ")[2]
        is_bias = r.role == "weight" and r.rows == 1
        if not is_bias and r.shape not in texts:
            assert {single_shape, f"{r.copies} ×"} <= texts, r


def parse_shape(r: Rectangle) -> tuple[int, ...]:
    """The numbers in the shape of a rectangle except ones, smallest first."""
    return tuple(sorted(n for n in map(int, re.findall(r"\d+", r.shape)) if n != 1))


def get_drawn_shape(r: Rectangle) -> tuple[int, ...]:
    sides = [n for n in (r.rows, r.cols, r.copies) if isinstance(n, int) and n != 1]
    return tuple(sorted(sides))


def get_expected_shape(r: Rectangle) -> tuple[int, ...]:
    """The shape in the text of a rectangle if it has as many elements as the rectangle; otherwise an empty one.

    The text gives concatenated heads as a product, whose value is one side.
    """
    shape = parse_shape(r)
    has_named_sizes = isinstance(r.rows, str) or isinstance(r.cols, str)
    return shape if has_named_sizes or prod(shape) == prod(get_drawn_shape(r)) else ()


def list_items(drawing: Drawing) -> list[tuple[Box, object]]:
    return [
        *((r.box, r) for r in drawing.rectangles),
        *((text.box, text) for text in drawing.texts),
        *((sign.box, sign) for sign in drawing.signs),
    ]


def find_overlaps(drawing: Drawing) -> Iterator[tuple[object, object]]:
    """Pairs of rectangles, texts and signs that overlap."""
    items = sorted(list_items(drawing), key=lambda pair: pair[0][0])
    for i, (a, item) in enumerate(items):
        for b, other in items[i + 1 :]:
            if b[0] >= a[2] - 0.01:
                break
            if a[1] < b[3] - 0.01 and b[1] < a[3] - 0.01:
                yield item, other


def assert_on_grid(drawing: Drawing) -> None:
    """Every coordinate is a small binary fraction.

    Sums of such floats are exact, so no coordinate depends on the order of summation.
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
    """The number of segments of arrows that cross a rectangle, a text or a sign."""
    boxes = [box for box, _ in list_items(drawing)]
    crossings = 0
    for arrow in drawing.arrows:
        for (a, b), (c, d) in pairwise(arrow.points):
            left, right, top, bottom = min(a, c) - 0.01, max(a, c) + 0.01, min(b, d) - 0.01, max(b, d) + 0.01
            crossings += sum(
                1 for x, y, x2, y2 in boxes if left < x2 - 1 and x + 1 < right and top < y2 - 1 and y + 1 < bottom
            )
    return crossings


def count_drawn_weights(drawing: Drawing) -> Counter[int]:
    """The number of elements of the weights of each step, as drawn."""
    elements: Counter[int] = Counter()
    for r in drawing.rectangles:
        if r.role == "weight":
            assert isinstance(r.rows, int)
            assert isinstance(r.cols, int)
            elements[r.step] += r.rows * r.cols * r.copies
    return elements


def count_traced_weights(trace: Trace) -> dict[int, int]:
    """The number of elements of the weights of each step; of a product, without stored copies in other data types."""
    return {
        i: sum(
            prod(map(int, weight.shape))
            for weight in step.weights
            if weight.role == "parameter" or step.form is not Form.LINEAR
        )
        for i, step in enumerate(trace.steps)
        if step.weights
    }


def assert_flows(drawing: Drawing, trace: Trace) -> None:
    """Every arrow leads to a later step, in horizontal and vertical segments that turn at each corner."""
    for arrow in drawing.arrows:
        assert arrow.start <= arrow.end < len(trace.steps), arrow
        assert len(arrow.points) > 1, arrow
        for (a, b), (c, d) in pairwise(arrow.points):
            assert 0 in (a - c, b - d), arrow
        for first, corner, last in zip(arrow.points, arrow.points[1:], arrow.points[2:]):
            assert (first[0] == corner[0]) != (corner[0] == last[0]), arrow


def parse_svg(svg: str) -> ET.Element:
    """An SVG as XML. It is well-formed, has unique ids, and contains no scripts and no links."""
    root = ET.fromstring(svg)  # noqa: S314 - our own
    assert root.tag == f"{SVG}svg"
    names = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    assert len(names) == len(set(names))
    allowed = {"svg", "title", "desc", "style", "defs", "marker", "g", "path", "rect", "circle", "text", "tspan", "use"}
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= allowed
    for element in root.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on"), name
            assert "href" not in name or (name == "href" and value.startswith("#")), name
            assert "url(" not in value or value.startswith("url(#"), value
    return root


def list_texts(root: ET.Element) -> list[str]:
    """The texts of an SVG in order."""
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]
