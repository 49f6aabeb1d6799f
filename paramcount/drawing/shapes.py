"""What a drawing is: rectangles to scale, arrows, texts, signs and frames, as plain data in pixels."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

GRID = 64  # parts of a pixel
Point: TypeAlias = tuple[float, float]
Box: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom


def snap(length: float) -> float:
    """The nearest multiple of 1/64 pixel.

    Every length that a drawing is made of goes through here once, when it is divided or multiplied into being. From then on lengths are
    only added, subtracted and halved, which is exact for such floats: no coordinate depends on the order or the method of summation.

    >>> snap(768 / 10)
    76.796875
    """
    return round(length * GRID) / GRID


class Rectangle(NamedTuple):
    """A matrix: width : height = cols : rows, at the drawing's scale, but for the axes that `broken`, `thin` and `unknown` name."""

    x: float
    y: float
    width: float
    height: float
    rows: int | str  # a word where nobody says how many
    cols: int | str
    role: str  # data | weight
    label: str  # "queries", "Kᵀ"; "" where it goes without saying
    shape: str  # as printed: "12 × [768, 64]"
    step: int  # of Trace.steps: the operation it comes out of or is held by
    name: str = ""  # of a weight: as in the checkpoint
    copies: int = 1  # equal ones, behind one another
    cards: int = 1  # of them drawn
    offset: float = 0  # how far each lies behind the one before it, to the right and up
    beside: int = 1  # heads side by side in it
    broken: tuple[str, ...] = ()  # "rows", "cols": longer than drawn
    thin: tuple[str, ...] = ()  # thinner than can be seen: drawn THINNEST
    unknown: tuple[str, ...] = ()  # a word, no number: drawn at some length
    mask: str = ""  # causal | near: which of its numbers count
    window: int | None = None  # of a masked one: how far back a token looks
    tied: bool = False

    @property
    def box(self) -> Box:
        """What it covers with those behind it."""
        behind = self.offset * (self.cards - 1)
        return self.x, self.y - behind, self.x + self.width + behind, self.y + self.height


class Text(NamedTuple):
    """A line of text: its anchor on the baseline."""

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
    """The way of data from one operation to another."""

    points: tuple[Point, ...]
    start: int  # steps of the trace
    end: int
    head: bool = True


class Sign(NamedTuple):
    """A small circle where data meet: +, ×, Σ."""

    x: float  # of its middle
    y: float
    text: str
    step: int
    radius: float = 8

    @property
    def box(self) -> Box:
        return self.x - self.radius, self.y - self.radius, self.x + self.radius, self.y + self.radius


class Frame(NamedTuple):
    """What stands together: a layer, an expert. `cards`: equal ones drawn behind it, of which `active` are visited."""

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


CARD = 4.0  # how far the frames of experts lie behind one another
BOLD = ("heading", "title", "times")


class Drawing(NamedTuple):
    """A picture of a model. Sizes in pixels, at which texts are as large as they say."""

    id: str
    title: str
    width: float
    height: float
    scale: float  # numbers to a pixel
    tokens: int
    layer: int | None
    rectangles: tuple[Rectangle, ...]
    arrows: tuple[Arrow, ...]
    texts: tuple[Text, ...]
    signs: tuple[Sign, ...]
    frames: tuple[Frame, ...]
    colours: dict[int, int]  # {a number that two matrices share: which colour its edges have}
    words: tuple[str, ...]  # the products in words, for who cannot see it

    def svg(self, id: str = "drawing") -> str:
        """The picture as one SVG element, fit to stand in a page. `id`: what makes the ids in it its own there."""
        from paramcount.drawing.render import svg

        return svg(self, id)

    def html(self) -> str:
        """A page with nothing but the picture."""
        from paramcount.drawing.render import html

        return html(self)

    def save(self, path: str | Path) -> None:
        """Write the drawing to a file; the extension selects the format: .svg, .html or .png (which needs the [plot] extra).

        Raises: ParamcountError for another extension, and if the file cannot be written.
        """
        from paramcount.drawing.render import ENDINGS, file_of
        from paramcount.output.tables import choose_by_extension, write_atomically

        format = choose_by_extension(str(path), ENDINGS, "drawing", where="save")
        write_atomically(str(path), file_of(self, format), "save")

    def _repr_svg_(self) -> str:
        """The drawing, for notebooks. Its id is made of what it shows, so that several fit on one page."""
        return self.svg(f"drawing-{self.id}-{self.tokens}-{'all' if self.layer is None else self.layer}")


class Group(NamedTuple):
    """Things that are moved together."""

    rectangles: tuple[Rectangle, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    texts: tuple[Text, ...] = ()
    signs: tuple[Sign, ...] = ()
    frames: tuple[Frame, ...] = ()

    def moved(self, dx: float, dy: float) -> Group:
        return Group(
            tuple(r._replace(x=r.x + dx, y=r.y + dy) for r in self.rectangles),
            tuple(a._replace(points=tuple((x + dx, y + dy) for x, y in a.points)) for a in self.arrows),
            tuple(t._replace(x=t.x + dx, y=t.y + dy) for t in self.texts),
            tuple(s._replace(x=s.x + dx, y=s.y + dy) for s in self.signs),
            tuple(f._replace(x=f.x + dx, y=f.y + dy) for f in self.frames),
        )

    def with_(self, *others: Group) -> Group:
        groups = (self, *others)
        return Group(
            tuple(one for group in groups for one in group.rectangles),
            tuple(one for group in groups for one in group.arrows),
            tuple(one for group in groups for one in group.texts),
            tuple(one for group in groups for one in group.signs),
            tuple(one for group in groups for one in group.frames),
        )

    @property
    def boxes(self) -> list[Box]:
        """What its things cover one by one, arrows left out."""
        return [
            *(one.box for one in self.rectangles),
            *(one.box for one in self.texts),
            *(one.box for one in self.signs),
            *(one.box for one in self.frames),
        ]

    @property
    def box(self) -> Box:
        """What all of it covers; nothing at all where there is nothing."""
        boxes = self.boxes
        boxes += [(x, y, x, y) for arrow in self.arrows for x, y in arrow.points]
        if not boxes:
            return 0.0, 0.0, 0.0, 0.0
        return min(b[0] for b in boxes), min(b[1] for b in boxes), max(b[2] for b in boxes), max(b[3] for b in boxes)


# Widths of letters in hundredths of an em, of a font that is wider than most: what a text needs whichever font there is.
LETTERS = {c: width for letters, width in ((" .,:;|'!iIjlt", 40), ('()[]{}/fr-"', 46), ("mwMW×%@…—→≠=+−", 100)) for c in letters}
OTHER, CAPITAL, FOREIGN = 65, 80, 110


@cache
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """How wide a text is at most, in pixels.

    >>> text_width("[768, 64]", 10)
    49.703125
    """
    hundredths = sum(LETTERS.get(c) or (FOREIGN if ord(c) > 0x2200 else CAPITAL if c.isupper() else OTHER) for c in text)
    return snap(hundredths * size * (112 if bold else 100) / 10_000)
