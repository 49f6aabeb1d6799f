"""The drawings of a page: the layout of `paramcount draw` for the steps that decode one token, as integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from paramcount.counting.sum_weights import list_flows
from paramcount.drawing.pictures import draw_body
from paramcount.drawing.sections import list_sections
from paramcount.drawing.shapes import CARD, Arrow, Frame, Group, Rectangle
from paramcount.errors import ParamcountError
from paramcount.explore.flow import choose_options
from paramcount.explore.packings import Pool
from paramcount.output.layer_kinds import describe_kind
from paramcount.tracing.run import choose_length, trace_model
from paramcount.tracing.sentences import explain_step
from paramcount.tracing.trace import Step, Trace
from paramcount.zoo import Model

CONTEXT = 4096  # most tokens of the text
MAX_STEPS = 100  # of a layer
MARGIN = 12.0  # pixels around a drawing
ROLES = ("shape", "name", "note", "sign", "caption", "heading", "times")  # of texts
StepKey: TypeAlias = tuple[str, ...]
# Bits of the kind of a rectangle
DATA, BROKEN_ROWS, BROKEN_COLS, UNKNOWN = 1, 2, 4, 8


class Drawings:
    """The drawings of a page, each once, and the words in them."""

    def __init__(self) -> None:
        self.drawings, self.words = Pool(), Pool()

    def add(self, model: Model, flow: Sequence[StepKey]) -> int | None:
        """The position of the model's drawing; None if it would be too large, or if the page does not have its flow."""
        context = choose_length(model, CONTEXT)
        try:
            trace = trace_decoding(model, context)
            found = find_steps(trace.steps, flow)
            sections = list_sections(trace)
            if found is None or max(len(section.indices) for section in sections) > MAX_STEPS:
                return None
            body = draw_body(trace, model.id)
        except ParamcountError:
            return None
        left, top, right, bottom = body.group.box
        group = body.group.move(MARGIN - left, MARGIN - top)
        # {drawn step: itself and the equal steps of other kinds of layers}
        equal = {steps[0]: list(steps) for section in sections for steps in zip(*section.covers)}
        places = [
            place._replace(steps=tuple(found[j] for i in place.steps for j in equal.get(i, [i])))
            for place in group.places
        ]
        sentences: list[int | None] = [None] * len(flow)
        for i, position in enumerate(found):
            sentences[position] = self.words.add(explain_step(trace.steps, i))
        drawing = {
            "context": context,
            "scale": body.scale,
            "size": [round(right - left + 2 * MARGIN), round(bottom - top + 2 * MARGIN)],
            "sentences": sentences,
        }
        return self.drawings.add(drawing | self.export_shapes(group._replace(places=tuple(places))))

    def export_shapes(self, group: Group) -> dict[str, Any]:
        """The shapes as lists of integers, which begin with their position. A text or a sign ends with the position of
        its word."""
        return {
            "boxes": export_each(group.rectangles, export_rectangle),
            "lines": export_lines(group.arrows),
            "texts": export_each(group.texts, lambda text: [ROLES.index(text.role), self.words.add(text.text)]),
            "signs": export_each(group.signs, lambda sign: [self.words.add(sign.text)]),
            "frames": export_each(group.frames, export_frame),
            "places": export_each(group.places, lambda p: [round(p.width), round(p.height), *p.steps]),
        }


def make_key(text: str, kinds: Iterable[str]) -> StepKey:
    """What a step of a trace and one of a flow with symbols have in common. `kinds`: of the layers around it."""
    return text, *kinds


def find_steps(steps: Sequence[Step], flow: Sequence[StepKey]) -> list[int] | None:
    """The position of each step in the flow, which has the layers of all kinds, also of kinds that the model has none
    of; None if one is missing."""
    found, position = [], -1
    for step in steps:
        key = make_key(step.text, (describe_kind(scope.kind) for scope in step.scopes))
        try:
            position = flow.index(key, position + 1)
        except ValueError:
            return None
        found.append(position)
    return found


class Pen:
    """A position from which the next one is measured: differences are smaller numbers, which compress better."""

    def __init__(self) -> None:
        self.x = self.y = 0

    def move(self, x: float, y: float) -> list[int]:
        """The way to a position."""
        way = [round(x) - self.x, round(y) - self.y]
        self.x, self.y = round(x), round(y)
        return way


def export_each(shapes: Iterable[Any], export: Callable[[Any], list[int]]) -> list[list[int]]:
    """The way to each shape from the one before, then what else there is to it."""
    pen = Pen()
    return [[*pen.move(shape.x, shape.y), *export(shape)] for shape in shapes]


def export_lines(arrows: Iterable[Arrow]) -> list[list[int]]:
    """Whether there is a head, then the way to each point from the one before."""
    pen = Pen()
    return [[int(arrow.head), *(n for point in arrow.points for n in pen.move(*point))] for arrow in arrows]


def export_frame(frame: Frame) -> list[int]:
    """Its size, the number of frames with those behind it, and their depth."""
    return [round(frame.width), round(frame.height), frame.cards + 1, round(CARD * frame.cards)]


def export_rectangle(r: Rectangle) -> list[int]:
    """Its size and kind, and if it is a stack, the number of cards and the depth of the stack."""
    kind = DATA * (r.role == "data")
    kind += BROKEN_ROWS * ("rows" in r.broken) + BROKEN_COLS * ("cols" in r.broken) + UNKNOWN * bool(r.unknown)
    stack = [r.cards, round(r.offset * (r.cards - 1))] if r.cards > 1 else []
    return [max(1, round(r.width)), max(1, round(r.height)), kind, *stack]


def trace_decoding(model: Model, context: int) -> Trace:
    """The steps that decode one token at the end of a text, as `derive_flow` has them in symbols."""
    out, _ = next(iter(list_flows(model.sizes, model.reading.head)))
    return trace_model(model, choose_options(out, context))
