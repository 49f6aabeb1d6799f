"""Small maps of a model's parameters as HTML: a rectangle per component of each kind of layers, areas to scale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcount.counting import Count
from paramcount.counting.tree import TensorGroup, group_tensors
from paramcount.drawing.colours import COLOURS, ON_DARK, choose_text_colour
from paramcount.drawing.map_svg import trace_first_cells, trace_grid
from paramcount.drawing.treemap import Area, divide_area, squarify
from paramcount.explore.article.elements import Html, element
from paramcount.output.numbers import format_count, format_share
from paramcount.output.weight_names import name_group

WIDTH = 400.0
SMALLEST_CELL = 2.0  # pixels
SMALLEST_SHARE = 0.04  # of a rectangle with a label
WIDE = 0.4  # of the width, of a rectangle whose label fits on a narrow screen


class MapBlock(NamedTuple):
    """The tensors of one component in all layers of a kind."""

    component: str
    parameters: int
    cells: int  # layers, or the experts of one layer
    active: int  # cells that one token uses


def list_blocks(group: TensorGroup, layers: int = 1) -> Iterator[MapBlock]:
    """The components below a group."""
    if group.kind == "component":
        experts = next((child for child in group.children if child.kind == "experts"), None)
        cells, active = (experts.count, experts.active) if experts else (layers, layers)
        yield MapBlock(group.component, group.parameters, cells, active)
        return
    for child in group.children:
        yield from list_blocks(child, child.count if group.kind != "layers" and child.kind == "layers" else layers)


def draw_small_map(count: Count, name: str, height: float, *, has_labels: bool = False) -> Html:
    """The map of a model's parameters. Labels are HTML beside the SVG, so that they do not shrink with it."""
    blocks = sorted(list_blocks(group_tensors(count)), key=lambda block: -block.parameters)
    blocks = [block for block in blocks if block.parameters]
    areas = squarify([block.parameters for block in blocks], Area(0.0, 0.0, WIDTH, height))
    shapes = (shape for block, area in zip(blocks, areas) for shape in draw_block(block, area))
    active = "" if count.active == count.total else f", {format_count(count.active)} of them active for one token"
    label = f"Map of {name}: {format_count(count.total)} parameters{active}"
    svg = element("svg", *shapes, viewBox=f"0 0 {WIDTH:g} {height:g}", role="img", aria_label=label)
    labels = (write_label(block, area, height, count.total) for block, area in zip(blocks, areas))
    return element("div", svg, *(labels if has_labels else ()), class_="small-map")


def draw_block(block: MapBlock, area: Area) -> Iterator[Html]:
    x, y, width, height = (f"{value:.2f}" for value in area)
    yield element("rect", x=x, y=y, width=width, height=height, fill=f"var(--c-{block.component})")
    rows = list(divide_area(area, block.cells))
    if block.cells == 1 or min(min(row.width, row.height) for row in rows) < SMALLEST_CELL:
        return
    if block.active < block.cells:
        yield element("path", class_="active", d=trace_first_cells(rows, block.active))
    yield element("path", class_="grid", d=trace_grid(rows))


def write_label(block: MapBlock, area: Area, height: float, total: int) -> Html:
    """The name and share of a block that has room for them; hidden on a narrow screen unless the block is wide."""
    if block.parameters < SMALLEST_SHARE * total:
        return Html("")
    left, top, width = 100 * area.x / WIDTH, 100 * area.y / height, 100 * area.width / WIDTH
    share = f"{format_count(block.parameters)} · {format_share(block.parameters, total)}"
    style = f"left:{left:.2f}%;top:{top:.2f}%;width:{width:.2f}%;height:{100 * area.height / height:.2f}%"
    kind = "wide" if area.width > WIDE * WIDTH else None
    return element(
        "span", element("b", name_group(block.component)), " ", element("small", share), style=style, class_=kind
    )


def write_colour_rules() -> str:
    """The colours of components as properties of the style sheet: --c-experts, and --on-experts of text on it."""
    rules = []
    for name, colour in COLOURS.items():
        dark = ON_DARK.get(name, colour)
        rules.append(f"--c-{name}:light-dark({colour},{dark})")
        rules.append(f"--on-{name}:light-dark({choose_text_colour(colour)},{choose_text_colour(dark)})")
    return f":root{{{';'.join(rules)}}}"
