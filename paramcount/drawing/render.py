"""Renders a drawing as SVG, HTML or PNG. All text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from paramcount.drawing.shapes import CARD, Arrow, Drawing, Frame, Point, Rectangle, Text, snap
from paramcount.errors import make_extra_error, make_printable

FONTS = "'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
LIGHT: dict[str, str | tuple[str, ...]] = {
    "paper": "#ffffff", "ink": "#1f2328", "soft": "#59636e", "line": "#848d97", "frame": "#d0d7de", "inside": "#fafbfc",
    "data": "#9cc3ee", "data-edge": "#2b6cb0", "weight": "#cfd4da", "weight-edge": "#6b7480",
    "k": (
        "#b4500b", "#7b3fb8", "#0b7a55", "#b3256b", "#856600", "#0a7688",
        "#c02b2b", "#4f6d00", "#4a55c9", "#80502f", "#1f2328", "#9c4dcc",
    ),
}  # fmt: skip
DARK: dict[str, str | tuple[str, ...]] = {
    "paper": "#0f1318", "ink": "#e6edf3", "soft": "#9aa4af", "line": "#6e7781", "frame": "#30363d", "inside": "#141a21",
    "data": "#2a568c", "data-edge": "#78aef0", "weight": "#474f59", "weight-edge": "#98a2ad",
    "k": (
        "#f2a25c", "#c79bf2", "#5fd0a3", "#f28ab8", "#e0c04a", "#5cc9d9",
        "#ff8f85", "#b5d15c", "#a6b1ff", "#d6a583", "#e6edf3", "#e0b3ff",
    ),
}  # fmt: skip
AXIS_SIZE = re.compile(r"(?<=[\[ ])(?<!· )\d+(?=[,\]])")  # in a shape; no number of heads
ENDINGS = {".svg": "svg", ".html": "html", ".htm": "html", ".png": "png", ".pdf": "pdf"}
MAX_PIXELS = 8000  # on the longer side of a PNG, unless the drawing itself is larger
FONT_SIZES = {
    "shape": 10, "name": 11, "note": 10, "sign": 18, "caption": 11, "heading": 12, "times": 16, "title": 22,
    "line": 12, "legend": 11,
}  # fmt: skip


def list_colour_rules(colours: dict[str, str | tuple[str, ...]], root: str) -> str:
    rules = [
        f".paper{{fill:{colours['paper']}}}",
        f"text{{fill:{colours['ink']}}}",
        f".note,.line,.caption,.legend{{fill:{colours['soft']}}}",
        f".flow path{{stroke:{colours['line']}}}",
        f".head{{fill:{colours['line']}}}",
        f".joint{{fill:{colours['paper']};stroke:{colours['line']}}}",
        f".layer,.expert{{fill:{colours['inside']};stroke:{colours['frame']}}}",
        f".active{{fill:{colours['inside']};stroke:{colours['weight-edge']}}}",
        f".rule{{stroke:{colours['ink']}}}",
    ]
    for role in ("data", "weight"):
        rules.append(f".{role}{{fill:{colours[role]};stroke:{colours[f'{role}-edge']}}}")
        rules.append(f".{role}-off{{fill:{colours['paper']};stroke:{colours[f'{role}-edge']}}}")
        rules.append(f".{role}-line{{stroke:{colours[f'{role}-edge']}}}")
    rules += [f".k{i}{{fill:{c}}}.e{i}{{stroke:{c}}}" for i, c in enumerate(colours["k"])]
    return "".join(f"{root} {rule}".replace("}.", f"}}{root} .").replace(",.", f",{root} .") for rule in rules)


def make_style() -> str:
    root = ".paramcount-drawing"
    sizes = "".join(f"{root} .{role}{{font-size:{size}px}}" for role, size in FONT_SIZES.items())
    plain = (
        f"{root}:not(:root){{max-width:100%;height:auto}}"  # fits its container on a page, not as a file of its own
        f"{root} text{{font-family:{FONTS};text-anchor:middle}}{sizes}"
        f"{root} .title,{root} .heading,{root} .times{{font-weight:bold}}{root} .caption{{letter-spacing:.02em}}"
        f"{root} .start{{text-anchor:start}}{root} .end{{text-anchor:end}}"
        f"{root} path{{fill:none}}{root} .edge{{stroke-width:2}}{root} .unknown{{stroke-dasharray:3 2}}"
    )
    return (
        f"{plain}{list_colour_rules(LIGHT, root)}@media (prefers-color-scheme:dark){{{list_colour_rules(DARK, root)}}}"
    )


def fmt(value: float) -> str:
    """A coordinate with at most two decimals.

    >>> fmt(12.0), fmt(3.456), fmt(-0.001)
    ('12', '3.46', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def escape_text(text: str, longest: int = 200) -> str:
    return escape(make_printable(text, longest))


def render_svg(drawing: Drawing, id: str = "drawing") -> str:
    width, height = fmt(drawing.width), fmt(drawing.height)
    name = re.sub(r"[^A-Za-z0-9_-]", "-", id)
    title = f"{escape_text(drawing.title)}: forward pass of {drawing.tokens:,} tokens, drawn to scale"
    description = f"{len(drawing.rectangles)} matrices, drawn to scale. {'; '.join(drawing.words)}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="paramcount-drawing" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-labelledby="{name}-title {name}-desc">',
        f'<title id="{name}-title">{title}</title>',
        f'<desc id="{name}-desc">{escape_text(description, 20000)}</desc>',
        f"<style>{make_style()}</style>",
        draw_marker(name),
        f'<rect class="paper" width="{width}" height="{height}"/>',
        *draw_shapes(drawing, name),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def draw_marker(name: str) -> str:
    return (
        f'<defs><marker id="{name}-head" viewBox="0 0 6 6" refX="5.6" refY="3" markerWidth="6" markerHeight="6" '
        'orient="auto"><path class="head" d="M0 0L6 3L0 6Z"/></marker></defs>'
    )


def draw_shapes(drawing: Drawing, name: str) -> Iterator[str]:
    for frame in drawing.frames:
        yield from draw_frame(frame)
    yield '<g class="flow">'
    yield from (draw_arrow(arrow, name) for arrow in drawing.arrows)
    yield "</g>"
    for rectangle in drawing.rectangles:
        yield from ("<g>", *draw_rectangle(rectangle, drawing.colours), "</g>")
    for s in drawing.signs:
        yield f'<circle class="joint" cx="{fmt(s.x)}" cy="{fmt(s.y)}" r="{fmt(s.radius)}"/>'
    for s in drawing.signs:
        yield f'<text class="name" x="{fmt(s.x)}" y="{fmt(s.y + 4)}">{escape_text(s.text)}</text>'
    yield from (draw_text(text, drawing.colours) for text in drawing.texts)


def draw_frame(frame: Frame) -> Iterator[str]:
    """A frame with the frames behind it, active ones dark; or a symbol of the legend."""
    x, y, width, height = frame.x, frame.y, frame.width, frame.height
    sample = Rectangle(0, 1, "weight", "", 0, x=x, y=y, width=width, height=height)
    match frame.role:
        case "rule":
            left, right = fmt(x), fmt(x + width)
            top, middle, bottom = fmt(y), fmt(y + height / 2), fmt(y + height)
            outline = f"M{left} {top}V{bottom}M{left} {middle}H{right}M{right} {top}V{bottom}"
            yield f'<path class="rule" d="{outline}"/>'
        case "break":
            yield from draw_rectangle(sample._replace(broken=("cols",)), {})
        case "thin":
            yield from draw_rectangle(sample, {})
        case "unknown":
            yield from draw_rectangle(sample._replace(role="data", unknown=("rows",)), {})
        case "edges":
            yield from draw_rectangle(sample._replace(x=x - 8, y=y + 6, height=6, width=12, role="data"), {1: 0})
            yield from draw_rectangle(sample._replace(x=x + 10, width=6, rows=1, cols=0), {1: 0})
        case "stack":
            yield from draw_rectangle(sample._replace(x=x - 4, y=y + 4, width=10, height=8, cards=4, offset=2.5), {})
        case _:
            corners = ' rx="6"' if frame.role in ("layer", "expert") else ""
            size = f'width="{fmt(width)}" height="{fmt(height)}"{corners}'
            for i in range(frame.cards, -1, -1):
                role = "active" if frame.role == "expert" and i <= frame.active else frame.role
                yield f'<rect class="{role}" x="{fmt(x + CARD * i)}" y="{fmt(y - CARD * i)}" {size}/>'


def draw_arrow(arrow: Arrow, name: str) -> str:
    (x, y), *others = arrow.points
    d = f"M{fmt(x)} {fmt(y)}"
    for a, b in others:
        d += f"H{fmt(a)}" if b == y else f"V{fmt(b)}" if a == x else f"L{fmt(a)} {fmt(b)}"
        x, y = a, b
    return f'<path d="{d}" marker-end="url(#{name}-head)"/>' if arrow.head else f'<path d="{d}"/>'


def trace_outline(r: Rectangle) -> str:
    """The outline of a rectangle and its cards; one outline per card if they do not overlap."""
    x, y, w, h, o, behind = r.x, r.y, r.width, r.height, r.offset, r.cards - 1
    if behind and (w <= o or h <= o):
        card = f"h{fmt(w)}v{fmt(h)}h{fmt(-w)}z"
        return "".join(f"M{fmt(x + o * i)} {fmt(y - o * i)}{card}" for i in range(behind, -1, -1))
    up = f"h{fmt(o)}v{fmt(-o)}" * behind
    down = f"h{fmt(-o)}v{fmt(o)}" * behind
    return f"M{fmt(x)} {fmt(y)}{up}h{fmt(w)}v{fmt(h)}{down}h{fmt(-w)}z"


def trace_inner_lines(r: Rectangle) -> str:
    """The lines inside the outline: edges of cards, and borders between concatenated heads."""
    x, y, w, h, o = r.x, r.y, r.width, r.height, r.offset
    d = ""
    if r.cards > 1 and w > o and h > o:
        for i in range(r.cards - 1):
            d += f"M{fmt(x + o * (i + 1))} {fmt(y - o * i)}H{fmt(x + o * i + w)}V{fmt(y - o * i + h - o)}"
    if r.beside > 1 and w / r.beside >= 3 and not r.broken:
        d += "".join(f"M{fmt(x + snap(w * i / r.beside))} {fmt(y)}v{fmt(h)}" for i in range(1, r.beside))
    return d


def trace_mask(r: Rectangle) -> str:
    """The unmasked area: below the diagonal, within the window."""
    x, y, w, h = r.x, r.y, r.width, r.height
    share = 1.0  # of a row that the window covers
    if r.window is not None and isinstance(r.cols, int) and isinstance(r.rows, int):
        share = min(1.0, r.window / r.cols)
    dx, dy = snap(w * share), snap(h * share)
    points = [(x, y), (x + w, y + h), (x + w - dx, y + h), (x, y + dy)]
    if r.mask == "near":
        points = [(x, y), (x + dx, y), (x + w, y + h - dy), (x + w, y + h), *points[2:]]
    return f"{trace_polyline(points)}z"


def trace_break(r: Rectangle, axis: str) -> tuple[str, str]:
    """(white gap, two ragged edges) of a truncated rectangle."""
    is_vertical = axis == "cols"  # the break runs from top to bottom
    left, top, right, bottom = r.box
    start, end = (top - 3, bottom + 3) if is_vertical else (left - 3, right + 3)
    middle = (r.x + r.width / 2) if is_vertical else (r.y + r.height / 2)
    n = max(2, round((end - start) / 7))
    positions = [start + snap((end - start) * i / n) for i in range(n + 1)]
    edges = []
    for shift in (-3.0, 3.0):
        edge = [(middle + shift + (2.5 if i % 2 else -2.5), position) for i, position in enumerate(positions)]
        edges.append(edge if is_vertical else [(b, a) for a, b in edge])
    return f"{trace_polyline([*edges[0], *reversed(edges[1])])}z", "".join(map(trace_polyline, edges))


def trace_polyline(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{fmt(x)} {fmt(y)}" for x, y in points)


def draw_rectangle(r: Rectangle, colours: dict[int, int]) -> Iterator[str]:
    if r.shape:
        yield f"<title>{escape_text(' '.join(filter(None, (r.label, r.name, r.shape))))}</title>"
    dashed = " unknown" if r.unknown else ""
    yield f'<path class="{r.role}{"-off" if r.mask else ""}{dashed}" d="{trace_outline(r)}"/>'
    if r.mask:
        yield f'<path class="{r.role}" d="{trace_mask(r)}"/>'
    if lines := trace_inner_lines(r):
        yield f'<path class="{r.role}-line" stroke-width=".6" d="{lines}"/>'
    for axis in r.broken:
        white, edges = trace_break(r, axis)
        yield f'<path class="paper" d="{white}"/><path class="{r.role}-line" d="{edges}"/>'
    for size, d in (
        (r.rows, f"M{fmt(r.x - 1.5)} {fmt(r.y)}v{fmt(r.height)}"),
        (r.cols, f"M{fmt(r.x)} {fmt(r.y - 1.5)}h{fmt(r.width)}"),
    ):
        if isinstance(size, int) and size in colours:
            yield f'<path class="edge e{colours[size]}" d="{d}"/>'


def draw_text(text: Text, colours: dict[int, int]) -> str:
    size = "" if FONT_SIZES.get(text.role) == text.size else f' style="font-size:{fmt(text.size)}px"'
    side = "" if text.anchor == "middle" else f" {text.anchor}"
    content = escape_text(text.text)
    if text.role == "shape":
        content = AXIS_SIZE.sub(
            lambda n: f'<tspan class="k{colours[int(n[0])]}">{n[0]}</tspan>' if int(n[0]) in colours else n[0], content
        )
    content = content.replace("ᵀ", '<tspan dy="-4" style="font-size:75%">T</tspan>')  # few fonts have this letter
    return f'<text class="{text.role}{side}" x="{fmt(text.x)}" y="{fmt(text.y)}"{size}>{content}</text>'


def render_html(drawing: Drawing) -> str:
    """An HTML page that fits the drawing to the window, or scrolls it in its actual size."""
    page = (
        f"body{{margin:0;background:{LIGHT['paper']};color:{LIGHT['ink']};font:15px/1.5 {FONTS}}}"
        "details{padding:1em 28px}"
        f"@media (prefers-color-scheme:dark){{body{{background:{DARK['paper']};color:{DARK['ink']}}}}}"
        ".wide{overflow-x:auto}.wide svg{display:block;margin:auto}"
        ".zoom{margin:0;padding:1em 28px 0}.zoom:has(:checked)+.wide svg{max-width:none}"
        "@media print{.zoom{display:none}}"
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape_text(drawing.title)}, drawn to scale</title>",
            f"<style>{page}</style>",
            '<main>\n<p class="zoom"><input type="checkbox" id="zoom"> <label for="zoom">Actual size</label></p>',
            f'<div class="wide" tabindex="0" role="region" aria-label="Drawing">\n{render_svg(drawing)}</div>',
            "<details><summary>Text description</summary>",
            *(["<ol>", *(f"<li>{escape_text(line)}</li>" for line in drawing.words), "</ol>"] if drawing.words else []),
            "</details>",
            "</main>",
            "</html>\n",
        ]
    )


def convert_to_png(svg: str, *, zoom: int) -> bytes:
    """An SVG as a PNG file, in light colours. Raises: ParamcountError if the [plot] extra is missing."""
    try:
        import resvg_py
    except ImportError:
        raise make_extra_error("a PNG", "plot") from None
    fonts = find_fonts()
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=zoom, font_files=fonts, sans_serif_family="DejaVu Sans"))


def find_fonts() -> list[str]:
    """Fonts that come with matplotlib, for systems without fonts."""
    from importlib.util import find_spec

    spec = find_spec("matplotlib")
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf"
    paths = [folder / name for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")]
    return [str(path) for path in paths if path.is_file()]


def render_file(drawing: Drawing, format: str) -> str | bytes:
    """The content of a file in this format. Raises: ParamcountError for a PNG or a PDF if its extra is missing."""
    if format == "html":
        return render_html(drawing)
    if format == "pdf":
        from paramcount.drawing.pdf import convert_to_pdf

        return convert_to_pdf(render_svg(drawing))
    zoom = max(1, min(2, int(MAX_PIXELS // max(drawing.width, drawing.height))))
    return convert_to_png(render_svg(drawing), zoom=zoom) if format == "png" else render_svg(drawing)
