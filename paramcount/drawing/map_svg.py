"""Renders a parameter map as SVG or PNG. All text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from paramcount.counting.tree import TensorGroup
from paramcount.drawing.colours import COLOURS, ON_DARK, choose_text_colour
from paramcount.drawing.parameter_map import (
    GAP,
    MARGIN,
    Copies,
    ParameterMap,
    Tile,
    describe_copies,
    format_share,
)
from paramcount.drawing.render import DARK, FONTS, LIGHT, convert_to_png, escape_text, fmt
from paramcount.drawing.shapes import text_width
from paramcount.drawing.treemap import Area, CellRow, divide_area
from paramcount.errors import format_shape
from paramcount.output.numbers import format_count
from paramcount.output.weight_names import name_block, name_group

ENDINGS = {".svg": "svg", ".png": "png", ".pdf": "pdf"}
SMALLEST_CELL = 1.5  # pixels; smaller cells are not drawn, but counted in the text
BORDERS = {"tensor": 1.5, "component": 2.5, "layers": 3.5, "part": 5.0}  # widths of the lines around a group
ROOT = ".paramcount-map"
# Attributes, because the rules of a style sheet with ancestors in them do not reach into what <use> repeats
GRID = 'fill="none" stroke="#fff" stroke-opacity=".5"'
ACTIVE = 'fill="#000" fill-opacity=".5"'


def render_map(map: ParameterMap, id: str = "map") -> str:
    name = re.sub(r"[^A-Za-z0-9_-]", "-", id)
    width, height = fmt(map.width), fmt(map.height)
    cells = CellWriter(name)
    tiles = [element for tile in map.tiles for element in draw_tile(tile, map, cells)]
    shares = (f"{component} {n:,}" for component, n in map.components.items())
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="paramcount-map" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc">',
        f'<title id="{name}-title">{escape_text(map.title)}: parameter map</title>',
        f'<desc id="{name}-desc">{escape_text("; ".join([*map.subtitle, *shares]), 2000)}</desc>',
        f"<style>{make_style(map)}</style>",
        "<defs>",
        *cells.definitions,
        "</defs>",
        f'<rect class="paper" width="{width}" height="{height}"/>',
        *tiles,
        *draw_borders(map),
        *(element for tile in map.tiles for element in draw_lines(tile)),
        *draw_header(map),
        *draw_legend(map),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def make_style(map: ParameterMap) -> str:
    """The CSS rules; those of components that the model has."""
    rules = [
        f"{ROOT}:not(:root){{max-width:100%;height:auto}}",  # fits its container on a page, not as a file of its own
        f"{ROOT} text{{font-family:{FONTS}}}",
        f"{ROOT} .bold{{font-weight:bold}}",
        f"{ROOT} .border{{fill:none}}",
        f"{ROOT} .scale{{fill:none;stroke:#848d97}}",
    ]
    for component in map.components:
        rules += list_component_rules(component, COLOURS[component])
    light, dark = ("".join(list_colour_rules(colours)) for colours in (LIGHT, DARK))
    for component in filter(ON_DARK.__contains__, map.components):
        dark += "".join(list_component_rules(component, ON_DARK[component]))
    return f"{''.join(rules)}{light}@media (prefers-color-scheme:dark){{{dark}}}"


def list_component_rules(component: str, colour: str) -> list[str]:
    return [f"{ROOT} .{component}{{fill:{colour}}}", f"{ROOT} .on-{component}{{fill:{choose_text_colour(colour)}}}"]


def list_colour_rules(colours: dict[str, str | tuple[str, ...]]) -> Iterator[str]:
    yield f"{ROOT} .paper{{fill:{colours['paper']}}}{ROOT} .border{{stroke:{colours['paper']}}}"
    yield f"{ROOT} .ink{{fill:{colours['ink']}}}{ROOT} .soft{{fill:{colours['soft']}}}"


class CellWriter:
    """Writes grids of cells. The inner grid of a cell is defined once and used in every cell of its size."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.definitions: list[str] = []

    def draw(self, area: Area, copies: Sequence[Copies]) -> Iterator[str]:
        """The grid of a tensor's copies, and inside each cell that of the next axis."""
        (axis, *inner) = copies
        rows = list(divide_area(area, axis.number))
        if min(min(row.width, row.height) for row in rows) < SMALLEST_CELL:
            return
        for row in rows:
            if inner:
                yield from self.use_cells(row, inner)
        if axis.active < axis.number:
            yield f'<path class="active" {ACTIVE} d="{trace_first_cells(rows, axis.active)}"/>'
        side = min(rows[0].width, rows[0].height)
        stroke = min(2.0, 0.06 * side) if inner else min(1.0, 0.12 * side)
        yield f'<path class="grid" {GRID} stroke-width="{fmt(stroke)}" d="{trace_grid(rows)}"/>'

    def use_cells(self, row: CellRow, inner: Sequence[Copies]) -> Iterator[str]:
        """The inner grid of every cell in some equal rows."""
        content = "".join(self.draw(Area(0, 0, row.width, row.height), inner))
        if not content:
            return
        id = f"{self.name}-cells-{len(self.definitions)}"
        self.definitions.append(f'<g id="{id}">{content}</g>')
        for i in range(row.rows):
            y = row.area.y + i * row.height
            cells = (row.area.x + j * row.width for j in range(row.columns))
            yield "".join(f'<use href="#{id}" x="{fmt(x)}" y="{fmt(y)}"/>' for x in cells)


def trace_grid(rows: Sequence[CellRow]) -> str:
    d = ""
    for i, row in enumerate(rows):
        x, y, width, height = row.area
        d += "".join(f"M{fmt(x)} {fmt(y + j * row.height)}h{fmt(width)}" for j in range(0 if i else 1, row.rows))
        d += "".join(f"M{fmt(x + j * row.width)} {fmt(y)}v{fmt(height)}" for j in range(1, row.columns))
    return d


def trace_first_cells(rows: Sequence[CellRow], n: int) -> str:
    """The outline of the first cells of a grid, row by row."""
    d = ""
    for row in rows:
        full, rest = divmod(min(n, row.rows * row.columns), row.columns)
        for k, columns, lines in ((0, row.columns, full), (full, rest, 1)):
            width, height = columns * row.width, lines * row.height
            if width and height:
                y = row.area.y + k * row.height
                d += f"M{fmt(row.area.x)} {fmt(y)}h{fmt(width)}v{fmt(height)}h{fmt(-width)}z"
        n -= full * row.columns + rest
    return d


def draw_tile(tile: Tile, map: ParameterMap, cells: CellWriter) -> Iterator[str]:
    tensor, area = tile.tensor, tile.area
    copies = [axis for axis in tile.copies if axis.number > 1]
    share = format_share(tensor.parameters, map.total)
    label = f"{describe_place(tensor)} ({tensor.label})"
    parts = (label, format_shape(tensor.shape), f"× {describe_copies(copies)}" if copies else "")
    text = f"{' '.join(filter(None, parts))}: {tensor.parameters:,} parameters, {share}"
    yield f"<g><title>{escape_text(text, 300)}</title>"
    yield f'<rect class="{get_component(tile)}" {format_area(area)}/>'
    if copies:
        yield from cells.draw(area, copies)
    yield "</g>"


def describe_place(tensor: TensorGroup) -> str:
    """The name of a tensor with the block that it is in: "attention: queries"."""
    block = name_block(tensor.component)
    return tensor.title if not block or block in tensor.title else f"{block}: {tensor.title}"


def format_area(area: Area) -> str:
    x, y, width, height = (f"{value:.4f}".rstrip("0").rstrip(".") for value in area)
    return f'x="{x}" y="{y}" width="{width}" height="{height}"'


def draw_borders(map: ParameterMap) -> Iterator[str]:
    """The lines between tensors, components, stacks of layers and parts, each wider than the ones before."""
    areas = [*(("tensor", tile.area) for tile in map.tiles), *map.borders]
    for kind, width in BORDERS.items():
        d = "".join("M{0} {1}h{2}v{3}h-{2}z".format(*(fmt(n) for n in area)) for k, area in areas if k == kind)
        yield f'<path class="border" stroke-width="{width}" d="{d}"/>'


def draw_lines(tile: Tile) -> Iterator[str]:
    """The text on a tensor, on a ground without cells."""
    if not tile.lines:
        return
    component, first, last = get_component(tile), tile.lines[0], tile.lines[-1]
    width = max(text_width(line.text, line.size, bold=line.bold) for line in tile.lines)
    top, bottom = first.y - 0.95 * first.size, last.y + 0.35 * last.size
    ground = Area(first.x - 3, top, min(width + 6, tile.area.x + tile.area.width - first.x), bottom - top)
    yield f'<rect class="{component}" {format_area(ground)}/>'
    for line in tile.lines:
        yield draw_text(line.x, line.y, line.text, line.size, f"on-{component}", bold=line.bold)


def get_component(tile: Tile) -> str:
    return tile.tensor.component.partition(".")[0]


def draw_text(
    x: float, y: float, text: str, size: float, role: str, *, bold: bool = False, anchor: str = "start"
) -> str:
    role = f"{role} bold" if bold else role
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{role}" x="{fmt(x)}" y="{fmt(y)}" font-size="{fmt(size)}"{side}>{escape_text(text)}</text>'


def draw_header(map: ParameterMap) -> Iterator[str]:
    y = MARGIN + 20 * map.zoom
    yield draw_text(MARGIN, y, map.title, 24 * map.zoom, "ink", bold=True)
    for i, line in enumerate(map.subtitle):
        y += (22 if i == 0 else 18) * map.zoom
        yield draw_text(MARGIN, y, line, 14 * map.zoom, "soft")


def draw_legend(map: ParameterMap) -> Iterator[str]:
    """The components with their parameters, the scale, and what dark cells mean."""
    zoom = map.zoom
    left, right, y = map.area.x + map.area.width + GAP, map.width - MARGIN, map.area.y
    side, text_left, size, step = 14 * zoom, left + 22 * zoom, 12 * zoom, 23 * zoom
    for component, n in map.components.items():
        yield f'<rect class="{component}" {format_area(Area(left, y, side, side))}/>'
        yield draw_text(text_left, y + 11.5 * zoom, name_group(component), size, "ink")
        number = f"{format_count(n)} · {format_share(n, map.total)}"
        yield draw_text(right, y + 11.5 * zoom, number, size, "soft", anchor="end")
        y += step
    y += 10 * zoom
    per_pixel = map.total / (map.area.width * map.area.height)
    yield f'<rect class="scale" {format_area(Area(left, y, side, side))}/>'
    yield draw_text(text_left, y + 11.5 * zoom, f"{format_count(round(per_pixel * side**2))} parameters", size, "soft")
    experts = next((tile for tile in map.tiles if any(axis.active < axis.number for axis in tile.copies)), None)
    if experts:
        y += step
        square = format_area(Area(left, y, side, side))
        yield f'<rect class="{get_component(experts)}" {square}/><rect class="active" {ACTIVE} {square}/>'
        yield draw_text(text_left, y + 11.5 * zoom, "active for one token", size, "soft")
    yield draw_text(right, map.height - MARGIN, "made with paramcount", 11 * zoom, "soft", anchor="end")


def render_map_file(map: ParameterMap, format: str) -> str | bytes:
    """The content of a file in this format. Raises: ParamcountError for a PNG or a PDF if its extra is missing."""
    svg = render_map(map)
    if format == "pdf":
        from paramcount.drawing.pdf import convert_to_pdf

        return convert_to_pdf(svg)
    return svg if format == "svg" else convert_to_png(svg, zoom=1 if map.zoom > 1 else 2)
