"""Draws single items at a scale, with the points where data enter and leave."""

from __future__ import annotations

import re
from typing import NamedTuple

from paramcount.drawing.items import Item
from paramcount.drawing.shapes import Arrow, Group, Place, Point, Rectangle, Sign, Text, snap, text_width

LONGEST = 340.0  # longer matrices are truncated
BROKEN = 210.0  # length of a truncated matrix
THINNEST = 2.0  # smallest thickness
UNKNOWN = 26.0  # length of a size that depends on the input
CARDS, DEPTH = 12, 26.0  # most cards in a stack, and its depth in pixels
SMALL, NAME = 10.0, 11.0  # font sizes
LINE = 12.0  # line height
TEXT_GAP = 4.0  # between a rectangle and its text
JOINT = 8.0  # radius of a sign
RESULT_GAP = 22.0  # from words to the data that follow
WRAP = 64.0  # labels may be as wide as their rectangle, or this wide


class Piece(NamedTuple):
    """A drawn item, with its axis at y = 0 and its left edge at x = 0."""

    item: Item
    group: Group
    width: float
    way_in: Point
    way_out: Point
    operand: Point | None = None  # where the right operand enters from below
    joint: float = JOINT  # x of further inputs from below or above


def choose_length(n: int | str, scale: float) -> tuple[float, str]:
    """(drawn length of a size, mark: broken, thin, unknown or "").

    >>> choose_length(768, 8), choose_length(50257, 8), choose_length(5, 8), choose_length("patches", 8)
    ((96.0, ''), (210.0, 'broken'), (2.0, 'thin'), (26.0, 'unknown'))
    """
    if isinstance(n, str):
        return UNKNOWN, "unknown"
    length = snap(n / scale)
    if length > LONGEST:
        return BROKEN, "broken"
    return (THINNEST, "thin") if length < THINNEST else (length, "")


def make_rectangle(matrix: Rectangle, scale: float) -> Rectangle:
    """A matrix as a rectangle centred at (0, 0)."""
    (height, row_mark), (width, col_mark) = choose_length(matrix.rows, scale), choose_length(matrix.cols, scale)
    cards = min(matrix.copies, CARDS)
    broken, thin, unknown = (
        tuple(axis for axis, mark in (("rows", row_mark), ("cols", col_mark)) if mark == name)
        for name in ("broken", "thin", "unknown")
    )
    return matrix._replace(
        x=-width / 2,
        y=-height / 2,
        width=width,
        height=height,
        cards=cards,
        offset=min(3.0, snap(DEPTH / (cards - 1))) if cards > 1 else 0.0,
        broken=broken,
        thin=thin,
        unknown=unknown,
    )


def wrap_text(text: str, room: float, size: float) -> list[str]:
    """A text wrapped at spaces, and names of tensors that are too long also after dots.

    >>> wrap_text("tied to wte.weight", 64.0, 10.0), wrap_text("tied to model.embed_tokens.weight", 96.0, 10.0)
    (['tied to', 'wte.weight'], ['tied to model.', 'embed_tokens.', 'weight'])
    """
    words = [
        part
        for word in text.split(" ")
        for part in ([f"{word} "] if text_width(word, size) <= room else re.split(r"(?<=\.)(?=\S)", f"{word} "))
    ]
    lines: list[str] = []
    for word in words:
        if lines and text_width(f"{lines[-1]}{word.rstrip()}", size) <= room:
            lines[-1] += word
        else:
            lines.append(word)
    return [line.rstrip() for line in lines] if text else []


def split_shape(shape: str, room: float) -> list[str]:
    """A shape in one line, or with the number of copies on a line of its own."""
    if text_width(shape, SMALL) <= max(room, WRAP) or " × [" not in shape:
        return [shape] if shape else []
    copies, _, single_shape = shape.partition(" × ")
    return [f"{copies} ×", single_shape]


def make_cell(
    matrix: Rectangle, scale: float, *, all_above: bool = False, biases: tuple[Rectangle, ...] = (), note: str = ""
) -> Group:
    """A rectangle with its name above and its shape below, or with all texts above. `biases`: drawn right below it."""
    front = make_rectangle(matrix, scale)
    strips, bottom = [], front.y + front.height
    for vector in biases:
        strip = make_rectangle(vector, scale)
        width = front.width if strip.copies == front.copies else strip.width
        strips.append(strip._replace(x=front.x, y=bottom + 3, cards=1, offset=0.0, width=width))
        bottom += 3 + strip.height
    left, top, right, _ = front.box
    middle, room = (left + right) / 2, right - left
    names = [(line, NAME, "name") for line in wrap_text(matrix.label, max(room, WRAP), NAME)]
    shapes = [(line, SMALL, "shape") for line in split_shape(matrix.shape, room)]
    notes = [(line, SMALL, "note") for line in wrap_text(note, max(room, 96.0), SMALL)]
    above, below = ([*names, *shapes, *notes], []) if all_above else (names, [*shapes, *notes])
    texts = []
    for i, (line, size, role) in enumerate(reversed(above)):
        texts.append(Text(middle, top - TEXT_GAP - 2 - i * LINE, line, size, role=role))
    for i, (line, size, role) in enumerate(below):
        texts.append(Text(middle, bottom + TEXT_GAP + 8 + i * LINE, line, size, role=role))
    return Group(rectangles=(front, *strips), texts=tuple(texts))


class PieceRow:
    """Groups next to each other on the axis."""

    def __init__(self) -> None:
        self.group, self.x = Group(), 0.0

    def put(self, group: Group, gap: float = 0.0) -> float:
        """Append a group at the right; returns the x of its origin."""
        left, _, right, _ = group.box
        at = self.x + gap - left
        self.group = self.group.combine(group.move(at, 0))
        self.x = at + right
        return at

    def add_sign(self, text: str) -> None:
        self.put(Group(texts=(Text(0, 6, text, 18, role="sign"),)), 5)
        self.x += 5


def make_piece(item: Item, scale: float) -> Piece:
    """A drawn item, with the place of its steps."""
    piece = make_shapes(item, scale)
    left, top, right, bottom = piece.group.box
    place = Place(left, top, right - left, bottom - top, (item.step, *item.others))
    return piece._replace(group=piece.group.combine(Group(places=(place,))))


def make_shapes(item: Item, scale: float) -> Piece:
    match item:
        case Item(kind="product" | "lookup", right=Rectangle() as right, out=Rectangle() as out):
            return make_product(item, right, out, scale)
        case Item(kind="box" | "source", out=Rectangle() as out):
            return make_box(item, out, scale)
        case Item(kind="words"):
            return add_result(make_words(item), scale)
        case Item(kind="sign"):
            sign = Group(signs=(Sign(JOINT, 0, item.words[0], item.step),))
            return add_result(Piece(item, sign, 2 * JOINT, (0, 0), (2 * JOINT, 0)), scale)
        case _:
            return make_operation(item, scale)


def finish_row(item: Item, row: PieceRow, operand: Point | None = None) -> Piece:
    """A row as a piece. Data enter at the left edge and leave at the right edge of the last rectangle."""
    last = max((r.box for r in row.group.rectangles), key=lambda box: box[2], default=(0, 0, row.x, 0))
    return Piece(item, row.group, row.x, (0, 0), (last[2], 0), operand)


def make_product(item: Item, matrix: Rectangle, out: Rectangle, scale: float) -> Piece:
    row = PieceRow()
    has_data_operand = item.operand is not None
    if item.kind == "product":
        row.add_sign("·")
    biases = tuple(m for m in item.weights if m.rows == 1)
    right = make_cell(matrix, scale, all_above=has_data_operand, biases=biases, note=item.note)
    x = row.put(right)
    for other in item.weights:
        if other not in biases:
            row.put(make_cell(other, scale), 4)
    row.add_sign("=" if item.kind == "product" else "→")
    row.put(make_cell(out, scale))
    front = right.rectangles[0]
    return finish_row(item, row, (x, front.y + front.height) if has_data_operand else None)


def make_box(item: Item, out: Rectangle, scale: float) -> Piece:
    """Data, after a joint if there are several inputs."""
    row = PieceRow()
    if len(item.reads) > 1:
        joint = Sign(JOINT, 0, item.words[0] if item.words else "", item.step)
        line = Arrow(((2 * JOINT, 0), (2 * JOINT + 8, 0)), item.step, item.step, head=False)
        row.put(Group(signs=(joint,), arrows=(line,)))
        x = row.put(make_cell(out, scale))
        line = Arrow(((2 * JOINT, 0), (x + make_rectangle(out, scale).x, 0)), item.step, item.step, head=False)
        row.group = row.group._replace(arrows=(line,))
        return finish_row(item, row)
    row.put(make_cell(out, scale))
    piece = finish_row(item, row)
    return piece._replace(way_in=(piece.group.rectangles[0].x, 0))


def make_words(item: Item) -> Piece:
    n = len(item.words)
    texts = tuple(Text(0, -5 - (n - 1 - i) * LINE, word, SMALL, role="note") for i, word in enumerate(item.words))
    width = max(text_width(word, SMALL) for word in item.words)
    line = Arrow(((-width / 2, 0), (width / 2, 0)), item.step, item.step, head=False)
    row = PieceRow()
    row.put(Group(texts=texts, arrows=(line,)))
    return Piece(item, row.group, row.x, (0, 0), (row.x, 0), joint=row.x / 2)


def add_result(piece: Piece, scale: float) -> Piece:
    """Words or a sign with the data that follow, if those are drawn."""
    out = piece.item.out
    if out is None:
        return piece
    row = PieceRow()
    row.put(piece.group)
    x = row.put(make_cell(out, scale), RESULT_GAP)
    front = make_rectangle(out, scale)
    arrow = Arrow((piece.way_out, (x + front.x, 0.0)), piece.item.step, piece.item.step)
    group = row.group.combine(Group(arrows=(arrow,)))
    return piece._replace(group=group, width=row.x, way_out=(x + front.box[2], 0.0))


def make_operation(item: Item, scale: float) -> Piece:
    """The weights of an operation below its name, then its state and its output, if they are drawn."""
    row = PieceRow()
    for matrix in item.weights:
        row.put(make_cell(matrix, scale), 4 if row.x else 0)
    if item.state:
        row.put(make_cell(item.state, scale), 8 if row.x else 0)
    box = row.group.box
    middle, room = (box[0] + box[2]) / 2, max(box[2] - box[0], WRAP)
    lines = [line for word in item.words for line in wrap_text(word, room, NAME)]
    baseline, last = box[1] - TEXT_GAP - 1, len(lines) - 1
    texts = tuple(Text(middle, baseline - (last - i) * LINE, line, NAME, role="name") for i, line in enumerate(lines))
    group = row.group.combine(Group(texts=texts))
    row = PieceRow()
    row.put(group)
    if item.out:
        row.add_sign("→")
        row.put(make_cell(item.out, scale))
    return finish_row(item, row)
