"""Renders a trace as a table with one row per operation, equal layers folded or listed one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import prod

from paramcount.counting.count import SCHEMA_VERSION
from paramcount.errors import ParamcountError, format_shape, make_printable
from paramcount.flow.caches import CROSS_ATTENTION
from paramcount.flow.operation import NOT_DESCRIBED, Form
from paramcount.output.layer_kinds import describe_kind
from paramcount.output.numbers import format_bytes
from paramcount.output.ranges import format_ranges
from paramcount.output.tables import Column, Table
from paramcount.tracing.fused import describe_fused, split_fused
from paramcount.tracing.trace import ROUTED, CacheEntry, Product, Scope, Shape, Step, Trace

MAX_STEPS = 100_000  # with every layer listed
MAX_RUNS = 6  # runs of layer indices in a heading
BF16_BYTES = 2
# {CacheEntry.what: label}; all others are KV caches
STATE_LABELS = {"state": "recurrent state", "last inputs": "convolution state"}
CSV_COLUMNS = ("part", "op", "name", "copies", "heads", "left", "right", "product", "out", "note", "flops")
# {part: what decides on its named sizes}
DETERMINED_BY = {"vision": "the image", "projector": "the image", "audio": "the audio"}
UNDETERMINED = "the input"
MAX_LABELS = 3  # steps in a footnote


def format_product(product: Product) -> str:
    """A matmul with its inner dimension marked.

    >>> format_product(Product((5, 768), (768, 64), (5, 64)))
    '[5, ‹768›] · [‹768›, 64] = [5, 64]'
    """
    left, right = format_shape(product.left, -1), format_shape(product.right, 0)
    return f"{left} · {right} = {format_shape(product.out)}"


def describe_step(step: Step) -> str:
    """The shapes of a step, and its note."""
    if step.product:
        shapes = format_product(step.product)
        if step.heads > 1:
            *rows, d_head = step.product.out
            is_concatenated = step.form is not Form.SCORES and isinstance(d_head, int)
            out = (*rows, step.heads * d_head) if is_concatenated else step.out
            shapes = f"{step.heads} × {shapes} → {format_shape(out)}"
    elif step.form is Form.LOOKUP and step.weights:
        read = f"{format_shape(step.inputs[0])} in " if step.inputs else ""  # none if positions of no input are read
        shapes = f"{read}{format_shape(step.weights[0].shape)} → {format_shape(step.out)}"
    elif step.inputs and step.inputs[0] != step.out and not step.reads_only_lengths:
        inputs = " and ".join(format_inputs(step.inputs))
        shapes = f"{inputs} → {format_shape(step.out)}"
    else:
        shapes = format_shape(step.out)
    return f"{shapes}; {step.note}" if step.note else shapes


def format_inputs(inputs: Sequence[Shape]) -> Iterator[str]:
    """Each shape of the inputs once, with its number if there are several.

    >>> list(format_inputs([(5, 8), (5, 8), (5, 4)]))
    ['2 × [5, 8]', '[5, 4]']
    """
    for shape, n in Counter(inputs).items():
        yield f"{n:,} × {format_shape(shape)}" if n > 1 else format_shape(shape)


def describe_scope(scope: Scope, flops: int = 0) -> tuple[str, str]:
    """The heading of a repeated block: (number of copies and kind, module name and layer indices). `flops`: of one
    layer; 0 if they are unknown."""
    if scope.axis == "expert":
        return f"{scope.active:,} of {scope.copies:,} experts", scope.name
    if scope.axis != "layer":
        return f"{scope.copies:,} × {scope.axis}", scope.name
    layer = f"{make_printable(describe_kind(scope.kind), 60)} layer".strip()
    runs = ", ".join(format_ranges(scope.runs[:MAX_RUNS])) + (", …" if len(scope.runs) > MAX_RUNS else "")
    each = f"; {flops:,} FLOPs{' each' if scope.copies > 1 else ''}" if flops else ""
    return f"{scope.copies:,} × {layer}" if scope.copies > 1 else layer, f"{scope.name}   {runs}{each}"


def list_rows(steps: Sequence[Step]) -> Iterator[tuple[str, str, Step | None]]:
    """(name, shapes, step) for each step; a heading, without a step, where layers or experts begin."""
    current: tuple[Scope, ...] = ()
    flops = sum_layer_flops(steps)
    for step in steps:
        for depth, scope in enumerate(step.scopes):
            if current[depth : depth + 1] != (scope,):
                heading, module = describe_scope(scope, flops.get(step.scopes[: depth + 1], 0))
                yield "  " * depth + heading, module, None
                current = (*step.scopes[:depth], scope)
        current = step.scopes
        yield "  " * len(step.scopes) + step.text, describe_step(step), step


def sum_layer_flops(steps: Sequence[Step]) -> dict[tuple[Scope, ...], int]:
    """FLOPs of one layer by its scopes, without those whose size depends on the input."""
    sums: Counter[tuple[Scope, ...]] = Counter()
    unknown: set[tuple[Scope, ...]] = set()
    for step in steps:
        scopes = step.scopes
        depth = max((i for i, scope in enumerate(scopes, start=1) if scope.axis == "layer"), default=0)
        if step.multiply_adds is None:
            unknown.add(scopes[:depth])
        sums[scopes[:depth]] += 2 * (step.multiply_adds or 0)
    return {scopes: flops for scopes, flops in sums.items() if scopes and scopes not in unknown}


def unfold_layers(steps: Iterable[Step], depth: int = 0) -> Iterator[Step]:
    """The steps of every layer, in the order they run."""
    for stack, stack_steps in groupby(steps, key=lambda step: [scope.name for scope in step.layers[depth : depth + 1]]):
        if not stack:
            yield from stack_steps
            continue
        kinds = {scope: list(body) for scope, body in groupby(stack_steps, key=lambda step: step.layers[depth])}
        indices = sorted((first + i, scope) for scope in kinds for first, n in scope.runs for i in range(n))
        for index, scope in indices:
            yield from unfold_layers((select_layer(step, scope, index) for step in kinds[scope]), depth + 1)


def select_layer(step: Step, scope: Scope, index: int) -> Step:
    """The step as it runs in one layer of the scope."""

    def rename(name: str) -> str:
        return name.replace("{layer}", str(index), 1)

    layer = scope._replace(copies=1, active=1, runs=((index, 1),), name=rename(scope.name))
    weights = tuple(weight._replace(name=rename(weight.name)) for weight in step.weights)
    scopes = tuple(layer if each == scope else each._replace(name=rename(each.name)) for each in step.scopes)
    return step._replace(name=rename(step.name), weights=weights, scopes=scopes, reads=())


def with_every_layer(trace: Trace) -> Trace:
    """The trace with the steps of every layer. Their `reads` are empty.

    Raises: ParamcountError for more than MAX_STEPS steps.
    """
    n = sum(prod(scope.copies for scope in step.layers) for step in trace.steps)
    if n > MAX_STEPS:
        expected = f"at most {MAX_STEPS:,}; omit --full to show identical layers once"
        raise ParamcountError(f"--full lists {n:,} steps", where=trace.id, expected=expected)
    return trace._replace(steps=tuple(unfold_layers(trace.steps)))


def build_table(trace: Trace, *, full: bool = False) -> Table:
    """A table with one row per step. `full`: with the steps of every layer.

    Raises: ParamcountError if these are too many.
    """
    shown = with_every_layer(trace) if full else trace
    steps = split_fused(trace.steps)
    columns = [
        Column("step", "step", right=False),
        Column("how", "how", right=False, only="text"),
        *(Column(name, name, right=False, only="csv") for name in CSV_COLUMNS),
    ]
    cells = []
    for name, shapes, step in list_rows(list(unfold_layers(steps)) if full else steps):
        cells.append([name, shapes, *(list_csv_cells(step) if step else [None] * len(CSV_COLUMNS))])
    data = {"schema_version": SCHEMA_VERSION, **shown.to_dict()}
    above, below = [describe_input(trace)], list_footnotes(trace)
    return Table(columns, cells, data, above=above, below=below, headings=False, wraps=True)


def list_csv_cells(step: Step) -> list[object]:
    product = [format_shape(shape) for shape in step.product] if step.product else ["", "", ""]
    copies = prod(scope.copies for scope in step.scopes)
    end = [format_shape(step.out), step.note, step.flops]
    return [step.part, step.op, step.name, copies, step.heads, *product, *end]


def describe_input(trace: Trace) -> str:
    text = f"{trace.tokens:,} token{'s' if trace.tokens != 1 else ''}"
    if trace.past is not None:
        cached = "cached " if any(entry.what not in STATE_LABELS for entry in trace.cache) else "earlier "
        text += f" after {trace.past:,} {cached}token{'s' if trace.past != 1 else ''}"
    if trace.source is not None:
        text += f", encoder input of {trace.source:,} token{'s' if trace.source != 1 else ''}"
    if trace.pad is not None:
        text += f", padded to {trace.pad:,} tokens"
    if trace.batch is not None:
        text += f", batch size {trace.batch:,}"
    return f"{make_printable(trace.name)}   {text}"


def list_footnotes(trace: Trace) -> list[str]:
    """The fused matrices, the named sizes, the FLOPs, and the elements of attention scores, KV cache and state."""
    return [
        *describe_fused(trace.steps),
        *describe_named_sizes(trace),
        *describe_flops(trace),
        *describe_scores(trace),
        *describe_cache(trace),
    ]


def describe_named_sizes(trace: Trace) -> Iterator[str]:
    """The sizes that are names because they depend on the input."""
    causes: dict[str, str] = {}  # {name: what decides on the size}
    determined_by = dict(DETERMINED_BY)
    if {"vision", "audio"}.isdisjoint(step.part for step in trace.steps):
        del determined_by["projector"]  # which projects something else
    for step in trace.steps:
        for n in (n for shape in (*step.inputs, step.out) for n in shape if isinstance(n, str)):
            if causes.get(n, UNDETERMINED) == UNDETERMINED:
                causes[n] = determined_by.get(step.part, UNDETERMINED)
    if causes.pop(ROUTED, None):
        yield f"{ROUTED}: number of tokens routed to an expert"
    for cause in dict.fromkeys(causes.values()):
        names = [name for name in causes if causes[name] == cause]
        yield f"{', '.join(names)}: size depends on {cause}"


def describe_flops(trace: Trace) -> Iterator[str]:
    """The FLOPs of the pass, or why they are unknown."""
    if trace.flops is not None:
        yield f"FLOPs: {trace.flops:,} (matmuls, 2 per multiply-add)"
        return
    labels = list(dict.fromkeys(step.op for step in trace.steps if step.note == NOT_DESCRIBED))
    if not labels:
        yield "FLOPs: unknown, because sizes depend on the input"
        return
    more = f" and {len(labels) - MAX_LABELS:,} more" if len(labels) > MAX_LABELS else ""
    verb = "are" if len(labels) > 1 else "is"
    yield f"FLOPs: unknown, because {', '.join(labels[:MAX_LABELS])}{more} {verb} not described"


def describe_scores(trace: Trace) -> Iterator[str]:
    layers: Counter[Shape] = Counter()
    for step in trace.steps:
        if step.form is Form.ATTENTION_WEIGHTS:
            layers[step.out[1:] if trace.batch is not None else step.out] += prod(scope.copies for scope in step.layers)
    if layers and trace.attention_scores is not None:
        terms = " + ".join(f"{n:,} × {format_shape(shape)}" for shape, n in layers.items())
        yield f"attention scores: {trace.attention_scores:,} elements = {terms}"


def describe_cache(trace: Trace) -> Iterator[str]:
    attentions = {entry.kind for entry in trace.cache} - {""}
    layers: Counter[CacheEntry] = Counter()  # of all kinds, by equal shapes
    for entry in trace.cache:
        layers[entry._replace(layers=1)] += entry.layers
    for entry in (single._replace(layers=n) for single, n in layers.items()):
        shapes = " + ".join(format_shape(shape) for shape in entry.shapes)
        size = ""
        if entry.elements is not None:
            size = f" = {entry.elements:,} elements, {format_bytes(BF16_BYTES * entry.elements)} in BF16"
        label = STATE_LABELS.get(entry.what, "KV cache")
        if entry.kind or (attentions and entry.what not in STATE_LABELS):
            label += f" ({entry.kind or ('self-attention' if CROSS_ATTENTION in attentions else 'full attention')})"
        suffix = "" if entry.what in STATE_LABELS else f" {entry.what}"
        if len(entry.shapes) > 1:
            shapes = f"({shapes})"
        yield f"{label}: {entry.layers:,} × {shapes}{suffix}{size}"
