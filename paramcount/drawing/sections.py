"""A trace in sections, one for each kind of layer and one for what stands between the stacks; a section in bands, one below another."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from paramcount.drawing.items import Flow, Item, flow, of_data
from paramcount.errors import ParamcountError
from paramcount.tracing.traces import Shape, Step, Trace, Under

CARRYING = ("convolve", "scan", "delta rule", "token before")  # operations that keep a state
SPAN = 5  # so many runs of layers are written out
HEADINGS = {"decoder": "", "cross_attention": ""}


class Section(NamedTuple):
    """Steps that stand under the same layers, or between stacks."""

    part: str
    layers: tuple[Under, ...]  # one for each nested stack
    indices: tuple[int, ...]
    times: int  # how many layers are like this
    kinds: tuple[str, ...]
    runs: tuple[tuple[int, int], ...]


def sections(trace: Trace) -> list[Section]:
    """The sections of a trace in order. Kinds of layers of one stack that are the same in all but their names are one."""
    found: list[Section] = []
    alike: dict[Hashable, int] = {}
    for key, group in groupby(range(len(trace.steps)), key=lambda i: place(trace.steps[i])):
        indices = tuple(group)
        layers = trace.steps[indices[0]].layers
        part = trace.steps[indices[0]].part
        if not layers:
            found.append(Section(part, (), indices, 1, (), ()))
            continue
        last = layers[-1]
        times = 1
        for under in layers:
            times *= under.copies
        sign = (part, layers[:-1], last.name.partition("{layer}")[0] if layers[:-1] else part, tuple(signature(trace.steps, indices)))
        if sign in alike:
            before = found[alike[sign]]
            found[alike[sign]] = before._replace(times=before.times + times, kinds=(*before.kinds, last.kind), runs=tuple(sorted((*before.runs, *last.runs))))
        else:
            alike[sign] = len(found)
            found.append(Section(part, layers, indices, times, (last.kind,), last.runs))
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
        under = tuple((u.axis, u.copies, u.active) for u in step.under if u.axis != "layer")
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
        raise ParamcountError(f"= {layer:,}", where="layer", accepted=f"from {first} to {last:,}")
    return chosen


def heading(section: Section, parts: int) -> str:
    """What a section is, for people. `parts`: how many parts the model has."""
    words = []
    if section.part not in HEADINGS or (parts > 1 and section.layers):
        words.append(section.part.replace("_", " "))
    kinds = [kind.replace("_", " ") for kind in dict.fromkeys(section.kinds) if kind not in ("layer", "")]
    if kinds:
        words.append(kinds[0] if len(kinds) == 1 else f"{kinds[0]}, … {kinds[-1]}")
    if section.layers:
        words.append(spans(section.runs))
    return " · ".join(words)


def spans(runs: Sequence[tuple[int, int]]) -> str:
    """Runs of layers for people.

    >>> spans(((0, 12),)), spans(((3, 1), (7, 1))), spans(((0, 1),))
    ('layers 0–11', 'layers 3, 7', 'layer 0')
    """
    texts = [f"{first}" if length == 1 else f"{first}–{first + length - 1}" for first, length in runs]
    if len(texts) > SPAN:
        texts = [*texts[: SPAN - 2], "…", texts[-1]]
    return f"layer{'s' if len(runs) > 1 or runs[0][1] > 1 else ''} {', '.join(texts)}"


def states(trace: Trace) -> dict[int, Shape]:
    """What the scans and delta rules of a trace carry from token to token: {step: shape}."""
    carrying = [i for i, step in enumerate(trace.steps) if step.op in CARRYING]
    kept = [kept for kept in trace.cache if kept.what in ("state", "last inputs")]
    if len(carrying) != len(kept):
        return {}
    return {i: kept.shapes[0] for i, kept in zip(carrying, kept) if trace.steps[i].op in ("scan", "delta rule")}


# ---- bands


class Band(NamedTuple):
    """What stands in one row of the picture."""

    name: str
    items: tuple[Item, ...]


def bands(trace: Trace, section: Section, carried: Mapping[int, Shape]) -> list[Band]:
    """A section in rows: a new one behind each sum through which everything goes."""
    whole: Flow = flow(trace.steps, section.indices, states=carried)
    part = section.part
    items = [named_source(item, trace.steps, part) for item in whole.items]
    found: list[list[Item]] = [[]]
    for i, item in enumerate(items):
        found[-1].append(item)
        if item.kind == "sign" and item.words == ("+",) and heavy(found[-1]) and heavy(items[i + 1 :]) and only_gate(items, i):
            step = trace.steps[item.step]
            found.append([Item("source", item.step, (), of_data(step.out, item.step))])
    return [Band(name_of(band, trace.steps), tuple(band)) for band in found]


def named_source(item: Item, steps: Sequence[Step], part: str) -> Item:
    if item.kind != "source" or item.out is None:
        return item
    step = steps[item.step]
    if not step.reads:
        return item._replace(out=item.out._replace(label=step.text))
    other = step.part if step.part not in (part, "cross_attention") else ""
    return item._replace(out=item.out._replace(label=f"from the {other.replace('_', ' ')}")) if other and other != "decoder" else item


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
