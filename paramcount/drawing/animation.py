"""A film of one layer: a token moves through its steps in ten seconds, each marked in the drawing of the layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paramcount.drawing.colours import INK, PAPER
from paramcount.drawing.films import find_encoder
from paramcount.drawing.pictures import MARGIN, draw_model, trace_drawn
from paramcount.drawing.pieces import wrap_text
from paramcount.drawing.render import (
    LIGHT,
    convert_to_png,
    draw_arrow,
    draw_marker,
    draw_shapes,
    escape_text,
    fmt,
    make_style,
)
from paramcount.drawing.sections import choose_layer, list_sections, select_layer
from paramcount.drawing.shapes import Drawing, Place, Rectangle, text_width
from paramcount.errors import ParamcountError, format_shape
from paramcount.tracing.sentences import explain_step
from paramcount.tracing.trace import Step
from paramcount.zoo import Model

WIDEST, TALLEST = 1920, 1080  # of a frame, in pixels
CAPTION = 156.0  # height of the text below the drawing
MAX_STEPS, MAX_HEIGHT = 100, 5000.0  # of a layer; its drawing at full size
TOKEN = 0.7  # position of the token in the text, as a share of its length
EDGE, ACCENT = 6.0, "#e3000f"  # of the mark around a step
SOFT, FRAME, INSIDE = (str(LIGHT[name]) for name in ("soft", "frame", "inside"))
ABOVE = 0.2  # share of the picture above a step that comes into view
TITLE, SENTENCE, SMALL, LINE = 26.0, 18.0, 16.0, 25.0  # font sizes; height of a line
MAX_LINES = 2  # of the sentence


class Film(NamedTuple):
    """The drawing of a layer, or of a model without any, with the order in which its steps are marked."""

    drawing: Drawing
    all_steps: tuple[Step, ...]
    indices: tuple[int, ...]  # of the steps that are shown, in the order of the flow

    @property
    def zoom(self) -> float:
        return min(1.0, WIDEST / self.drawing.width)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of a frame, even as video formats need them."""
        width, height = self.zoom * self.drawing.width, self.zoom * self.drawing.height + CAPTION
        return 2 * int(width / 2), 2 * int(min(height, TALLEST) / 2)


def make_film(model: Model, *, tokens: int | None = None, layer: int | None = None) -> Film:
    """The film of one layer, by default the first one of the most common kind; of a model whose layers have no indices,
    such as the one layer of a draft head, the film of all steps.

    Raises: ParamcountError for a layer that does not exist, or that is too large.
    """
    trace = trace_drawn(model, tokens)
    sections = list_sections(trace)
    if layer is None and any(section.layers for section in sections):
        layer = choose_layer(sections, model.id)
    chosen = sections if layer is None else select_layer(sections, layer, model.id)
    indices = tuple(i for section in chosen for i in section.indices)
    if len(indices) > MAX_STEPS:
        problem = f"{len(indices):,} steps{'' if layer is None else ' in one layer'} are too many for an animation"
        raise ParamcountError(problem, where=model.id, expected=f"at most {MAX_STEPS}")
    drawing = draw_model(model, tokens=tokens, layer=layer)
    if drawing.height > MAX_HEIGHT:
        part = "the model" if layer is None else f"layer {layer:,}"
        problem = f"the drawing of {part} is {drawing.height:,.0f} pixels high, too large for an animation"
        raise ParamcountError(problem, where=model.id, expected=f"at most {MAX_HEIGHT:,.0f}")
    return Film(drawing, trace.steps, indices)


def render_frames(film: Film) -> Iterator[str]:
    top = 0.0
    for number, i in enumerate(film.indices):
        marked = [place for place in film.drawing.places if i in place.steps]
        top = follow(top, marked, film)
        yield render_frame(film, number, marked, top)


def follow(top: float, marked: Sequence[Place], film: Film) -> float:
    """The upper edge of the visible part of the drawing, which moves if a marked place would be outside."""
    visible = (film.size[1] - CAPTION) / film.zoom
    first = min(place.y for place in marked) - 4 * EDGE
    last = max(place.y + place.height for place in marked) + 4 * EDGE
    if first < top or last > top + visible:
        top = min(first - ABOVE * visible, max(first - 4 * EDGE, last - visible))
        top = max(top, last - visible) if last - first < visible else first
    return max(0.0, min(top, film.drawing.height - visible))


def render_frame(film: Film, number: int, marked: Sequence[Place], top: float) -> str:
    """The drawing with one step marked and the steps to come dimmed, above the caption of the step."""
    drawing, (width, height) = film.drawing, film.size
    i, visible = film.indices[number], height - CAPTION
    to_come = set(film.indices[number + 1 :])
    done = [arrow for arrow in drawing.arrows if arrow.end not in to_come]
    later = [arrow for arrow in drawing.arrows if arrow.end in to_come]
    clear = [place for place in drawing.places if not to_come.issuperset(place.steps)]
    dimmed = [place for place in drawing.places if to_come.issuperset(place.steps)]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="paramcount-drawing" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">',
        f"<style>{make_style()}</style>",
        draw_marker("frame"),
        f'<rect fill="{PAPER}" width="{width}" height="{height}"/>',
        f'<svg width="{width}" height="{fmt(visible)}" '
        f'viewBox="0 {fmt(top)} {fmt(width / film.zoom)} {fmt(visible / film.zoom)}">',
        *draw_shapes(drawing._replace(arrows=tuple(done)), "frame"),
        '<g class="flow" opacity=".25">',
        *(draw_arrow(arrow, "frame") for arrow in later),
        "</g>",
        *(draw_box(place, 3, f'fill="{INSIDE}" fill-opacity=".75"') for place in dimmed),
        f'<g style="stroke:{ACCENT};stroke-width:2">',
        *(
            draw_token(r, drawing.tokens)
            for r in drawing.rectangles
            for x, y in [(r.x + r.width / 2, r.y + r.height / 2)]
            if any(p.x <= x <= p.x + p.width and p.y <= y <= p.y + p.height for p in clear)
        ),
        *(
            f'<polyline fill="none" points="{" ".join(f"{fmt(x)},{fmt(y)}" for x, y in arrow.points)}"/>'
            for arrow in done
            if arrow.end == i != arrow.start
        ),
        *(draw_box(place, EDGE, 'fill="none" rx="6"') for place in marked),
        "</g>",
        "</svg>",
        *draw_caption(film, number),
        "</svg>",
    ]
    return "\n".join(filter(None, lines)) + "\n"


def draw_box(place: Place, margin: float, attributes: str) -> str:
    x, y = fmt(place.x - margin), fmt(place.y - margin)
    size = f'width="{fmt(place.width + 2 * margin)}" height="{fmt(place.height + 2 * margin)}"'
    return f'<rect x="{x}" y="{y}" {size} {attributes}/>'


def draw_token(r: Rectangle, tokens: int) -> str:
    """The row of the token in a matrix of data; in a mask, as far as it is visible. "" if there is no such row."""
    if r.role != "data" or r.rows != tokens or "ᵀ" in r.label:
        return ""
    first, last = 0.0, 1.0
    if r.mask:
        share = 1.0 if r.window is None else min(1.0, r.window / tokens)
        first, last = max(0.0, TOKEN - share), TOKEN if r.mask == "causal" else min(1.0, TOKEN + share)
    y = fmt(r.y + TOKEN * r.height)
    return f'<path d="M{fmt(r.x + first * r.width)} {y}H{fmt(r.x + last * r.width)}"/>'


# ---- caption


def draw_caption(film: Film, number: int) -> Iterator[str]:
    """The name of a step, its shapes, its sentence and its weights, below a line that shows the progress."""
    width, height = film.size
    layer = film.drawing.layer
    step = film.all_steps[film.indices[number]]
    top, n = height - CAPTION, len(film.indices)
    yield f'<rect fill="{FRAME}" y="{fmt(top)}" width="{width}" height="4"/>'
    yield f'<rect fill="{ACCENT}" y="{fmt(top)}" width="{fmt(width * (number + 1) / n)}" height="4"/>'
    place = "" if layer is None else f"layer {layer:,} · "
    where = f"{film.drawing.title} · {place}step {number + 1} of {n}"
    room = width - 2 * MARGIN
    y = top + 38
    yield draw_line(width - MARGIN, y, where, SMALL, SOFT, anchor="end")
    yield draw_line(width - MARGIN, y + LINE, "red line: one token", SMALL, SOFT, anchor="end")
    yield draw_line(MARGIN, y, step.text, TITLE, INK, bold=True)
    lines = wrap_text(explain_step(film.all_steps, film.indices[number]), room, SENTENCE)
    shapes = " → ".join(filter(None, (", ".join(map(format_shape, step.inputs)), format_shape(step.out))))
    texts = [shapes, *lines[:MAX_LINES], *list_weights(step, layer)]
    for text, color in zip(texts, [INK, *[INK] * len(lines[:MAX_LINES]), SOFT]):
        y += LINE
        yield draw_line(MARGIN, y, shorten(text, room), SENTENCE, color)


def list_weights(step: Step, layer: int | None) -> list[str]:
    names = (f"{weight.name.replace('{layer}', str(layer))} {format_shape(weight.shape)}" for weight in step.weights)
    return [" · ".join(names)] if step.weights else []


def shorten(text: str, room: float) -> str:
    """The text, or its beginning if it is too wide for the room."""
    if text_width(text, SENTENCE) <= room:
        return text
    n = next(n for n in range(len(text), 0, -1) if text_width(f"{text[:n]}…", SENTENCE) <= room)
    return f"{text[:n]}…"


def draw_line(
    x: float, y: float, text: str, size: float, color: str, *, anchor: str = "start", bold: bool = False
) -> str:
    weight = ";font-weight:bold" if bold else ""
    style = f"font-size:{fmt(size)}px;fill:{color};text-anchor:{anchor}{weight}"
    return f'<text x="{fmt(x)}" y="{fmt(y)}" style="{style}">{escape_text(text, 1000)}</text>'


def render_animation(film: Film, format: str) -> bytes:
    """The content of a file in this format. Raises: ParamcountError if the [animate] extra is missing."""
    encode = find_encoder(format)
    return encode((convert_to_png(svg, zoom=1) for svg in render_frames(film)), len(film.indices))
