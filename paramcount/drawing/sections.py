"""Splits a trace into sections, one per kind of layer and one between stacks, and sections into bands."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from math import prod
from typing import NamedTuple

from paramcount.drawing.items import Item, list_items
from paramcount.drawing.matrices import make_output
from paramcount.errors import ParamcountError
from paramcount.flow.operation import Form
from paramcount.output.layer_kinds import describe_kind
from paramcount.output.ranges import format_ranges, join_ranges
from paramcount.output.weight_names import name_part
from paramcount.tracing.trace import Scope, Shape, Step, Trace

MAX_RUNS = 5  # runs of layer indices in a heading
RECURRENCES = {Form.STATE_SPACE: "state space model", Form.LINEAR_ATTENTION: "linear attention"}


class DrawnSection(NamedTuple):
    """The steps of one kind of layer, or between two stacks of layers."""

    part: str
    layers: tuple[Scope, ...]  # one for each nested stack
    indices: tuple[int, ...]  # of the steps that are drawn
    covers: tuple[range, ...]  # all steps that the section represents
    times: int  # number of equal layers
    kinds: tuple[str, ...]
    runs: tuple[tuple[int, int], ...]
    bands: tuple[SectionBand, ...] = ()  # its rows, since it is drawn

    @property
    def ends(self) -> tuple[int, ...]:
        """The last step of each kind of layer that the section represents."""
        return tuple(covered[-1] for covered in self.covers)


def list_sections(trace: Trace) -> list[DrawnSection]:
    """The sections of a trace in order. Kinds of layers with equal steps share a section."""
    sections: dict[Hashable, DrawnSection] = {}  # by what layers of one section have in common
    for _, group in groupby(range(len(trace.steps)), key=lambda i: trace.steps[i].layers or trace.steps[i].part):
        indices = tuple(group)
        layers, part = trace.steps[indices[0]].layers, trace.steps[indices[0]].part
        covers = (range(indices[0], indices[-1] + 1),)
        if not layers:
            sections[indices] = DrawnSection(part, (), indices, covers, 1, (), ())
            continue
        last = layers[-1]
        key = (part, layers[:-1], last.name.partition("{layer}")[0], tuple(make_signature(trace.steps, indices)))
        before = sections.get(key, DrawnSection(part, layers, indices, (), 0, (), ()))
        sections[key] = before._replace(
            covers=(*before.covers, *covers),
            times=before.times + prod(scope.copies for scope in layers),
            kinds=(*before.kinds, last.kind),
            runs=join_ranges((*before.runs, *last.runs)),
        )
    return list(sections.values())


def make_signature(steps: Sequence[Step], indices: Sequence[int]) -> Iterator[Hashable]:
    """The properties of each step that are equal if two kinds of layers share a section."""
    first = indices[0]
    for i in indices:
        step = steps[i]
        reads = tuple(i - j if j >= first else steps[j].out for j in step.reads)
        note = "" if step.weights and step.weights[0].tied_to else step.note
        scopes = tuple((scope.axis, scope.copies, scope.active) for scope in step.scopes if scope.axis != "layer")
        weights = tuple((weight.shape, weight.component) for weight in step.weights)
        yield step.op, step.text, step.inputs, step.out, step.heads, note, reads, scopes, weights


def select_layer(sections: Sequence[DrawnSection], layer: int, where: str) -> list[DrawnSection]:
    """The sections that contain the layer, in the decoder if there are several stacks.

    Raises: ParamcountError if there is no such layer.
    """
    candidates = list_layer_kinds(sections, where)
    runs = {section: [range(first, first + length) for first, length in section.runs] for section in candidates}
    selected = [section for section in candidates if any(layer in run for run in runs[section])]
    if not selected:
        indices = [index for run in chain.from_iterable(runs.values()) for index in (run[0], run[-1])]
        expected = f"{min(indices)}–{max(indices):,}"
        raise ParamcountError(f"layer {layer:,} does not exist", where=where, expected=expected)
    return selected


def choose_layer(sections: Sequence[DrawnSection], where: str) -> int:
    """The first layer of the most common kind. Raises: ParamcountError if there are no layers."""
    most_common = max(list_layer_kinds(sections, where), key=lambda section: section.times)
    return most_common.runs[0][0]


def list_layer_kinds(sections: Sequence[DrawnSection], where: str) -> list[DrawnSection]:
    """The sections that are layers, of the decoder if there are several stacks.

    Raises: ParamcountError if there are none.
    """
    stacks = [section for section in sections if section.layers]
    candidates = [section for section in stacks if section.part == "decoder"] or stacks
    if not candidates:
        raise ParamcountError("has no layers", where=where)
    return candidates


def make_heading(section: DrawnSection, steps: Sequence[Step], parts: int, layer: int | None) -> str:
    """The heading of a section. `parts`: number of stacks in the model. `layer`: the selected layer, if any."""
    phrases = [name_section(section, steps, parts)] if not section.layers or parts > 1 else []
    kinds = dict.fromkeys(map(describe_kind, section.kinds))
    kind = f"{next(iter(kinds))} ".lstrip() if len(kinds) == 1 else ""
    if section.layers and layer is None:
        phrases.append(kind + describe_runs(section.runs))
    elif section.layers and section.times > 1:
        phrases.append(f"{section.times:,} identical {kind}layers: {describe_runs(section.runs)}")
    elif kind:
        phrases.append(f"{kind}layer")
    return " · ".join(filter(None, phrases))


def name_section(section: DrawnSection, steps: Sequence[Step], parts: int = 1) -> str:
    """The part of the model that a section belongs to; between stacks, its purpose."""
    name = name_part(section.part)
    if section.layers or section.part not in ("decoder", "encoder"):
        return name
    forms = {steps[i].form for i in section.indices}
    components = {weight.component for i in section.indices for weight in steps[i].weights}
    purpose = ""
    if "lm_head" in components or Form.LAST_POSITION in forms:
        purpose = "output"
    elif Form.LOOKUP in forms:
        purpose = "embedding"
    if parts == 1:
        return purpose
    return f"{name} {purpose}".strip()


def describe_runs(runs: Sequence[tuple[int, int]]) -> str:
    """Runs of layers as text.

    >>> describe_runs(((0, 12),)), describe_runs(((3, 1), (7, 1))), describe_runs(((0, 1),))
    ('layers 0–11', 'layers 3, 7', 'layer 0')
    """
    texts = format_ranges(runs)
    if len(texts) > MAX_RUNS:
        texts = [*texts[: MAX_RUNS - 2], "…", texts[-1]]
    return f"layer{'s' if len(runs) > 1 or runs[0][1] > 1 else ''} {', '.join(texts)}"


def find_states(trace: Trace) -> dict[int, Shape]:
    """The recurrent states of the scans and delta rules in a trace: {step: shape}."""
    return {i: step.state[0] for i, step in enumerate(trace.steps) if step.state and step.form in RECURRENCES}


# ---- bands


def is_linked(previous: DrawnSection, section: DrawnSection, steps: Sequence[Step]) -> bool:
    """Whether a section begins with the data at the end of the previous section."""
    first = section.bands[0].items[0]
    is_model_input = not steps[first.step].reads and not steps[first.step].weights
    if first.kind != "source" or is_model_input:
        return False
    return first.step in (previous.bands[-1].items[-1].step, *previous.ends)


def end_with_data(section: DrawnSection, steps: Sequence[Step]) -> DrawnSection:
    *others, last = section.bands
    *items, item = last.items
    if item.out is None and item.kind in ("words", "sign", "operation"):
        item = item._replace(out=make_output(steps[item.step], item.step))
    return section._replace(bands=(*others, last._replace(items=(*items, item))))


class SectionBand(NamedTuple):
    """The items of one row of the drawing."""

    name: str
    items: tuple[Item, ...]


def list_bands(
    trace: Trace, section: DrawnSection, states: Mapping[int, Shape], origins: Mapping[int, str], *, layers: int = 1
) -> list[SectionBand]:
    """The bands of a section. Each residual sum ends a band. `origins`: labels of data from other sections. `layers`:
    number of layers that the section represents."""
    items = [
        label_source(item, trace.steps, origins)._replace(layers=layers)
        for item in list_items(trace.steps, section.indices, states=states)
    ]
    bands: list[list[Item]] = [[]]
    for i, item in enumerate(items):
        bands[-1].append(item)
        is_sum = item.kind == "sign" and item.words == ("+",)
        has_both_sides = has_matrices(bands[-1]) and has_matrices(items[i + 1 :])
        earlier = {item.step for item in items[:i]}
        is_bottleneck = earlier.isdisjoint(step for item in items[i + 1 :] for step in item.reads)
        if is_sum and has_both_sides and is_bottleneck:
            bands.append([Item("source", item.step, (), make_output(trace.steps[item.step], item.step))])
    return [SectionBand(name_band(band, trace.steps), tuple(band)) for band in bands if band]


def label_source(item: Item, steps: Sequence[Step], origins: Mapping[int, str]) -> Item:
    if item.kind != "source" or item.out is None or item.reads:
        return item
    step = steps[item.step]
    label = step.text if not step.reads and not step.weights else origins.get(item.step, "")
    return item._replace(out=item.out._replace(label=label))


def describe_origins(
    sections: Sequence[DrawnSection], steps: Sequence[Step], section: DrawnSection, previous: DrawnSection | None
) -> dict[int, str]:
    """{step: label} of data from other sections, except from the previous one if an arrow comes from it."""
    first = steps[section.indices[0]].reads[:1]
    has_arrow = previous is not None and bool(set(first) & set(previous.ends))
    arrow_starts = previous.ends if previous and has_arrow else ()
    parts = count_parts(sections)
    labels: dict[int, str] = {}
    for other in sections:
        if other is not section:
            label = f"from {name_origin(other, steps, section, parts)}"
            labels |= dict.fromkeys(chain.from_iterable(other.covers), label)
    return {step: label for step, label in labels.items() if step not in arrow_starts}


def count_parts(sections: Sequence[DrawnSection]) -> int:
    """The number of separate stacks in a model, such as an encoder and a decoder."""
    return len({section.part for section in sections if section.layers and section.part != "cross_attention"})


def name_origin(other: DrawnSection, steps: Sequence[Step], section: DrawnSection, parts: int) -> str:
    """The name of a section in the labels of `section`, which reads from it."""
    if other.layers and other.part == section.part:
        return "other layers" if section.layers else f"layer {sum(other.runs[-1]) - 1:,}"
    return f"the {name_section(other, steps, parts) or name_section(other, steps, 2)}"


def has_matrices(items: Sequence[Item]) -> bool:
    return any(item.kind in ("product", "experts", "lookup") or item.state for item in items)


def name_band(items: Sequence[Item], steps: Sequence[Step]) -> str:
    drawn_steps = [steps[item.step] for item in items if item.kind != "source"]
    forms = {step.form for step in drawn_steps}
    components = {weight.component.partition(".")[0] for step in drawn_steps for weight in step.weights}
    attentions = [steps[item.step] for item in items if item.operand is not None]
    names = []
    if Form.SCORES in forms or attentions:
        is_cross = any(step.part == "cross_attention" for step in attentions)
        names.append("cross-attention" if is_cross else "attention")
    names += [name for form, name in RECURRENCES.items() if form in forms]
    if any(item.kind == "experts" for item in items):
        names.append("mixture of experts")
    elif "mlp" in components:
        names.append("feed-forward")
    return ", ".join(names)
