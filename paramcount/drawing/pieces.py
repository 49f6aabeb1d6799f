"""The items of a flow at a scale: each by itself, with the places where data come in and leave."""

from __future__ import annotations

from typing import NamedTuple

from paramcount.drawing.items import Item
from paramcount.drawing.matrices import Matrix
from paramcount.drawing.shapes import Arrow, Group, Point, Rectangle, Sign, Text, snap, text_width

LONGEST = 340.0  # what is longer is broken
BROKEN = 210.0  # and drawn so long
THINNEST = 2.0  # what is thinner is drawn so thick
UNKNOWN = 26.0  # a length that nobody knows
CARDS, DEPTH = 12, 26.0  # so many of a stack are drawn, over so many pixels
SMALL, NAME = 10.0, 11.0  # sizes of text
LINE = 12.0  # from one line to the next
NEAR = 4.0  # between a rectangle and what is written at it
JOINT = 8.0  # radius of a sign
RESULT = 22.0  # from a small operation to the data that leave it
WRAP = 64.0  # labels may be as wide as their rectangle, or as this


class Piece(NamedTuple):
    """An item with its axis at height 0 and its left edge at 0."""

    item: Item
    group: Group
    width: float
    way_in: Point
    way_out: Point
    operand: Point | None = None  # where the right operand comes in from below
    joint: float = JOINT  # how far to the right further data come in from below or above


def length(n: int | str, scale: float) -> tuple[float, str]:
    """How long so many numbers are drawn, and what is to be said of it: broken, thin or unknown.

    >>> length(768, 8), length(50257, 8), length(5, 8), length("patches", 8)
    ((96.0, ''), (210.0, 'broken'), (2.0, 'thin'), (26.0, 'unknown'))
    """
    if isinstance(n, str):
        return UNKNOWN, "unknown"
    drawn = snap(n / scale)
    return (BROKEN, "broken") if drawn > LONGEST else (THINNEST, "thin") if drawn < THINNEST else (drawn, "")


def rectangle(matrix: Matrix, scale: float) -> Rectangle:
    """A matrix as a rectangle whose middle is at 0, 0."""
    (height, of_rows), (width, of_cols) = length(matrix.rows, scale), length(matrix.cols, scale)
    cards = min(matrix.copies, CARDS)
    said = {mark: tuple(axis for axis, found in (("rows", of_rows), ("cols", of_cols)) if found == mark) for mark in ("broken", "thin", "unknown")}
    return Rectangle(
        -width / 2,
        -height / 2,
        width,
        height,
        matrix.rows,
        matrix.cols,
        matrix.role,
        matrix.label,
        matrix.shape,
        matrix.step,
        name=matrix.name,
        copies=matrix.copies,
        cards=cards,
        offset=min(3.0, snap(DEPTH / (cards - 1))) if cards > 1 else 0.0,
        beside=matrix.beside,
        mask=matrix.mask,
        window=matrix.window,
        tied=matrix.tied,
        **said,
    )


def wrapped(text: str, room: float, size: float) -> list[str]:
    """A text in lines that fit, as far as its words let it."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and text_width(f"{lines[-1]} {word}", size) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines if text else []


def shape_lines(shape: str, room: float) -> list[str]:
    """A shape in one line, or the number of copies above it."""
    if text_width(shape, SMALL) <= max(room, WRAP) or " × [" not in shape:
        return [shape] if shape else []
    copies, _, one = shape.partition(" × ")
    return [f"{copies} ×", one]


def cell(matrix: Matrix, scale: float, *, all_above: bool = False, under: tuple[Matrix, ...] = (), note: str = "") -> Group:
    """A rectangle with its name above and its shape below; `under`: vectors as wide as it, right below it."""
    front = rectangle(matrix, scale)
    strips, bottom = [], front.y + front.height
    for vector in under:
        strip = rectangle(vector, scale)
        strips.append(strip._replace(x=front.x, y=bottom + 3, cards=1, offset=0.0, width=front.width if strip.copies == front.copies else strip.width))
        bottom += 3 + strip.height
    left, top, right, _ = front.box
    middle, room = (left + right) / 2, right - left
    names, shapes = wrapped(matrix.label, max(room, WRAP), NAME), shape_lines(matrix.shape, room)
    notes = wrapped(note, max(room, 96.0), SMALL)
    texts = []
    above = [*((line, NAME, "name") for line in names), *((line, SMALL, "shape") for line in (shapes if all_above else ()))]
    for i, (line, size, role) in enumerate(reversed(above)):
        texts.append(Text(middle, top - NEAR - 2 - i * LINE, line, size, role=role))
    lines = [*((line, "shape") for line in (() if all_above else shapes)), *((line, "note") for line in notes)]
    for i, (line, role) in enumerate(lines):
        texts.append(Text(middle, bottom + NEAR + 8 + i * LINE, line, SMALL, role=role))
    return Group(rectangles=(front, *strips), texts=tuple(texts))


class Row:
    """Things side by side on the axis."""

    def __init__(self) -> None:
        self.group, self.x = Group(), 0.0

    def put(self, group: Group, gap: float = 0.0) -> float:
        """Put it to the right of what is there; where its own 0 came to stand."""
        left, _, right, _ = group.box
        at = self.x + gap - left
        self.group = self.group.with_(group.moved(at, 0))
        self.x = at + right
        return at

    def sign(self, text: str) -> None:
        self.put(Group(texts=(Text(0, 6, text, 18, role="sign"),)), 5)
        self.x += 5


def piece(item: Item, scale: float) -> Piece:
    """An item by itself."""
    match item:
        case Item(kind="product" | "lookup", right=Matrix() as right, out=Matrix() as out):
            return product(item, right, out, scale)
        case Item(kind="box" | "source", out=Matrix() as out):
            return box(item, out, scale)
        case Item(kind="words"):
            return with_result(words(item), scale)
        case Item(kind="sign"):
            return with_result(sign(item), scale)
        case _:
            return operation(item, scale)


def finished(item: Item, row: Row, operand: Point | None = None) -> Piece:
    """A row as a piece. Data enter at its left edge, and leave at the right edge of what it ends in."""
    last = max((r.box for r in row.group.rectangles), key=lambda box: box[2], default=(0, 0, row.x, 0))
    return Piece(item, row.group, row.x, (0, 0), (last[2], 0), operand)


def product(item: Item, matrix: Matrix, out: Matrix, scale: float) -> Piece:
    """· grey = blue: what comes in times a matrix."""
    row = Row()
    given = item.operand is not None
    if item.kind == "product":
        row.sign("·")
    under = tuple(m for m in item.weights if m.rows == 1)
    right = cell(matrix, scale, all_above=given, under=under, note=item.note)
    at = row.put(right)
    for other in item.weights:
        if other not in under:
            row.put(cell(other, scale), 4)
    row.sign("=" if item.kind == "product" else "→")
    row.put(cell(out, scale))
    front = right.rectangles[0]
    return finished(item, row, (at, front.y + front.height) if given else None)


def box(item: Item, out: Matrix, scale: float) -> Piece:
    """Data by themselves, behind a joint if they come together there."""
    row = Row()
    if len(item.reads) > 1:
        joint = Sign(JOINT, 0, item.words[0] if item.words else "", item.step)
        line = Arrow(((2 * JOINT, 0), (2 * JOINT + 8, 0)), item.step, item.step, head=False)
        row.put(Group(signs=(joint,), arrows=(line,)))
        at = row.put(cell(out, scale))
        line = Arrow(((2 * JOINT, 0), (at + rectangle(out, scale).x, 0)), item.step, item.step, head=False)
        row.group = row.group._replace(arrows=(line,))
        return finished(item, row)
    row.put(cell(out, scale))
    done = finished(item, row)
    return done._replace(way_in=(done.group.rectangles[0].x, 0))


def words(item: Item) -> Piece:
    """Words above a line."""
    n = len(item.words)
    texts = tuple(Text(0, -5 - (n - 1 - i) * LINE, word, SMALL, role="note") for i, word in enumerate(item.words))
    width = max(text_width(word, SMALL) for word in item.words)
    line = Arrow(((-width / 2, 0), (width / 2, 0)), item.step, item.step, head=False)
    row = Row()
    row.put(Group(texts=texts, arrows=(line,)))
    return Piece(item, row.group, row.x, (0, 0), (row.x, 0), joint=row.x / 2)


def with_result(done: Piece, scale: float) -> Piece:
    """A small operation with the data that leave it, if these are to be seen."""
    out = done.item.out
    if out is None:
        return done
    row = Row()
    row.put(done.group)
    at = row.put(cell(out, scale), RESULT)
    front = rectangle(out, scale)
    arrow = Arrow((done.way_out, (at + front.x, 0.0)), done.item.step, done.item.step)
    return done._replace(group=row.group.with_(Group(arrows=(arrow,))), width=row.x, way_out=(at + front.box[2], 0.0))


def sign(item: Item) -> Piece:
    mark = Sign(JOINT, 0, item.words[0], item.step)
    return Piece(item, Group(signs=(mark,)), 2 * JOINT, (0, 0), (2 * JOINT, 0))


def operation(item: Item, scale: float) -> Piece:
    """What an operation holds, upright beside one another, under its name; then what it keeps and what comes out of it, if these are to be seen."""
    row = Row()
    for matrix in item.weights:
        row.put(cell(matrix, scale), 4 if row.x else 0)
    if item.state:
        row.put(cell(item.state, scale), 8 if row.x else 0)
    box = row.group.box
    middle, room = (box[0] + box[2]) / 2, max(box[2] - box[0], WRAP)
    lines = [line for word in item.words for line in wrapped(word, room, NAME)]
    texts = tuple(Text(middle, box[1] - NEAR - 1 - (len(lines) - 1 - i) * LINE, line, NAME, role="name") for i, line in enumerate(lines))
    named = row.group.with_(Group(texts=texts))
    row = Row()
    row.put(named)
    if item.out:
        row.sign("→")
        row.put(cell(item.out, scale))
    return finished(item, row)
