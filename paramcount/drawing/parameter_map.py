"""The parameter map: one rectangle per tensor, its area in proportion to its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import NamedTuple

from paramcount.counting import COMPONENTS
from paramcount.counting.results import describe_result
from paramcount.counting.tree import TensorGroup, group_tensors
from paramcount.drawing.shapes import text_width
from paramcount.drawing.treemap import Area, squarify
from paramcount.errors import format_shape, make_printable
from paramcount.output.numbers import format_count
from paramcount.zoo import Model, count_model
from paramcount.zoo.what_if import describe_changes

WIDTH, HEIGHT, SOCIAL_HEIGHT = 1200.0, 860.0, 630.0
MARGIN, GAP = 28.0, 24.0
PADDING = 6.0  # between the edge of a rectangle and its text
HEADING, NAME, SMALL = 13.0, 12.0, 11.0  # font sizes
LEADING = 1.25  # line height
LEGEND_WIDTH = 232.0
SOCIAL_ZOOM = 1.5  # of the texts of a link preview, which is shown small


# Of lines of text: the last are left out first
RANKS = {"component": 1, "tensor": 2, "layers": 3, "part": 4, "copies": 5}


class Copies(NamedTuple):
    """The copies of a tensor along one axis."""

    kind: str  # layers | experts
    number: int
    active: int  # for one token


class Label(NamedTuple):
    """A line of text, in all lengths that it may have."""

    variants: tuple[str, ...]  # the longest first
    size: float
    rank: int  # in RANKS
    bold: bool = False


class MapLine(NamedTuple):
    """A line of text with its place on the baseline."""

    x: float
    y: float
    text: str
    size: float
    bold: bool = False


class Tile(NamedTuple):
    """A tensor."""

    area: Area
    tensor: TensorGroup
    copies: tuple[Copies, ...]  # from the outermost: layers, experts
    lines: tuple[MapLine, ...]


class ParameterMap(NamedTuple):
    """A map of all parameters of a model, in pixels."""

    id: str
    title: str
    subtitle: tuple[str, ...]
    width: float
    height: float
    zoom: float  # of the texts
    area: Area  # of all tensors
    total: int
    tiles: tuple[Tile, ...]
    borders: tuple[tuple[str, Area], ...]  # kinds of groups (part, layers, component) and their outlines
    components: Mapping[str, int]  # their parameters, in the order of COMPONENTS

    def __repr__(self) -> str:
        return describe_result(self, "id", "total")

    def svg(self, id: str = "map") -> str:
        """The map as an SVG element. `id` is the prefix of the ids in it, unique per page."""
        from paramcount.drawing.map_svg import render_map

        return render_map(self, id)

    def save(self, path: str | Path) -> None:
        """Write the map to a file: .svg, or .png with the [plot] extra.

        Raises: ParamcountError for another extension, and if the file cannot be written.
        """
        from paramcount.drawing.map_svg import ENDINGS, render_map_file
        from paramcount.output.files import choose_by_extension, write_atomically

        format = choose_by_extension(str(path), ENDINGS, where="save")
        write_atomically(str(path), render_map_file(self, format), "save")

    def _repr_svg_(self) -> str:
        """The map, for notebooks."""
        return self.svg(f"map-{self.id}")


def make_map(model: Model, *, social: bool = False) -> ParameterMap:
    """The parameter map of a loaded model. `social`: in the format of a link preview, 1200 × 630."""
    count = count_model(model)
    zoom = SOCIAL_ZOOM if social else 1.0
    unit = "parameters of the language model" if count.scope == "language_model" else "parameters"
    active = f" · {count.active:,} active" if count.active != count.total else ""
    subtitle = [f"{count.total:,} {unit}{active}", *describe_changes(model)]
    top = MARGIN + zoom * (30 + 18 * len(subtitle)) + 8
    height = SOCIAL_HEIGHT if social else HEIGHT
    width = WIDTH - 2 * MARGIN - GAP - zoom * LEGEND_WIDTH
    area = Area(MARGIN, top, width, height - top - MARGIN)
    tree = group_tensors(count)
    tiles, borders = place_groups(tree, area, zoom)
    return ParameterMap(
        id=model.id,
        title=make_printable(model.name, 60),
        subtitle=tuple(make_printable(line, 120) for line in subtitle),
        width=WIDTH,
        height=height,
        zoom=zoom,
        area=area,
        total=count.total,
        tiles=tuple(tiles),
        borders=tuple(borders),
        components={name: count.components[name] for name in COMPONENTS if count.components[name]},
    )


def place_groups(tree: TensorGroup, area: Area, zoom: float) -> tuple[list[Tile], list[tuple[str, Area]]]:
    """The rectangles of all tensors in a tree. The texts of a group stand in the rectangle of its first tensor."""
    tiles: list[Tile] = []
    borders: list[tuple[str, Area]] = []

    def place(
        group: TensorGroup, parent: TensorGroup, area: Area, copies: tuple[Copies, ...], headings: tuple[Label, ...]
    ) -> None:
        if group.kind in ("layers", "experts"):
            copies = (*copies, Copies(group.kind, group.count, group.active))
        if group.kind == "tensor":
            labels = [*headings, *describe_tensor(group, parent, copies)]
            tiles.append(Tile(area, group, copies, tuple(place_labels(labels, area, zoom))))
            return
        if group.kind in ("part", "layers", "component"):
            borders.append((group.kind, area))
            headings = (*headings, *describe_group(group, parent, tree))
        children = sorted(group.children, key=lambda child: -child.parameters)
        areas = squarify([child.parameters for child in children], area)
        for i, (child, child_area) in enumerate(zip(children, areas)):
            place(child, group, child_area, copies, headings if i == 0 else ())

    if tree.parameters:
        place(tree, tree, area, (), ())
    return tiles, borders


def describe_group(group: TensorGroup, parent: TensorGroup, tree: TensorGroup) -> Iterator[Label]:
    if group.title == parent.title or (group.kind == "part" and len(tree.children) == 1):
        return
    sizes = format_count(group.parameters)
    share = f"{sizes} · {format_share(group.parameters, tree.parameters)}"
    names = [group.title]
    if group.kind == "layers":
        names.append(group.title.partition(" layer")[0])  # the kind alone, where there is little room
    texts = (f"{name}{ending}" for name in names for ending in (f" · {share}", f" · {sizes}", ""))
    is_outer = group.kind != "component"
    yield Label(tuple(texts), HEADING if is_outer else NAME, RANKS[group.kind], bold=True)


def describe_tensor(tensor: TensorGroup, parent: TensorGroup, copies: Sequence[Copies]) -> Iterator[Label]:
    shape = format_shape(tensor.shape)
    texts = (shape,) if tensor.title == parent.title else (f"{tensor.title} {shape}", tensor.title)
    yield Label(texts, SMALL, RANKS["tensor"])
    axes = [axis for axis in copies if axis.number > 1]
    if axes:
        words = describe_copies(axes)
        total = f" = {prod(axis.number for axis in axes):,}" if len(axes) > 1 else ""
        yield Label((f"{words}{total}", words), SMALL, RANKS["copies"])


def describe_copies(copies: Sequence[Copies]) -> str:
    """The numbers of copies as text.

    >>> describe_copies([Copies("layers", 58, 58), Copies("experts", 256, 8)])
    '58 layers × 256 experts'
    """
    return " × ".join(f"{axis.number:,} {axis.kind}" for axis in copies)


def format_share(parameters: int, total: int) -> str:
    """A share of the total in per cent.

    >>> format_share(974, 1000), format_share(1, 10**6), format_share(5, 5)
    ('97.4%', '< 0.1%', '100%')
    """
    tenths = (2000 * parameters + total) // (2 * total)
    if parameters == total:
        return "100%"
    return f"{tenths // 10}.{tenths % 10}%" if tenths else "< 0.1%"


def place_labels(labels: Sequence[Label], area: Area, zoom: float) -> Iterator[MapLine]:
    """The lines of text that fit in a rectangle, from its upper left corner down."""
    room_x, room_y = area.width - 2 * PADDING, area.height - 2 * PADDING
    fitting: list[tuple[int, MapLine]] = []
    for label in labels:
        size = label.size * zoom
        text = next((text for text in label.variants if text_width(text, size, bold=label.bold) <= room_x), None)
        if text is not None:
            fitting.append((label.rank, MapLine(area.x + PADDING, 0.0, text, size, label.bold)))
    while fitting and (sum(line.size for _, line in fitting) * LEADING > room_y or not is_named(fitting)):
        fitting.remove(max(fitting, key=lambda line: line[0]))
    y = area.y + PADDING
    for _, line in fitting:
        yield line._replace(y=y + 0.9 * line.size)
        y += line.size * LEADING


def is_named(lines: Sequence[tuple[int, MapLine]]) -> bool:
    """Whether a number of copies follows the name of its tensor."""
    ranks = {rank for rank, _ in lines}
    return RANKS["tensor"] in ranks or RANKS["copies"] not in ranks
