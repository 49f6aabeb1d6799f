"""Builds tables of explanations and tensors for every output format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paramcount.counting.count import SCHEMA_VERSION, Count
from paramcount.errors import format_shape
from paramcount.explaining.explanation import Explanation
from paramcount.explaining.render_text import (
    NOT_INCLUDED,
    describe_experts,
    explain_size,
    format_active_sum,
    format_title,
    list_expert_sums,
    list_labels,
    list_notes,
    name_not_included,
    name_sum,
    render_latex,
    render_markdown,
    render_text,
)
from paramcount.flow import Repeat, TensorRow
from paramcount.output.numbers import format_count
from paramcount.output.shortening import shorten_name
from paramcount.output.tables import Column, Table
from paramcount.output.terminal import paint, wrap
from paramcount.output.text_tables import INDENT, fold_line

TENSOR_COLUMNS = (
    Column("tensor", "tensor", right=False),
    Column("shape", "shape"),
    Column("repeats", "repeats", right=False),
    Column("copies", "copies", right=False, only="csv"),
    Column("elements", "elements", right=False, only="csv"),
    Column("parameters", "parameters"),
    Column("note", "note", right=False),
    Column("component", "component", right=False, only="csv"),
    Column("part", "part", right=False, only="csv"),
    Column("role", "role", right=False, only="csv"),
    Column("tied_to", "tied_to", right=False, only="csv"),
)


def build_explanation_table(e: Explanation) -> Table:
    """The table of an explanation: one row per line. Terminals, Markdown and LaTeX have their own rendering."""
    rows = []
    for part in e.components:
        for line in part.lines:
            label = ", ".join([part.name, *list_labels(line, part.lines, part.name)])
            place = [part.name, line.part, line.detail, line.layers, line.of]
            rows.append([label, *place, line.formula or line.note, line.numbers, line.value, line.active])
    columns = [
        Column("label", "component", right=False, only="text"),
        *(Column(name, name, right=False, only="csv") for name in ("component", "part", "detail", "layers", "of")),
        Column("formula", "formula", right=False),
        Column("numbers", "with values", right=False),
        Column("parameters", "parameters"),
        Column("active", "active", only="csv"),
    ]
    above = [format_title(e), *(f"{size.name} = {size.value:,}: {explain_size(size)}" for size in e.sizes)]
    below = [f"total {e.total:,}"]
    for group in e.expert_groups:
        below.append(describe_experts(group))
        below += [f"{name_sum(group, label)}: {terms} = {n:,}" for label, terms, n in list_expert_sums(group)]
    below += [f"active: {format_active_sum(e)} = {e.active:,}"] if e.expert_groups else []
    below += [f"{name_not_included(e, component)}: {component.value:,}" for component in e.not_included]
    below += list_notes(e)
    texts = {
        "table": lambda width, colour, shortens: render_text(e, width, colour),
        "markdown": lambda width, colour, shortens: render_markdown(e),
        "latex": lambda width, colour, shortens: render_latex(e),
    }
    return Table(columns, rows, e.to_dict(), above=above, below=below, texts=texts)


def build_tensor_table(name: str, count: Count) -> Table:
    """The table of all tensors in the checkpoint: name, shape, repeats and parameters."""
    tensors = merge_kinds(count.tensors)
    rows = []
    for tensor in tensors:
        numbers = [tensor.copies, tensor.elements, tensor.parameters]
        component = tensor.detail
        place = [component, tensor.part, tensor.role, tensor.tied_to]
        rows.append([tensor.name, format_shape(tensor.shape), format_repeats(tensor), *numbers, tensor.note, *place])
    copies = sum(tensor.copies for tensor in count.tensors if tensor.is_counted)
    above = [f"{name}   {count.total:,} parameters ({format_count(count.total)}) in {copies:,} tensors"]
    extras = (("MTP", count.mtp), ("buffers", count.buffers), ("legacy buffers", count.legacy_buffers))
    below = [f"total {count.total:,}", *(f"{what} {n:,} ({NOT_INCLUDED})" for what, n in extras if n)]
    items = [tensor.to_dict() | {"repeats": format_repeats(tensor), "elements": tensor.elements} for tensor in tensors]
    data = {"schema_version": SCHEMA_VERSION, "id": count.id, "total": count.total, "tensors": items}

    texts = {"table": lambda *terminal: "\n".join(list_rows(above, tensors, below, *terminal)) + "\n"}
    return Table(TENSOR_COLUMNS, rows, data, above=above, below=below, texts=texts)


def merge_kinds(tensors: Sequence[TensorRow]) -> list[TensorRow]:
    """The tensors; a tensor in several kinds of layers is listed once."""
    layers_of: dict[TensorRow, list[Repeat]] = {}
    for tensor in tensors:
        layers = [repeat for repeat in tensor.repeats if repeat.axis == "layer"]
        others = tuple(repeat for repeat in tensor.repeats if repeat not in layers[:1])
        layers_of.setdefault(tensor._replace(repeats=others), []).extend(layers[:1])
    merged = []
    for tensor, layers in layers_of.items():
        if len(layers) > 1:
            n = sum(layer.count for layer in layers)
            layers = [Repeat("layer", n, n, "", tuple(sorted(run for layer in layers for run in layer.runs)))]
        merged.append(tensor._replace(repeats=(*layers, *tensor.repeats)))
    return merged


def format_repeats(tensor: TensorRow) -> str:
    """The repeats of a tensor as text: "58 layers × 256 experts"."""
    repeats = [f"{repeat.count:,} {repeat.axis}{'s' * (repeat.count != 1)}" for repeat in tensor.repeats]
    stacked = [f"{tensor.stacked.count:,} stacked experts"] if tensor.stacked else []
    return " × ".join([*repeats, *stacked])


def list_rows(
    above: Sequence[str],
    tensors: Sequence[TensorRow],
    below: Sequence[str],
    width: int,
    colour: bool,
    shortens: bool,
) -> Iterator[str]:
    """The rows on a terminal. Names are long, so shape, repeats and count are in the row below. `shortens`: longer
    names are shortened, and what does not fit a line continues in the next one."""
    for line in above:
        yield from (paint(piece, "bold") if colour else piece for piece in fold_line(line, width))
    yield ""
    shapes = {tensor: format_shape(tensor.shape) for tensor in tensors}
    widest = max(map(len, shapes.values()), default=0)
    for tensor, shape in shapes.items():
        note = f"   {tensor.note}" if tensor.note else ""
        tied_to = f" to {tensor.tied_to}" if tensor.tied_to else ""
        line = f"{tensor.name}{note}{tied_to}"
        if shortens and len(line) > width:
            yield shorten_name(tensor.name, width)
            yield from list_notes_below(tensor, width)
        else:
            yield line
        start = f"  {shape:<{widest}}  {format_repeats(tensor)}"
        number = f"{tensor.parameters:,}"
        if len(start) + 2 + len(number) > width:
            start = f"  {shape}  {format_repeats(tensor)}"
        if len(start) + 2 + len(number) > width:
            yield paint(start, "dim") if colour else start
            start = ""
        room = max(width - len(start), len(number) + 2)
        yield (paint(start, "dim") if colour else start) + number.rjust(room)
    yield ""
    for line in below:
        yield from fold_line(line, width)


def list_notes_below(tensor: TensorRow, width: int) -> Iterator[str]:
    note = tensor.note
    if tensor.tied_to:
        note += f" to {shorten_name(tensor.tied_to, width - len(f'{INDENT}{note} to '))}"
    for line in wrap(note, width - len(INDENT)):
        yield INDENT + line
