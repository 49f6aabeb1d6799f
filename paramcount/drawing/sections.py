"""Splits a trace into sections, one per kind of layer and one between stacks, and sections into bands."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from math import prod
from typing import NamedTuple

from paramcount.drawing.items import Item, list_items
from paramcount.drawing.matrices import make_output
from paramcount.errors import ParamcountError
from paramcount.output.layer_kinds import describe_kind
from paramcount.output.ranges import format_ranges, join_ranges
from paramcount.tracing.trace import Scope, Shape, Step, Trace

MAX_RUNS = 5  # runs of layer indices in a heading
PARTS = {"vision": "vision encoder", "audio": "audio encoder", "cross_attention": "cross-attention"}


class Section(NamedTuple):
    """The steps of one kind of layer, or between two stacks of layers."""

    part: str
    layers: tuple[Scope, ...]  # one for each nested stack
    indices: tuple[int, ...]  # of the steps that are drawn
    covers: tuple[range, ...]  # all steps that it represents
    times: int  # number of equal layers
    kinds: tuple[str, ...]
    runs: tuple[tuple[int, int], ...]

    @property
    def ends(self) -> tuple[int, ...]:
        """The last step of each kind of layer that the section represents."""
        return tuple(covered[-1] for covered in self.covers)


def list_sections(trace: Trace) -> list[Section]:
    """The sections of a trace in order. Kinds of layers with equal steps share a section."""
    found: list[Section] = []
    alike: dict[Hashable, int] = {}
    for _, group in groupby(range(len(trace.steps)), key=lambda i: find_place(trace.steps[i])):
        indices = tuple(group)
        layers, part = trace.steps[indices[0]].layers, trace.steps[indices[0]].part
        covers = (range(indices[0], indices[-1] + 1),)
        if not layers:
            found.append(Section(part, (), indices, covers, 1, (), ()))
            continue
        last = layers[-1]
        times = prod(scope.copies for scope in layers)
        key = (part, layers[:-1], last.name.partition("{layer}")[0], tuple(make_signature(trace.steps, indices)))
        if key in alike:
            before = found[alike[key]]
            runs = join_ranges((*before.runs, *last.runs))
            more = before._replace(
                covers=(*before.covers, *covers),
                times=before.times + times,
                kinds=(*before.kinds, last.kind),
                runs=runs,
            )
            found[alike[key]] = more
        else:
            alike[key] = len(found)
            found.append(Section(part, layers, indices, covers, times, (last.kind,), join_ranges(last.runs)))
    return found


def find_place(step: Step) -> Hashable:
    return step.layers or step.part


def make_signature(steps: Sequence[Step], indices: Sequence[int]) -> Iterator[Hashable]:
    """What must be equal for two kinds of layers to share a section."""
    first = indices[0]
    for i in indices:
        step = steps[i]
        reads = tuple(i - j if j >= first else steps[j].out for j in step.reads)
        note = "" if step.weights and step.weights[0].tied_to else step.note
        under = tuple((u.axis, u.copies, u.active) for u in step.scopes if u.axis != "layer")
        yield (
            step.op,
            step.text,
            step.inputs,
            step.out,
            step.heads,
            note,
            reads,
            under,
            tuple((held.shape, held.component) for held in step.weights),
        )


def select_layer(found: Sequence[Section], layer: int, where: str) -> list[Section]:
    """The sections that contain the layer, in the decoder if there are several stacks.

    Raises: ParamcountError if there is no such layer.
    """
    stacks = [section for section in found if section.layers]
    own = [section for section in stacks if section.part == "decoder"] or stacks
    if not own:
        raise ParamcountError("has no layers", where=where)
    chosen = [section for section in own if any(first <= layer < first + length for first, length in section.runs)]
    if not chosen:
        last = max(first + length for section in own for first, length in section.runs) - 1
        first = min(first for section in own for first, _ in section.runs)
        raise ParamcountError(f"layer {layer:,} does not exist", where=where, expected=f"{first}–{last:,}")
    return chosen


def make_heading(section: Section, steps: Sequence[Step], parts: int, layer: int | None) -> str:
    """The heading of a section. `parts`: number of stacks in the model. `layer`: the selected layer, if any."""
    words = [name_section(section, steps, parts)] if not section.layers or parts > 1 else []
    kinds = dict.fromkeys(map(describe_kind, section.kinds))
    words += kinds if len(kinds) == 1 else []
    if section.layers and layer is None:
        words.append(describe_runs(section.runs))
    elif section.layers and section.times > 1:
        words.append(f"{section.times:,} equal layers: {describe_runs(section.runs)}")
    return " · ".join(filter(None, words))


def name_section(section: Section, steps: Sequence[Step], parts: int = 1) -> str:
    """The part of the model that a section belongs to; between stacks, its purpose."""
    name = PARTS.get(section.part, section.part.replace("_", " "))
    if section.layers or section.part not in ("decoder", "encoder"):
        return name
    ops = {steps[i].op for i in section.indices}
    held = {weight.component for i in section.indices for weight in steps[i].weights}
    purpose = "output" if "lm_head" in held or "last row" in ops else "embedding" if "lookup" in ops else ""
    if parts == 1:
        return purpose
    return f"{name} {purpose}".strip()


def describe_runs(runs: Sequence[tuple[int, int]]) -> str:
    """Runs of layers for people.

    >>> describe_runs(((0, 12),)), describe_runs(((3, 1), (7, 1))), describe_runs(((0, 1),))
    ('layers 0–11', 'layers 3, 7', 'layer 0')
    """
    texts = format_ranges(runs)
    if len(texts) > MAX_RUNS:
        texts = [*texts[: MAX_RUNS - 2], "…", texts[-1]]
    return f"layer{'s' if len(runs) > 1 or runs[0][1] > 1 else ''} {', '.join(texts)}"


def find_states(trace: Trace) -> dict[int, Shape]:
    """What the scans and delta rules of a trace carry from token to token: {step: shape}."""
    return {i: step.state[0] for i, step in enumerate(trace.steps) if step.state and step.op in ("scan", "delta rule")}


# ---- bands


def is_linked(before: tuple[Section, Sequence[Band]], after: Sequence[Band], steps: Sequence[Step]) -> bool:
    """Whether the data with which a section ends are those with which the next begins."""
    section, bands = before
    first = after[0].items[0]
    given = first.kind == "source" and bool(
        steps[first.step].reads or steps[first.step].weights
    )  # no input of the model
    return given and first.step in (bands[-1].items[-1].step, *section.ends)


def end_with_data(bands: Sequence[Band], steps: Sequence[Step]) -> list[Band]:
    """Bands the last of which ends in data that are drawn, if they were not."""
    *others, last = bands
    item = last.items[-1]
    if item.out is None and item.kind in ("words", "sign", "operation"):
        last = last._replace(items=(*last.items[:-1], item._replace(out=make_output(steps[item.step], item.step))))
    return [*others, last]


class Band(NamedTuple):
    """The items of one row of the drawing."""

    name: str
    items: tuple[Item, ...]


def list_bands(
    trace: Trace, section: Section, carried: Mapping[int, Shape], origins: Mapping[int, str], *, layers: int = 1
) -> list[Band]:
    """The bands of a section: a new one after each residual sum.

    `origins`: labels of data from other sections. `layers`: number of layers that the section represents.
    """
    items = [
        label_source(item, trace.steps, origins)._replace(layers=layers)
        for item in list_items(trace.steps, section.indices, states=carried)
    ]
    found: list[list[Item]] = [[]]
    for i, item in enumerate(items):
        found[-1].append(item)
        if (
            item.kind == "sign"
            and item.words == ("+",)
            and has_matrices(found[-1])
            and has_matrices(items[i + 1 :])
            and is_bottleneck(items, i)
        ):
            found.append([Item("source", item.step, (), make_output(trace.steps[item.step], item.step))])
    return [Band(name_band(band, trace.steps), tuple(band)) for band in found if band]


def label_source(item: Item, steps: Sequence[Step], origins: Mapping[int, str]) -> Item:
    """A source with a label: what it is or where it comes from."""
    if item.kind != "source" or item.out is None or item.reads:
        return item
    step = steps[item.step]
    label = steps[item.step].text if not step.reads and not step.weights else origins.get(item.step, "")
    return item._replace(out=item.out._replace(label=label))


def describe_origins(
    found: Sequence[Section], steps: Sequence[Step], section: Section, before: Section | None
) -> dict[int, str]:
    """{step: label} of data from other sections, except the preceding one, which has an arrow."""
    first = steps[section.indices[0]].reads[:1]
    known = before.ends if before and set(first) & set(before.ends) else ()
    parts = count_parts(found)
    return {
        i: f"from {name_origin(other, steps, section, parts)}"
        for other in found
        if other is not section
        for covered in other.covers
        for i in covered
        if i not in known
    }


def count_parts(found: Sequence[Section]) -> int:
    """The number of separate stacks in a model, such as an encoder and a decoder."""
    return len({section.part for section in found if section.layers and section.part != "cross_attention"})


def name_origin(other: Section, steps: Sequence[Step], section: Section, parts: int) -> str:
    """How another section that reads from this one calls it."""
    if other.layers and other.part == section.part:
        return "other layers" if section.layers else f"layer {sum(other.runs[-1]) - 1:,}"
    return f"the {name_section(other, steps, parts) or name_section(other, steps, 2)}"


def has_matrices(items: Sequence[Item]) -> bool:
    return any(item.kind in ("product", "experts", "lookup") or item.state for item in items)


def is_bottleneck(items: Sequence[Item], i: int) -> bool:
    """Whether all data that later items read go through this item."""
    before = {item.step for item in items[:i] if item.kind != "source"}
    first = {item.step for item in items[:i] if item.kind == "source"}
    return not any(step in before or step in first for item in items[i + 1 :] for step in item.reads)


def name_band(items: Sequence[Item], steps: Sequence[Step]) -> str:
    """The name of a band, from its operations."""
    found = []
    ops = {steps[item.step].op for item in items if item.kind != "source"}
    held = {
        weight.component.partition(".")[0]
        for item in items
        if item.kind != "source"
        for weight in steps[item.step].weights
    }
    if "QKᵀ" in ops or any(item.operand is not None for item in items):
        crossing = any(steps[item.step].part == "cross_attention" for item in items if item.operand is not None)
        found.append("cross-attention" if crossing else "attention")
    if ops & {"scan"}:
        found.append("state space model")
    if ops & {"delta rule"}:
        found.append("linear attention")
    if any(item.kind == "experts" for item in items):
        found.append("mixture of experts")
    elif "mlp" in held:
        found.append("feed-forward")
    return ", ".join(found)
