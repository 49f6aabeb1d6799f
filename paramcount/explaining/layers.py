"""Explains one layer of a stack, selected by its index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from paramcount.errors import LONGEST, ParamcountError, find_nearest, make_printable
from paramcount.explaining.explain import make_explanation
from paramcount.explaining.explanation import Explanation
from paramcount.explaining.lines import find_kinds, list_components
from paramcount.explaining.pieces import PieceWalk
from paramcount.flow import Repeat
from paramcount.output.layer_kinds import describe_kind
from paramcount.output.ranges import format_ranges, join_ranges
from paramcount.zoo import Model

Run = tuple[int, int]  # first layer, number of layers
MOST_RANGES = 12


class LayerStack(NamedTuple):
    """The layers with one prefix in the checkpoint."""

    name: str  # "model.layers."
    part: str
    kinds: tuple[Repeat, ...]
    runs: tuple[tuple[Run, ...], ...]  # of each kind

    @property
    def title(self) -> str:
        return self.name.rstrip(".") or "the layers"

    @property
    def indices(self) -> str:
        return format_runs(run for runs in self.runs for run in runs)

    def find_kind(self, index: int) -> int | None:
        for i, runs in enumerate(self.runs):
            if any(first <= index < first + n for first, n in runs):
                return i
        return None

    def describe_kind(self, i: int) -> str:
        """The name of a kind and its layers: "dense; identical layers: 0–2"."""
        kind = self.kinds[i].kind
        words = kind if isinstance(kind, tuple) else (kind,)
        name = describe_kind(" ".join(word for word in words if isinstance(word, str)))
        is_single = sum(n for _, n in self.runs[i]) == 1
        identical = "no identical layers" if is_single else f"identical layers: {format_runs(self.runs[i])}"
        return make_printable(f"{name}; {identical}" if name else identical, 100)


def explain_layer(model: Model, walk: PieceWalk, layer: int | str) -> Explanation:
    stacks = list_stacks(walk)
    stack, index, i = find_layer(model, stacks, layer)
    kind = stack.kinds[i]
    rows = [
        row._replace(repeats=tuple(repeat for repeat in row.repeats if repeat is not row.layer))
        for row in walk.rows
        if row.layer == kind and row.role == "parameter"
    ]
    facts = [stack.describe_kind(i)]
    if all(row.part == "mtp" for row in rows):
        facts.append("not included in the total")
    subject = f"layer {index} of {stack.title} ({'; '.join(facts)})"
    others = [f"{other.title}.{other.indices}" for other in stacks if other is not stack]
    notes = [f"other stacks: {'; '.join(others)}"] if others else []
    explanation = make_explanation(model, walk, list_components(rows, walk), rows, notes=notes)
    return replace(explanation, of="layer", subject=subject)


def list_stacks(walk: PieceWalk) -> list[LayerStack]:
    """The stacks of a model, decoder first, without those that reuse the weights of another."""
    rows = [row for row in walk.rows if row.tied_to is None and walk.has_layers(row)]
    stacks = []
    for name, repeats in find_kinds(rows, walk).items():
        runs = tuple(tuple((walk.evaluate(first), walk.evaluate(n)) for first, n in repeat.runs) for repeat in repeats)
        parts = [row.part for row in rows if row.stack == name]
        stacks.append(LayerStack(name, "decoder" if "decoder" in parts else parts[0], repeats, runs))
    return sorted(stacks, key=lambda stack: stack.part != "decoder")


def find_layer(model: Model, stacks: Sequence[LayerStack], layer: int | str) -> tuple[LayerStack, int, int]:
    """The stack, the index and the kind of a layer such as "3" or "model.encoder.layers.3".

    Raises: ParamcountError if there is no such stack or no layer with this index.
    """
    if not stacks:
        raise ParamcountError("has no layers", where=model.id)
    valid = " or ".join(f"{'' if i == 0 else stack.title + '.'}{stack.indices}" for i, stack in enumerate(stacks))
    missing = f"layer {make_printable(layer, 60)} does not exist"
    stack, number = stacks[0], str(layer)
    if "." in number:
        name, _, number = number[:LONGEST].rpartition(".")
        by_title = {stack.title: stack for stack in stacks}
        if name not in by_title:
            raise ParamcountError(missing, where=model.id, expected=valid, nearest=find_nearest(name, by_title))
        stack = by_title[name]
    index = int(number) if number.isdecimal() and number.isascii() and len(number) < 10 else None
    kind = None if index is None else stack.find_kind(index)
    if index is None or kind is None:
        raise ParamcountError(missing, where=model.id, expected=valid)
    return stack, index, kind


def format_runs(runs: Iterable[Run]) -> str:
    """Layer indices as text.

    >>> format_runs([(0, 3), (3, 1), (8, 2)])
    '0–3, 8–9'
    """
    ranges = format_ranges(join_ranges(runs))
    if len(ranges) > MOST_RANGES:
        ranges = [*ranges[: MOST_RANGES - 1], "…", ranges[-1]]
    return ", ".join(ranges)
