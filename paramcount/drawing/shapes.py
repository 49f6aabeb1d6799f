"""A drawing as data: rectangles to scale, arrows, texts, signs and frames, in pixels."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeAlias

from paramcount.counting.results import describe_result

GRID = 64  # parts of a pixel
Point: TypeAlias = tuple[float, float]
Box: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom


def snap(length: float) -> float:
    """The nearest multiple of 1/64 pixel.

    Every length is snapped once, where it is computed by multiplication or division. From then on lengths are only
    added, subtracted and halved, which is exact for such floats, so no coordinate depends on the order of summation.

    >>> snap(768 / 10)
    76.796875
    """
    return round(length * GRID) / GRID


class Rectangle(NamedTuple):
    """A matrix, drawn to scale except on the axes in `broken`, `thin` and `unknown`."""

    rows: int | str  # a size that depends on the input is a name
    cols: int | str
    role: str  # data | weight
    shape: str  # as text: "12 × [768, 64]"
    step: int  # index in Trace.steps of the operation that computes or uses it
    label: str = ""  # "queries", "Kᵀ"
    name: str = ""  # tensor name of a weight in the checkpoint
    copies: int = 1  # in a stack
    beside: int = 1  # number of heads concatenated in it
    mask: str = ""  # causal | near: which elements are not masked
    window: int | None = None  # attention window of a masked matrix
    tied: bool = False
    x: float = 0.0  # this and what follows: since it is drawn at a scale
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    cards: int = 1  # number of copies drawn
    offset: float = 0  # between two cards, to the right and up
    broken: tuple[str, ...] = ()  # axes ("rows", "cols") that are truncated
    thin: tuple[str, ...] = ()  # axes whose size is too small to draw to scale
    unknown: tuple[str, ...] = ()  # axes whose size depends on the input

    def repeat_shape(self, shape: str) -> str:
        """The shape of all copies, from the shape of a single one."""
        return f"{self.copies} × {shape}" if self.copies > 1 else shape

    @property
    def box(self) -> Box:
        """The area it covers, with the cards behind it."""
        behind = self.offset * (self.cards - 1)
        return self.x, self.y - behind, self.x + self.width + behind, self.y + self.height


class Text(NamedTuple):
    """A line of text, anchored on its baseline."""

    x: float
    y: float
    text: str
    size: float = 11
    anchor: str = "middle"  # start | middle | end
    role: str = "shape"  # shape | name | note | sign | heading | title | times

    @property
    def box(self) -> Box:
        width = text_width(self.text, self.size, bold=self.role in BOLD)
        left = self.x - {"start": 0.0, "middle": width / 2, "end": width}[self.anchor]
        return left, self.y - snap(0.76 * self.size), left + width, self.y + snap(0.24 * self.size)


class Arrow(NamedTuple):
    """A line from one operation to another."""

    points: tuple[Point, ...]
    start: int  # index in Trace.steps
    end: int
    head: bool = True


class Sign(NamedTuple):
    """A small circle with an operator: +, ×, Σ."""

    x: float  # centre
    y: float
    text: str
    step: int
    radius: float = 8

    @property
    def box(self) -> Box:
        return self.x - self.radius, self.y - self.radius, self.x + self.radius, self.y + self.radius


class Frame(NamedTuple):
    """A box around a layer or an expert. `cards`: boxes drawn behind it, `active` of them highlighted."""

    x: float
    y: float
    width: float
    height: float
    role: str  # layer | expert
    cards: int = 0
    active: int = 0

    @property
    def box(self) -> Box:
        behind = CARD * self.cards
        return self.x, self.y - behind, self.x + self.width + behind, self.y + self.height


class Place(NamedTuple):
    """The area of the shapes that draw one step, and the steps without shapes of their own that belong to it."""

    x: float
    y: float
    width: float
    height: float
    steps: tuple[int, ...]  # indices in Trace.steps


CARD = 4.0  # offset between the frames of experts
BOLD = ("heading", "title", "times")


class Drawing(NamedTuple):
    """A drawing of a model, in pixels."""

    id: str
    title: str
    width: float
    height: float
    scale: float  # elements per pixel
    tokens: int
    layer: int | None
    rectangles: tuple[Rectangle, ...]
    arrows: tuple[Arrow, ...]
    texts: tuple[Text, ...]
    signs: tuple[Sign, ...]
    frames: tuple[Frame, ...]
    places: tuple[Place, ...]
    colours: dict[int, int]  # {dimension: index of its colour}
    words: tuple[str, ...]  # the matmuls as text, for screen readers

    def __repr__(self) -> str:
        return describe_result(self)

    def svg(self, id: str = "drawing") -> str:
        """The drawing as an SVG element. `id` is the prefix of the ids in it, unique per page."""

        from paramcount.drawing.render import render_svg

        return render_svg(self, id)

    def html(self) -> str:
        """An HTML page that shows the drawing."""

        from paramcount.drawing.render import render_html

        return render_html(self)

    def save(self, path: str | Path) -> None:
        """Write the drawing to a file: .svg, .html, or .png with the [plot] extra.

        Raises: ParamcountError for another extension, and if the file cannot be written.
        """
        from paramcount.drawing.render import ENDINGS, render_file
        from paramcount.output.files import choose_by_extension, write_atomically

        format = choose_by_extension(str(path), ENDINGS, where="save")
        write_atomically(str(path), render_file(self, format), "save")

    def _repr_svg_(self) -> str:
        """The drawing, for notebooks. Its id contains the model, tokens and layer, so that it is unique on a page."""
        return self.svg(f"drawing-{self.id}-{self.tokens}-{'all' if self.layer is None else self.layer}")


class Group(NamedTuple):
    """Shapes that are moved together."""

    rectangles: tuple[Rectangle, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    texts: tuple[Text, ...] = ()
    signs: tuple[Sign, ...] = ()
    frames: tuple[Frame, ...] = ()
    places: tuple[Place, ...] = ()

    def move(self, dx: float, dy: float) -> Group:
        return Group(
            tuple(r._replace(x=r.x + dx, y=r.y + dy) for r in self.rectangles),
            tuple(a._replace(points=tuple((x + dx, y + dy) for x, y in a.points)) for a in self.arrows),
            tuple(t._replace(x=t.x + dx, y=t.y + dy) for t in self.texts),
            tuple(s._replace(x=s.x + dx, y=s.y + dy) for s in self.signs),
            tuple(f._replace(x=f.x + dx, y=f.y + dy) for f in self.frames),
            tuple(p._replace(x=p.x + dx, y=p.y + dy) for p in self.places),
        )

    def combine(self, *others: Group) -> Group:
        return Group(*(tuple(chain.from_iterable(shapes)) for shapes in zip(self, *others)))

    @property
    def boxes(self) -> list[Box]:
        """The areas of its shapes, except arrows."""
        shapes: Iterable[Rectangle | Text | Sign | Frame]
        shapes = chain(self.rectangles, self.texts, self.signs, self.frames)
        return [shape.box for shape in shapes]

    @property
    def box(self) -> Box:
        """The bounding box of all shapes; empty for an empty group."""
        boxes = self.boxes
        boxes += [(x, y, x, y) for arrow in self.arrows for x, y in arrow.points]
        if not boxes:
            return 0.0, 0.0, 0.0, 0.0
        lefts, tops, rights, bottoms = zip(*boxes)
        return min(lefts), min(tops), max(rights), max(bottoms)


# Widths of letters in hundredths of an em, for a wide font, so that texts fit in any font
LETTERS = {
    c: width
    for letters, width in ((" .,:;|'!iIjlt", 40), ('()[]{}/fr-"', 46), ("mwMW×%@…—→≠=+−", 100))
    for c in letters
}
OTHER, CAPITAL, FOREIGN = 65, 80, 110


@cache
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The largest width of a text, in pixels.

    >>> text_width("[768, 64]", 10)
    49.703125
    """
    hundredths = sum(map(letter_width, text))
    return snap(hundredths * size * (112 if bold else 100) / 10_000)


def letter_width(c: str) -> int:
    if ord(c) > 0x2200:
        return LETTERS.get(c, FOREIGN)
    return LETTERS.get(c, CAPITAL if c.isupper() else OTHER)
