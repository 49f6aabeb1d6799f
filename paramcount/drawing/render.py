"""A drawing as SVG, as a page of its own, and as PNG. Every name in it is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from paramcount.drawing.shapes import CARD, Arrow, Drawing, Frame, Rectangle, Text, snap
from paramcount.errors import ParamcountError, make_printable
from paramcount.output.tables import choose_by_extension

FONTS = "'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
LIGHT: dict[str, str | tuple[str, ...]] = {
    "paper": "#ffffff", "ink": "#1f2328", "soft": "#59636e", "line": "#848d97", "frame": "#d0d7de", "inside": "#fafbfc",
    "data": "#9cc3ee", "data-edge": "#2b6cb0", "weight": "#cfd4da", "weight-edge": "#6b7480",
    "k": ("#b4500b", "#7b3fb8", "#0b7a55", "#b3256b", "#856600", "#0a7688", "#c02b2b", "#4f6d00", "#4a55c9", "#80502f", "#1f2328", "#9c4dcc"),
}  # fmt: skip
DARK: dict[str, str | tuple[str, ...]] = {
    "paper": "#0f1318", "ink": "#e6edf3", "soft": "#9aa4af", "line": "#6e7781", "frame": "#30363d", "inside": "#141a21",
    "data": "#2a568c", "data-edge": "#78aef0", "weight": "#474f59", "weight-edge": "#98a2ad",
    "k": ("#f2a25c", "#c79bf2", "#5fd0a3", "#f28ab8", "#e0c04a", "#5cc9d9", "#ff8f85", "#b5d15c", "#a6b1ff", "#d6a583", "#e6edf3", "#e0b3ff"),
}  # fmt: skip
ENDINGS = {".svg": "svg", ".html": "html", ".htm": "html", ".png": "png"}
MOST_PIXELS = 8000  # on the longer side of a PNG, where it is not larger even as it is
SIZES = {"shape": 10, "name": 11, "note": 10, "sign": 18, "caption": 11, "heading": 12, "times": 16, "title": 22, "line": 12, "legend": 11}


def colours(of: dict[str, str | tuple[str, ...]], root: str) -> str:
    """The rules that say which colour what has."""
    rules = [
        f".paper{{fill:{of['paper']}}}",
        f"text{{fill:{of['ink']}}}",
        f".note,.line,.caption,.legend{{fill:{of['soft']}}}",
        f".flow path{{stroke:{of['line']}}}",
        f".head{{fill:{of['line']}}}",
        f".joint{{fill:{of['paper']};stroke:{of['line']}}}",
        f".layer,.expert{{fill:{of['inside']};stroke:{of['frame']}}}",
        f".visited{{fill:{of['inside']};stroke:{of['weight-edge']}}}",
        f".rule{{stroke:{of['ink']}}}",
    ]
    for role in ("data", "weight"):
        rules.append(f".{role}{{fill:{of[role]};stroke:{of[f'{role}-edge']}}}")
        rules.append(f".{role}-off{{fill:{of['paper']};stroke:{of[f'{role}-edge']}}}")
        rules.append(f".{role}-line{{stroke:{of[f'{role}-edge']}}}")
    rules += [f".k{i}{{fill:{c}}}.e{i}{{stroke:{c}}}" for i, c in enumerate(of["k"])]
    return "".join(f"{root} {rule}".replace("}.", f"}}{root} .").replace(",.", f",{root} .") for rule in rules)


def style() -> str:
    root = ".paramcount-drawing"
    sizes = "".join(f"{root} .{role}{{font-size:{size}px}}" for role, size in SIZES.items())
    plain = (
        f"{root} text{{font-family:{FONTS};text-anchor:middle}}{sizes}"
        f"{root} .title,{root} .heading,{root} .times{{font-weight:bold}}{root} .caption{{letter-spacing:.02em}}"
        f"{root} .start{{text-anchor:start}}{root} .end{{text-anchor:end}}"
        f"{root} path{{fill:none}}{root} .edge{{stroke-width:2}}{root} .unknown{{stroke-dasharray:3 2}}"
    )
    return f"{plain}{colours(LIGHT, root)}@media (prefers-color-scheme:dark){{{colours(DARK, root)}}}"


def number(value: float) -> str:
    """A coordinate, short.

    >>> number(12.0), number(3.456), number(-0.001)
    ('12', '3.46', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def safe(text: str, longest: int = 200) -> str:
    """A text that is nothing but text, in XML as in HTML."""
    return escape(make_printable(text, longest))


def svg(drawing: Drawing, id: str = "drawing") -> str:
    """The drawing as one SVG element."""
    width, height = number(drawing.width), number(drawing.height)
    name = re.sub(r"[^A-Za-z0-9_-]", "-", id)
    about = f"{len(drawing.rectangles)} matrices to scale. {'; '.join(drawing.words)}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="paramcount-drawing" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc">',
        f'<title id="{name}-title">{safe(drawing.title)}: the life of {drawing.tokens:,} tokens, every matrix to scale</title>',
        f'<desc id="{name}-desc">{safe(about, 20000)}</desc>',
        f"<style>{style()}</style>",
        f'<defs><marker id="{name}-head" viewBox="0 0 6 6" refX="5.6" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
        '<path class="head" d="M0 0L6 3L0 6Z"/></marker></defs>',
        f'<rect class="paper" width="{width}" height="{height}"/>',
    ]
    for frame in drawing.frames:
        lines += framed(frame)
    lines.append('<g class="flow">')
    lines += [way(arrow, name) for arrow in drawing.arrows]
    lines.append("</g>")
    for rectangle in drawing.rectangles:
        lines += ["<g>", *matrix(rectangle, drawing.colours), "</g>"]
    lines += [f'<circle class="joint" cx="{number(s.x)}" cy="{number(s.y)}" r="{number(s.radius)}"/>' for s in drawing.signs]
    lines += [f'<text class="name" x="{number(s.x)}" y="{number(s.y + 4)}">{safe(s.text)}</text>' for s in drawing.signs]
    lines += [written(text, drawing.colours) for text in drawing.texts]
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


def framed(frame: Frame) -> Iterator[str]:
    """A frame with those behind it, the visited ones dark; or what stands before the words of the legend."""
    x, y, width, height = frame.x, frame.y, frame.width, frame.height
    sample = Rectangle(x, y, width, height, 0, 1, "weight", "", "", 0)
    match frame.role:
        case "rule":
            middle, right, bottom = number(y + height / 2), number(x + width), number(y + height)
            yield f'<path class="rule" d="M{number(x)} {number(y)}V{bottom}M{number(x)} {middle}H{right}M{right} {number(y)}V{bottom}"/>'
        case "break":
            yield from matrix(sample._replace(broken=("cols",)), {})
        case "thin":
            yield from matrix(sample, {})
        case "unknown":
            yield from matrix(sample._replace(role="data", unknown=("rows",)), {})
        case "edges":
            yield from matrix(sample._replace(x=x - 8, y=y + 6, height=6, width=12, role="data"), {1: 0})
            yield from matrix(sample._replace(x=x + 10, width=6, rows=1, cols=0), {1: 0})
        case "stack":
            yield from matrix(sample._replace(x=x - 4, y=y + 4, width=10, height=8, cards=4, offset=2.5), {})
        case _:
            for i in range(frame.cards, -1, -1):
                role = "visited" if frame.role == "expert" and i <= frame.active else frame.role
                round = ' rx="6"' if frame.role in ("layer", "expert") else ""
                yield f'<rect class="{role}" x="{number(x + CARD * i)}" y="{number(y - CARD * i)}" width="{number(width)}" height="{number(height)}"{round}/>'


def way(arrow: Arrow, name: str) -> str:
    (x, y), *others = arrow.points
    d = f"M{number(x)} {number(y)}"
    for a, b in others:
        d += f"H{number(a)}" if b == y else f"V{number(b)}" if a == x else f"L{number(a)} {number(b)}"
        x, y = a, b
    return f'<path d="{d}" marker-end="url(#{name}-head)"/>' if arrow.head else f'<path d="{d}"/>'


def outline(r: Rectangle) -> str:
    """The path around a rectangle and those behind it; each by itself where they do not hide one another."""
    x, y, w, h, o, behind = r.x, r.y, r.width, r.height, r.offset, r.cards - 1
    if behind and (w <= o or h <= o):
        return "".join(f"M{number(x + o * i)} {number(y - o * i)}h{number(w)}v{number(h)}h{number(-w)}z" for i in range(behind, -1, -1))
    up = f"h{number(o)}v{number(-o)}" * behind
    down = f"h{number(-o)}v{number(o)}" * behind
    return f"M{number(x)} {number(y)}{up}h{number(w)}v{number(h)}{down}h{number(-w)}z"


def inner_lines(r: Rectangle) -> str:
    """The edges of those in front, within the outline; the limits of heads side by side."""
    x, y, w, h, o = r.x, r.y, r.width, r.height, r.offset
    d = ""
    if r.cards > 1 and w > o and h > o:
        for i in range(r.cards - 1):
            d += f"M{number(x + o * (i + 1))} {number(y - o * i)}H{number(x + o * i + w)}V{number(y - o * i + h - o)}"
    if r.beside > 1 and w / r.beside >= 3 and not r.broken:
        d += "".join(f"M{number(x + snap(w * i / r.beside))} {number(y)}v{number(h)}" for i in range(1, r.beside))
    return d


def seen(r: Rectangle) -> str:
    """What a mask leaves of a pattern: below the diagonal, as far back as the window goes."""
    x, y, w, h = r.x, r.y, r.width, r.height
    known = isinstance(r.cols, int) and isinstance(r.rows, int)
    back = min(1.0, r.window / r.cols) if r.window is not None and known and isinstance(r.cols, int) else 1.0
    dx, dy = snap(w * back), snap(h * back)
    points = [(x, y), (x + w, y + h), (x + w - dx, y + h), (x, y + dy)]
    if r.mask == "near":
        points = [(x, y), (x + dx, y), (x + w, y + h - dy), (x + w, y + h), *points[2:]]
    return "M" + "L".join(f"{number(a)} {number(b)}" for a, b in points) + "z"


def gap(r: Rectangle, axis: str) -> tuple[str, str]:
    """Where a rectangle is broken: the white between its parts, and the two ragged edges."""
    upright = axis == "cols"  # the break runs from top to bottom
    left, top, right, bottom = r.box
    start, end = (top - 3, bottom + 3) if upright else (left - 3, right + 3)
    middle = (r.x + r.width / 2) if upright else (r.y + r.height / 2)
    n = max(2, round((end - start) / 7))
    along = [start + snap((end - start) * i / n) for i in range(n + 1)]
    ragged = [[(middle + shift + (2.5 if i % 2 else -2.5), t) for i, t in enumerate(along)] for shift in (-3.0, 3.0)]
    edges = ragged if upright else [[(b, a) for a, b in edge] for edge in ragged]
    lines = ["M" + "L".join(f"{number(a)} {number(b)}" for a, b in edge) for edge in edges]
    around = [*edges[0], *reversed(edges[1])]
    return "M" + "L".join(f"{number(a)} {number(b)}" for a, b in around) + "z", "".join(lines)


def matrix(r: Rectangle, colours: dict[int, int]) -> Iterator[str]:
    """A rectangle with all that is drawn on it."""
    if r.shape:
        yield f"<title>{safe(' '.join(filter(None, (r.label, r.name, r.shape))))}</title>"
    dashed = " unknown" if r.unknown else ""
    yield f'<path class="{r.role}{"-off" if r.mask else ""}{dashed}" d="{outline(r)}"/>'
    if r.mask:
        yield f'<path class="{r.role}" d="{seen(r)}"/>'
    if lines := inner_lines(r):
        yield f'<path class="{r.role}-line" stroke-width=".6" d="{lines}"/>'
    for axis in r.broken:
        white, edges = gap(r, axis)
        yield f'<path class="paper" d="{white}"/><path class="{r.role}-line" d="{edges}"/>'
    for size, d in ((r.rows, f"M{number(r.x - 1.5)} {number(r.y)}v{number(r.height)}"), (r.cols, f"M{number(r.x)} {number(r.y - 1.5)}h{number(r.width)}")):
        if isinstance(size, int) and size in colours:
            yield f'<path class="edge e{colours[size]}" d="{d}"/>'


def written(text: Text, colours: dict[int, int]) -> str:
    size = "" if SIZES.get(text.role) == text.size else f' style="font-size:{number(text.size)}px"'
    side = "" if text.anchor == "middle" else f" {text.anchor}"
    content = safe(text.text)
    if text.role == "shape":
        content = re.sub(r"(?<=[\[ ])(?<!· )\d+(?=[,\]])", lambda m: coloured(m[0], colours), content)  # an axis, not a number of heads
    content = content.replace("ᵀ", '<tspan dy="-4" style="font-size:75%">T</tspan>')  # few fonts have that letter
    return f'<text class="{text.role}{side}" x="{number(text.x)}" y="{number(text.y)}"{size}>{content}</text>'


def coloured(n: str, colours: dict[int, int]) -> str:
    return f'<tspan class="k{colours[int(n)]}">{n}</tspan>' if int(n) in colours else n


def html(drawing: Drawing) -> str:
    """A page of its own around the drawing, which scrolls where it is too wide."""
    page = (
        f"body{{margin:0;background:{LIGHT['paper']};color:{LIGHT['ink']};font:15px/1.5 {FONTS}}}details{{padding:1em 28px}}"
        f"@media (prefers-color-scheme:dark){{body{{background:{DARK['paper']};color:{DARK['ink']}}}}}"
        ".wide{overflow-x:auto}.wide svg{display:block;margin:auto}"
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{safe(drawing.title)}: every matrix to scale</title>",
            f"<style>{page}</style>",
            f'<main>\n<div class="wide" tabindex="0" role="region" aria-label="Drawing">\n{svg(drawing)}</div>',
            "<details><summary>In words</summary>",
            *(["<ol>", *(f"<li>{safe(line)}</li>" for line in drawing.words), "</ol>"] if drawing.words else []),
            "</details>",
            "</main>",
            "</html>\n",
        ]
    )


def png(drawing: Drawing) -> bytes:
    """The drawing as the bytes of a PNG file, converted from its SVG; always light.

    Raises: ParamcountError where the [plot] extra is missing.
    """
    try:
        import resvg_py
    except ImportError:
        raise ParamcountError("a PNG needs the [plot] extra", expected="pip install 'paramcount[plot]', or an .svg") from None
    zoom = max(1, min(2, int(MOST_PIXELS // max(drawing.width, drawing.height))))
    return bytes(resvg_py.svg_to_bytes(svg_string=svg(drawing), zoom=zoom, font_files=fonts(), sans_serif_family="DejaVu Sans"))


def fonts() -> list[str]:
    """A font that is there wherever the [plot] extra is: matplotlib's own. With it text is drawn also where the system has no fonts."""
    from importlib.util import find_spec

    found = find_spec("matplotlib")
    folder = Path(found.origin).parent / "mpl-data" / "fonts" / "ttf" if found and found.origin else None
    return [str(path) for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf") if folder and (path := folder / name).is_file()]


def format_of(path: str) -> str:
    """The format that a file's ending chooses.

    >>> format_of("gpt2.SVG"), format_of("block.htm")
    ('svg', 'html')

    Raises: ParamcountError for any other ending.
    """
    return choose_by_extension(path, ENDINGS, "drawing")


def file_of(drawing: Drawing, format: str) -> str | bytes:
    """What a file of that format holds."""
    return png(drawing) if format == "png" else html(drawing) if format == "html" else svg(drawing)
