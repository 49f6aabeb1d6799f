"""A trace as text: one line for each operation, layers folded or one after the other, and as a table in every format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import prod

from paramcount.counting.count import SCHEMA_VERSION
from paramcount.errors import ParamcountError, make_printable
from paramcount.output.numbers import format_bytes
from paramcount.output.ranges import format_ranges
from paramcount.output.tables import Column, Table
from paramcount.tracing.trace import ROUTED, Kept, Product, Shape, Step, Trace, Under

MOST_STEPS = 100_000  # where layers are written one by one
BYTES = 2  # of an element in BF16
RECURRENT = {"state": "recurrent state", "last inputs": "convolution state"}


def written(shape: Shape, marked: int | None = None) -> str:
    """A shape in brackets, one axis of it marked.

    >>> written((1024, 768)), written((1024, 768), -1)
    ('[1024, 768]', '[1024, ‹768›]')
    """
    axes = [make_printable(n, 40) for n in shape]
    if marked is not None:
        axes[marked] = f"‹{axes[marked]}›"
    return f"[{', '.join(axes)}]"


def multiplied(product: Product) -> str:
    """A product with the two widths that must be equal marked alike.

    >>> multiplied(Product((5, 768), (768, 64), (5, 64)))
    '[5, ‹768›] · [‹768›, 64] = [5, 64]'
    """
    return f"{written(product.left, -1)} · {written(product.right, 0)} = {written(product.out)}"


def told(step: Step) -> str:
    """What a step does, in shapes."""
    if step.product:
        how = multiplied(step.product)
        if step.heads > 1:
            *rows, width = step.product.out
            side_by_side = (*rows, step.heads * width) if isinstance(width, int) else step.out
            how = f"{step.heads} × {how} → {written(step.out if step.op == 'QKᵀ' else side_by_side)}"
    elif step.op == "lookup":
        how = f"{written(step.inputs[0])} in {written(step.weights[0].shape)} → {written(step.out)}"
    elif step.inputs and step.inputs[0] != step.out:
        how = f"{' and '.join(written(shape) for shape in dict.fromkeys(step.inputs))} → {written(step.out)}"
    else:
        how = written(step.out)
    return f"{how}; {step.note}" if step.note else how


def heading(under: Under) -> tuple[str, str]:
    """What stands above the steps of a repeat: (how often, where)."""
    if under.axis == "expert":
        return f"{under.active:,} of {under.copies:,} experts", f"{under.name}; {ROUTED}: the tokens that the router sends to it"
    kind = under.kind or "layer"
    runs = ", ".join(format_ranges(under.runs[:6])) + (", …" if len(under.runs) > 6 else "")
    return f"{under.copies:,} × {make_printable(kind, 60)}" if under.copies > 1 else make_printable(kind, 60), f"{under.name}   {runs}"


def rows(steps: Sequence[Step]) -> Iterator[tuple[str, str, Step | None]]:
    """(step, how, the step itself): one row for each step, a heading without one where a stack or an expert begins."""
    standing: tuple[Under, ...] = ()
    for step in steps:
        for depth, under in enumerate(step.under):
            if standing[depth : depth + 1] != (under,):
                what, where = heading(under)
                yield "  " * depth + what, where, None
                standing = (*step.under[:depth], under)
        standing = step.under
        yield "  " * len(step.under) + step.text, told(step), step


def unfolded(steps: Iterable[Step], depth: int = 0) -> Iterator[Step]:
    """The same with every layer by itself, in the order they run."""
    for stack, inside in groupby(steps, key=lambda step: step.layers[depth].name if len(step.layers) > depth else None):
        if stack is None:
            yield from inside
            continue
        kinds = {under: list(body) for under, body in groupby(inside, key=lambda step: step.layers[depth])}
        indices = sorted((first + i, under) for under in kinds for first, n in under.runs for i in range(n))
        for index, under in indices:
            yield from unfolded((single(step, under, index) for step in kinds[under]), depth + 1)


def single(step: Step, under: Under, index: int) -> Step:
    """A step in the layer of that index."""

    def named(name: str) -> str:
        return name.replace("{layer}", str(index), 1)

    one = under._replace(copies=1, active=1, runs=((index, 1),), name=named(under.name))
    held = tuple(weight._replace(name=named(weight.name)) for weight in step.weights)
    around = tuple(one if each == under else each._replace(name=named(each.name)) for each in step.under)
    return step._replace(name=named(step.name), weights=held, under=around, reads=())


def with_every_layer(trace: Trace) -> Trace:
    """The trace unfolded; its steps no longer say what they read.

    Raises: ParamcountError where that would be more than MOST_STEPS.
    """
    n = sum(prod(under.copies for under in step.layers) for step in trace.steps)
    if n > MOST_STEPS:
        raise ParamcountError(f"{n:,} steps", where=f"{trace.id} --full", expected=f"at most {MOST_STEPS:,}; without --full equal layers are folded")
    return trace._replace(steps=tuple(unfolded(trace.steps)))


def table(trace: Trace) -> Table:
    """A row for each step."""
    columns = [
        Column("step", "step", right=False),
        Column("how", "how", right=False, only="people"),
        *(Column(name, name, right=False, only="csv") for name in ("part", "op", "name", "copies", "heads", "left", "right", "product", "out", "note")),
    ]
    cells = []
    for what, how, step in rows(trace.steps):
        cells.append([what, how, *(csv_cells(step) if step else [None] * 10)])
    data = {"schema_version": SCHEMA_VERSION, **trace.to_dict()}
    return Table(columns, cells, data, above=[headline(trace)], below=ending(trace), headings=False, wraps=True)


def csv_cells(step: Step) -> list[object]:
    shapes = [written(shape) for shape in step.product] if step.product else ["", "", ""]
    return [step.part, step.op, step.name, prod(under.copies for under in step.under), step.heads, *shapes, written(step.out), step.note]


def headline(trace: Trace) -> str:
    what = f"{trace.tokens:,} token{'s' if trace.tokens != 1 else ''}"
    if trace.past is not None:
        what += f" after {trace.past:,} in the KV cache"
    if trace.pad is not None:
        what += f", padded to {trace.pad:,} tokens"
    if trace.batch is not None:
        what += f", batch size {trace.batch:,}"
    return f"{make_printable(trace.name)}   {what}"


def ending(trace: Trace) -> list[str]:
    """What grows with the number of tokens: attention scores, and the KV cache; the recurrent state, which does not."""
    lines = []
    patterns: dict[Shape, int] = {}
    for step in trace.steps:
        if step.op == "softmax" and len(step.out) > 1 and step.reads:
            shape = step.out[1:] if trace.batch is not None else step.out
            patterns[shape] = patterns.get(shape, 0) + prod(under.copies for under in step.layers)
    if patterns and trace.pattern is not None:
        lines.append(f"attention scores: {trace.pattern:,} elements = {' + '.join(f'{n:,} × {written(shape)}' for shape, n in patterns.items())}")
    for kept in merged(trace.cache):
        shapes = " + ".join(written(shape) for shape in kept.shapes)
        size = "" if kept.elements is None else f" = {kept.elements:,} elements, {format_bytes(BYTES * kept.elements)} in BF16"
        label = RECURRENT.get(kept.what, "KV cache")
        suffix = "" if kept.what in RECURRENT else f" {kept.what}"
        lines.append(f"{label}: {kept.layers:,} × {shapes if len(kept.shapes) == 1 else f'({shapes})'}{suffix}{size}")
    return lines


def merged(cache: Iterable[Kept]) -> list[Kept]:
    """The same shapes of all kinds of layers together."""
    found: dict[Kept, int] = {}
    for kept in cache:
        one = kept._replace(layers=1)
        found[one] = found.get(one, 0) + kept.layers
    return [kept._replace(layers=layers) for kept, layers in found.items()]
