"""Draws a model: its sections to one scale, with headings, arrows, title and legend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from paramcount.drawing.assemble import assemble_sections, list_all_items, measure_width
from paramcount.drawing.items import Item
from paramcount.drawing.pieces import CARDS, LONGEST, THINNEST
from paramcount.drawing.sections import (
    DrawnSection,
    count_parts,
    describe_origins,
    end_with_data,
    find_states,
    is_linked,
    list_bands,
    list_sections,
    select_layer,
)
from paramcount.drawing.shapes import Box, Drawing, Frame, Group, Text, snap
from paramcount.errors import ParamcountError, describe_value, make_printable
from paramcount.tracing.run import choose_length, has_encoder_input, trace_model
from paramcount.tracing.shapes import TraceOptions
from paramcount.tracing.trace import Trace
from paramcount.zoo import Model, count_model
from paramcount.zoo.what_if import describe_changes

DEFAULT_TOKENS = 1024  # so that data and weights are of similar size
WIDEST = 1300.0  # a wider drawing may get a coarser scale
SCALES = (
    1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128,
    160, 192, 256, 320, 384, 512, 768, 1024,
)  # fmt: skip
# Try up to 3 coarser scales, as long as each makes the drawing at least 8 % narrower
MAX_COARSER, MIN_GAIN = 3, 0.92
MARGIN, TITLE_GAP = 28.0, 30.0  # around the drawing; between the title and the drawing
MAX_SECTIONS = 100  # in one drawing
MAX_COLOURS = 12  # of edges; no model has more inner dimensions
SWATCHES = 130.0  # width of the legend's symbols


def draw_model(model: Model, *, tokens: int | None = None, layer: int | None = None) -> Drawing:
    if layer is not None and (type(layer) is not int or layer < 0):
        raise ParamcountError(f"= {describe_value(layer)}", where="layer", expected="a non-negative integer")
    trace = trace_drawn(model, tokens)
    body = draw_body(trace, model.id, layer)
    sizes = dict.fromkeys(item.right.rows for item in body.items if item.kind == "product" and item.right)
    inner_sizes = [n for n in sizes if isinstance(n, int) and n > 1]
    colours = {n: i for i, n in enumerate(inner_sizes[:MAX_COLOURS])}
    header, legend = make_header(model, trace), make_legend(body.group, body.scale, bool(colours))
    whole = place_below(header, legend, body.group)
    left, top, right, bottom = whole.box
    whole = whole.move(MARGIN - left, MARGIN - top)
    return Drawing(
        id=model.id,
        title=make_printable(model.name, 80),
        width=right - left + 2 * MARGIN,
        height=bottom - top + 2 * MARGIN,
        scale=body.scale,
        tokens=trace.tokens,
        layer=layer,
        colours=colours,
        words=tuple(describe_products(body.items)),
        **whole._asdict(),
    )


class DrawnTrace(NamedTuple):
    """The sections of a drawing, without title and legend."""

    group: Group
    scale: float  # elements per pixel
    items: list[Item]


def draw_body(trace: Trace, where: str, layer: int | None = None) -> DrawnTrace:
    """The sections of a forward pass, or those of one layer.

    Raises: ParamcountError for a layer that does not exist, and if there are too many sections.
    """
    sections = list_sections(trace)
    if layer is None and len(sections) > MAX_SECTIONS:
        problem = f"{len(sections):,} kinds of layers do not fit in one drawing"
        raise ParamcountError(problem, where=where, expected=f"at most {MAX_SECTIONS}; select one layer")
    selected = sections if layer is None else select_layer(sections, layer, where)
    drawn = add_bands(trace, sections, selected, layer)
    scale = choose_scale(drawn)
    items = [item for section in drawn for band in section.bands for item in list_all_items(band.items)]
    return DrawnTrace(assemble_sections(drawn, trace.steps, scale, count_parts(sections), layer), scale, items)


def trace_drawn(model: Model, tokens: int | None) -> Trace:
    """The forward pass that a drawing shows."""
    n = choose_length(model, DEFAULT_TOKENS) if tokens is None else tokens
    return trace_model(model, TraceOptions(n, source=n if has_encoder_input(model) else None))


def add_bands(
    trace: Trace, sections: Sequence[DrawnSection], selected: Sequence[DrawnSection], layer: int | None
) -> list[DrawnSection]:
    """The selected, nonempty sections with their bands. A section without an outgoing arrow ends with data."""
    drawn: list[DrawnSection] = []
    states = find_states(trace)
    for section, previous in zip(selected, [None, *selected]):
        origins = describe_origins(sections, trace.steps, section, previous)
        if layer and layer > min(first for other in sections if other.part == section.part for first, _ in other.runs):
            origins |= dict.fromkeys(trace.steps[section.indices[0]].reads[:1], f"from layer {layer - 1:,}")
        times = section.times if layer is None else 1
        if bands := list_bands(trace, section, states, origins, layers=times):
            drawn.append(section._replace(bands=tuple(bands)))
    return [
        section if after and is_linked(section, after, trace.steps) else end_with_data(section, trace.steps)
        for section, after in zip(drawn, [*drawn[1:], None])
    ]


def choose_scale(sections: Sequence[DrawnSection]) -> float:
    """The finest scale that truncates no matrix of a layer, or a coarser one if that is much narrower."""
    side = find_longest_side(sections)
    scale, *coarser = [scale for scale in SCALES if side / scale <= LONGEST] or SCALES[-1:]
    width = measure_width(sections, scale)
    for coarser_scale in coarser[:MAX_COARSER]:
        if width <= WIDEST or (coarser_width := measure_width(sections, coarser_scale)) > MIN_GAIN * width:
            break
        scale, width = coarser_scale, coarser_width
    return scale


def find_longest_side(sections: Sequence[DrawnSection]) -> int:
    """The longest side of a weight in a layer, or of any weight if there are no layers."""
    for in_layers in (True, False):
        bands = [band for section in sections if bool(section.layers) == in_layers for band in section.bands]
        items = [item for band in bands for item in list_all_items(band.items) if item.kind != "lookup"]
        matrices = [matrix for item in items for matrix in (item.right, *item.weights) if matrix is not None]
        weights = [matrix for matrix in matrices if matrix.role == "weight"]
        sides = [n for weight in weights for n in (weight.rows, weight.cols) if isinstance(n, int)]
        if sides:
            return max(sides)
    return 1


def describe_products(items: Sequence[Item]) -> Iterator[str]:
    for item in items:
        if item.kind in ("product", "lookup") and item.right and item.out:
            name = f"{item.right.label}: " if item.right.label else ""
            operation = f"{item.left} ·" if item.kind == "product" else "row lookup in"
            yield f"{name}{operation} {item.right.shape} = {item.out.shape}"


# ---- title and legend


def make_header(model: Model, trace: Trace) -> Group:
    count = count_model(model)
    unit = "parameters of the language model" if count.scope == "language_model" else "parameters"
    lines = [
        f"{trace.tokens:,} token{'s' if trace.tokens > 1 else ''} · {count.total:,} {unit}",
        *describe_changes(model),
        *trace.warnings,
    ]
    texts = [Text(0, 20, make_printable(model.name, 80), 22, "start", "title")]
    for i, line in enumerate(lines):
        texts.append(Text(0, 42 + 16 * i, make_printable(line, 160), 12, "start", "line"))
    return Group(texts=tuple(texts))


def make_legend(body: Group, scale: float, has_colours: bool) -> Group:
    """The legend: colours, marks and the scale."""
    n = next((n for k in range(12) for n in (10**k, 2 * 10**k, 5 * 10**k) if n / scale >= 60), 1)
    per = f"1 px = {scale:g} element{'s' if scale > 1 else ''}" if scale >= 1 else f"{1 / scale:g} px = 1 element"
    marks = body.rectangles
    entries = [
        ("data", 16.0, "activations", True),
        ("weight", 16.0, "weights", True),
        ("rule", snap(n / scale), f"{n:,} elements ({per})", True),
        ("edges", 16.0, "same colour = same dimension", has_colours),
        ("break", 20.0, "shortened side", any(r.broken for r in marks)),
        ("thin", THINNEST, f"under {THINNEST:g} px, drawn as {THINNEST:g} px", any(r.thin for r in marks)),
        ("unknown", 16.0, "size depends on the input", any(r.unknown for r in marks)),
        ("stack", 16.0, f"first {CARDS} shown", any(r.copies > CARDS for r in marks)),
    ]
    frames, texts = [], []
    for i, (role, width, text, _) in enumerate(entry for entry in entries if entry[-1]):
        y = 18.0 * i
        offset, height = (7, 6) if role == "rule" else (10, 12)
        frames.append(Frame(SWATCHES - width, y - offset, width, height, role))
        texts.append(Text(SWATCHES + 8, y, text, 11, "start", "legend"))
    return Group(texts=tuple(texts), frames=tuple(frames))


def place_below(header: Group, legend: Group, body: Group) -> Group:
    """The drawing below its title, with the legend at the right, next to the first section if there is room."""
    _, top, right, _ = body.box
    legend = legend.move(max(right - legend.box[2], header.box[2] + 2 * TITLE_GAP), 4)
    y = header.box[3] + TITLE_GAP - top
    moved = body.move(0, y)
    boxes = moved.boxes
    for arrow in moved.arrows:
        boxes += [(min(a, c), min(b, d), max(a, c), max(b, d)) for (a, b), (c, d) in pairwise(arrow.points)]
    if any(is_near(legend.box, box) for box in boxes):
        y = max(y, legend.box[3] + TITLE_GAP - top)
    return header.combine(legend, body.move(0, y))


def is_near(a: Box, b: Box) -> bool:
    return a[0] < b[2] + 20 and b[0] < a[2] + 20 and a[1] < b[3] + 20 and b[1] < a[3] + 20
