"""A trace in sections, one for each kind of layer and one for what stands between the stacks; a section in bands, one below another."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from math import prod
from typing import NamedTuple

from paramcount.drawing.items import Item, flow
from paramcount.drawing.matrices import of_output
from paramcount.errors import ParamcountError
from paramcount.output.ranges import format_ranges, join_ranges
from paramcount.tracing.trace import Scope, Shape, Step, Trace

SPAN = 5  # so many runs of layers are written out
PARTS = {"vision": "vision encoder", "audio": "audio encoder", "cross_attention": "cross-attention"}
SILENT = ("layer", "first", "", "True", "False", "None")  # words of kinds that say nothing by themselves


class Section(NamedTuple):
    """Steps that stand under the same layers, or between stacks."""

    part: str
    layers: tuple[Scope, ...]  # one for each nested stack
    indices: tuple[int, ...]  # of the steps that are drawn
    covers: tuple[range, ...]  # all steps that it stands for
    times: int  # how many layers are like this
    kinds: tuple[str, ...]
    runs: tuple[tuple[int, int], ...]

    @property
    def ends(self) -> tuple[int, ...]:
        """The steps with which it ends: one for each kind of layer that is drawn here."""
        return tuple(covered[-1] for covered in self.covers)


def sections(trace: Trace) -> list[Section]:
    """The sections of a trace in order. Kinds of layers of one stack that are the same in all but their names are one."""
    found: list[Section] = []
    alike: dict[Hashable, int] = {}
    for _, group in groupby(range(len(trace.steps)), key=lambda i: place(trace.steps[i])):
        indices = tuple(group)
        layers, part = trace.steps[indices[0]].layers, trace.steps[indices[0]].part
        covers = (range(indices[0], indices[-1] + 1),)
        if not layers:
            found.append(Section(part, (), indices, covers, 1, (), ()))
            continue
        last = layers[-1]
        times = prod(scope.copies for scope in layers)
        key = (part, layers[:-1], last.name.partition("{layer}")[0], tuple(signature(trace.steps, indices)))
        if key in alike:
            before = found[alike[key]]
            runs = join_ranges((*before.runs, *last.runs))
            more = before._replace(covers=(*before.covers, *covers), times=before.times + times, kinds=(*before.kinds, last.kind), runs=runs)
            found[alike[key]] = more
        else:
            alike[key] = len(found)
            found.append(Section(part, layers, indices, covers, times, (last.kind,), join_ranges(last.runs)))
    return found


def place(step: Step) -> Hashable:
    return step.layers or step.part


def signature(steps: Sequence[Step], indices: Sequence[int]) -> Iterator[Hashable]:
    """What two kinds of layers must share to be drawn as one."""
    first = indices[0]
    for i in indices:
        step = steps[i]
        reads = tuple(i - j if j >= first else steps[j].out for j in step.reads)
        note = "" if step.weights and step.weights[0].tied_to else step.note
        under = tuple((u.axis, u.copies, u.active) for u in step.scopes if u.axis != "layer")
        yield step.op, step.text, step.inputs, step.out, step.heads, note, reads, under, tuple((held.shape, held.component) for held in step.weights)


def of_layer(found: Sequence[Section], layer: int, where: str) -> list[Section]:
    """The sections that layer stands in: of the decoder, where a model has several stacks.

    Raises: ParamcountError where there is no such layer, with those there are.
    """
    stacks = [section for section in found if section.layers]
    own = [section for section in stacks if section.part == "decoder"] or stacks
    if not own:
        raise ParamcountError("has no layers", where=where)
    chosen = [section for section in own if any(first <= layer < first + length for first, length in section.runs)]
    if not chosen:
        last = max(first + length for section in own for first, length in section.runs) - 1
        first = min(first for section in own for first, _ in section.runs)
        raise ParamcountError(f"= {layer:,}", where="layer", expected=f"from {first} to {last:,}")
    return chosen


def heading(section: Section, steps: Sequence[Step], parts: int, layer: int | None) -> str:
    """What a section is, for people. `parts`: how many parts the model has. `layer`: the one that it is drawn for."""
    words = [called(section, steps, parts)] if not section.layers or parts > 1 else []
    kinds = dict.fromkeys(" ".join(word for word in kind.replace("_", " ").split(" ") if word not in SILENT) for kind in section.kinds)
    words += kinds if len(kinds) == 1 else []
    if section.layers and layer is None:
        words.append(spans(section.runs))
    elif section.layers and section.times > 1:
        words.append(f"one of {section.times:,} alike: {spans(section.runs)}")
    return " · ".join(filter(None, words))


def called(section: Section, steps: Sequence[Step], parts: int = 1) -> str:
    """The part of the model that a section is in; of what stands between layers, what it is there for."""
    name = PARTS.get(section.part, section.part.replace("_", " "))
    if section.layers or section.part not in ("decoder", "encoder"):
        return name
    ops = {steps[i].op for i in section.indices}
    held = {weight.component for i in section.indices for weight in steps[i].weights}
    purpose = "output" if "lm_head" in held or "last row" in ops else "embedding" if "lookup" in ops else ""
    if parts == 1:
        return purpose
    return f"{name} {purpose}".strip()


def spans(runs: Sequence[tuple[int, int]]) -> str:
    """Runs of layers for people.

    >>> spans(((0, 12),)), spans(((3, 1), (7, 1))), spans(((0, 1),))
    ('layers 0–11', 'layers 3, 7', 'layer 0')
    """
    texts = format_ranges(runs)
    if len(texts) > SPAN:
        texts = [*texts[: SPAN - 2], "…", texts[-1]]
    return f"layer{'s' if len(runs) > 1 or runs[0][1] > 1 else ''} {', '.join(texts)}"


def states(trace: Trace) -> dict[int, Shape]:
    """What the scans and delta rules of a trace carry from token to token: {step: shape}."""
    return {i: step.state[0] for i, step in enumerate(trace.steps) if step.state and step.op in ("scan", "delta rule")}


# ---- bands


def is_linked(before: tuple[Section, Sequence[Band]], after: Sequence[Band], steps: Sequence[Step]) -> bool:
    """Whether the data with which a section ends are those with which the next begins."""
    section, bands = before
    first = after[0].items[0]
    given = first.kind == "source" and bool(steps[first.step].reads or steps[first.step].weights)  # no input of the model
    return given and first.step in (bands[-1].items[-1].step, *section.ends)


def end_in_data(bands: Sequence[Band], steps: Sequence[Step]) -> list[Band]:
    """Bands the last of which ends in data that are drawn, if they were not."""
    *others, last = bands
    item = last.items[-1]
    if item.out is None and item.kind in ("words", "sign", "operation"):
        last = last._replace(items=(*last.items[:-1], item._replace(out=of_output(steps[item.step], item.step))))
    return [*others, last]


class Band(NamedTuple):
    """What stands in one row of the picture."""

    name: str
    items: tuple[Item, ...]


def bands(trace: Trace, section: Section, carried: Mapping[int, Shape], origins: Mapping[int, str], *, layers: int = 1) -> list[Band]:
    """A section in rows: a new one after each sum through which everything goes.

    `origins`: where steps outside come from, in words. `layers`: how many are drawn as this one.
    """
    items = [with_origin(item, trace.steps, origins)._replace(layers=layers) for item in flow(trace.steps, section.indices, states=carried)]
    found: list[list[Item]] = [[]]
    for i, item in enumerate(items):
        found[-1].append(item)
        if item.kind == "sign" and item.words == ("+",) and heavy(found[-1]) and heavy(items[i + 1 :]) and only_gate(items, i):
            found.append([Item("source", item.step, (), of_output(trace.steps[item.step], item.step))])
    return [Band(name_of(band, trace.steps), tuple(band)) for band in found if band]


def with_origin(item: Item, steps: Sequence[Step], origins: Mapping[int, str]) -> Item:
    """A source with what it is or where it comes from."""
    if item.kind != "source" or item.out is None or item.reads:
        return item
    step = steps[item.step]
    label = steps[item.step].text if not step.reads and not step.weights else origins.get(item.step, "")
    return item._replace(out=item.out._replace(label=label))


def origins(found: Sequence[Section], steps: Sequence[Step], section: Section, before: Section | None) -> dict[int, str]:
    """Where the data come from that a section reads from outside; nothing of those that an arrow brings from the section `before`."""
    first = steps[section.indices[0]].reads[:1]
    known = before.ends if before and set(first) & set(before.ends) else ()
    parts = count_parts(found)
    return {
        i: f"from {origin(other, steps, section, parts)}"
        for other in found
        if other is not section
        for covered in other.covers
        for i in covered
        if i not in known
    }


def count_parts(found: Sequence[Section]) -> int:
    """How many stacks of layers a model has that are parts of their own, such as an encoder beside a decoder."""
    return len({section.part for section in found if section.layers and section.part != "cross_attention"})


def origin(other: Section, steps: Sequence[Step], section: Section, parts: int) -> str:
    """What a section is called in another that reads from it: after a stack, its last layer."""
    if other.layers and other.part == section.part:
        return "other layers" if section.layers else f"layer {sum(other.runs[-1]) - 1:,}"
    return f"the {called(other, steps, parts) or called(other, steps, 2)}"


def heavy(items: Sequence[Item]) -> bool:
    return any(item.kind in ("product", "experts", "lookup") or item.state for item in items)


def only_gate(items: Sequence[Item], i: int) -> bool:
    """Whether nothing behind an item reads anything before it."""
    before = {item.step for item in items[:i] if item.kind != "source"}
    first = {item.step for item in items[:i] if item.kind == "source"}
    return not any(step in before or step in first for item in items[i + 1 :] for step in item.reads)


def name_of(items: Sequence[Item], steps: Sequence[Step]) -> str:
    """What a band does, by what stands in it."""
    found = []
    ops = {steps[item.step].op for item in items if item.kind != "source"}
    held = {weight.component.partition(".")[0] for item in items if item.kind != "source" for weight in steps[item.step].weights}
    if "QKᵀ" in ops or any(item.operand is not None for item in items):
        crossing = any(steps[item.step].part == "cross_attention" for item in items if item.operand is not None)
        found.append("cross-attention" if crossing else "attention")
    if ops & {"scan"}:
        found.append("state space")
    if ops & {"delta rule"}:
        found.append("linear attention")
    if any(item.kind == "experts" for item in items):
        found.append("mixture of experts")
    elif "mlp" in held:
        found.append("feed-forward")
    return ", ".join(found)
