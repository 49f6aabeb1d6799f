"""One layer of one stack, opened by its index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from paramcount.errors import LONGEST, ParamcountError, find_nearest, make_printable
from paramcount.explaining.build import explanation
from paramcount.explaining.explanation import Explanation
from paramcount.explaining.pieces import Walk
from paramcount.flow import Repeat
from paramcount.output.ranges import format_ranges, join_ranges
from paramcount.zoo import Model

Run = tuple[int, int]  # the first layer, and how many


class Stack(NamedTuple):
    """Layers under one name of the checkpoint."""

    name: str  # "model.layers."
    part: str
    kinds: tuple[Repeat, ...]
    runs: tuple[tuple[Run, ...], ...]  # of each kind

    @property
    def title(self) -> str:
        return self.name.rstrip(".") or "the layers"

    @property
    def indices(self) -> str:
        return ranges(run for runs in self.runs for run in runs)

    def kind_at(self, index: int) -> int | None:
        """Which of the kinds the layer of this index is of."""
        return next((i for i, runs in enumerate(self.runs) if any(first <= index < first + n for first, n in runs)), None)

    def about(self, i: int) -> str:
        """In words what a kind is called, and which layers are of it."""
        kind = self.kinds[i].kind
        words = " ".join(str(word) for word in (kind if isinstance(kind, tuple) else (kind,)) if isinstance(word, str) and word != "layer")
        alike = f"like {ranges(self.runs[i])}" if sum(n for _, n in self.runs[i]) > 1 else "the only one of its kind"
        return make_printable(f"{words}, {alike}" if words else alike, 100)


def one_layer(model: Model, found: Walk, layer: int | str) -> Explanation:
    """The explanation of one layer."""
    among = stacks(found)
    stack, index, i = chosen(model, among, layer)
    kind = stack.kinds[i]
    pieces = [piece._replace(stack="", layer=None) for piece in found.pieces if piece.layer == kind and piece.stack == stack.name and piece.role == "parameter"]
    beside = " (in no total)" if all(piece.part == "mtp" for piece in pieces) else ""
    subject = f"layer {index} of {stack.title}{beside}: {stack.about(i)}"
    return explanation(model, found, pieces, {}, of="layer", subject=subject, remarks=others(among, stack))


def others(among: Sequence[Stack], stack: Stack) -> list[str]:
    """How the layers of the other stacks are asked for."""
    named = [f"{other.title}.{first_of(other)} (of {other.indices})" for other in among if other is not stack]
    return [f"other stacks: --layer {' or '.join(named)}"] if named else []


def first_of(stack: Stack) -> int:
    return min(first for runs in stack.runs for first, _ in runs)


def stacks(found: Walk) -> list[Stack]:
    """The stacks of a model, the decoder's first."""
    kinds: dict[str, dict[Repeat, None]] = {}
    parts: dict[str, list[str]] = {}
    for piece in found.pieces:
        if piece.layer and found.at(piece.layers):
            kinds.setdefault(piece.stack, {})[piece.layer] = None
            parts.setdefault(piece.stack, []).append(piece.part)
    made = []
    for name, repeats in kinds.items():
        runs = tuple(tuple((found.at(first), found.at(n)) for first, n in repeat.runs) for repeat in repeats)
        part = "decoder" if "decoder" in parts[name] else parts[name][0]
        made.append(Stack(name, part, tuple(repeats), runs))
    return sorted(made, key=lambda stack: stack.part != "decoder")


def chosen(model: Model, among: Sequence[Stack], layer: int | str) -> tuple[Stack, int, int]:
    """(the stack, the index, which of its kinds) that a layer's name means.

    Raises: ParamcountError where there is no such stack, or no layer of this index in it.
    """
    if not among:
        raise ParamcountError("has no layers", where=model.id)
    expected = " or ".join(f"{'' if i == 0 else stack.title + '.'}{stack.indices}" for i, stack in enumerate(among))
    stack, number = among[0], str(layer)
    if "." in number:
        name, _, number = number[:LONGEST].rpartition(".")
        named = {stack.title: stack for stack in among}
        if name not in named:
            raise ParamcountError(f"= {make_printable(layer, 60)}", where="layer", expected=expected, nearest=find_nearest(name, named))
        stack = named[name]
    index = int(number) if number.isdecimal() and number.isascii() and len(number) < 10 else None
    kind = None if index is None else stack.kind_at(index)
    if index is None or kind is None:
        raise ParamcountError(f"= {make_printable(layer, 60)}", where="layer", expected=expected)
    return stack, index, kind


def ranges(runs: Iterable[Run]) -> str:
    """Runs of indices as people write them.

    >>> ranges([(0, 3), (3, 1), (8, 2)])
    '0–3, 8–9'
    """
    texts = format_ranges(join_ranges(runs))
    return ", ".join(texts if len(texts) <= MOST_RANGES else [*texts[: MOST_RANGES - 1], "…", texts[-1]])


MOST_RANGES = 12
