"""Explanations and lists of tensors as tables in every format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paramcount.counting.count import SCHEMA_VERSION, Count
from paramcount.counting.tensors import Tensor, qualify_component
from paramcount.explaining.explanation import Explanation
from paramcount.explaining.render_text import active_sum, labels, latex, markdown, rows_of, said_below, text, title, told
from paramcount.flow import Repeat
from paramcount.output.numbers import format_count
from paramcount.output.tables import Column, Table


def table(e: Explanation) -> Table:
    """An explanation: a row for each line, the legend above, and texts of its own for terminals, model cards and papers."""
    rows = [
        [
            *(", ".join([part.name, *labels(line, part.lines, part.name)]), part.name, line.part, line.detail, line.layers, line.of),
            *(line.formula or line.note, line.numbers, line.value, line.active),
        ]
        for part in e.components
        for line in part.lines
    ]
    columns = [
        Column("label", "component", right=False, only="people"),
        *(Column(name, name, right=False, only="csv") for name in ("component", "part", "detail", "layers", "of")),
        Column("formula", "formula", right=False),
        Column("numbers", "with these sizes", right=False),
        Column("parameters", "parameters"),
        Column("active", "active", only="csv"),
    ]
    above = [title(e), *(f"{size.name} = {size.value:,}: {told(size)}" for size in e.sizes)]
    below = [f"total {e.total:,}"]
    below += [f"{visit.component}, {what}: {sum_} = {n:,}" for visit in e.visits for what, sum_, n in rows_of(visit)]
    below += [f"active: {active_sum(e)} = {e.active:,}"] if e.visits else []
    below += [f"{part.name}{'' if e.of == 'head' else ', in no total'}: {part.value:,}" for part in e.beside]
    below += said_below(e)
    texts = {"table": lambda width: text(e, width), "markdown": lambda _: markdown(e), "latex": lambda _: latex(e)}
    return Table(columns, rows, e.to_dict(), above=above, below=below, texts=texts)


def tensors(name: str, count: Count) -> Table:
    """Every tensor of the checkpoint: its name, shape, repeats and count."""
    shown = ("tensor", "shape", "repeats", "parameters", "note")
    names = ("tensor", "shape", "repeats", "copies", "elements", "parameters", "note", "component", "part", "role", "tied_to")
    rows = [
        [
            *(row.name, dimensions(row), repeats(row), row.copies, row.elements, row.parameters, row.note),
            *(qualify_component(row.part, row.component), row.part, row.role, row.tied_to),
        ]
        for row in merged(count.tensors)
    ]
    columns = [Column(name, name, right=name in ("shape", "parameters"), only="" if name in shown else "csv") for name in names]
    above = [
        f"{name}   {count.total:,} parameters ({format_count(count.total)}) in {sum(tensor.copies for tensor in count.tensors if owned(tensor)):,} tensors"
    ]
    beside = (("MTP", count.mtp), ("buffers", count.buffers), ("legacy buffers", count.legacy_buffers))
    below = [f"total {count.total:,}", *(f"{what} {n:,}, in no total" for what, n in beside if n)]
    listed = [row.to_dict() | {"repeats": repeats(row), "elements": row.elements} for row in merged(count.tensors)]
    data = {"schema_version": SCHEMA_VERSION, "id": count.id, "total": count.total, "tensors": listed}
    return Table(columns, rows, data, above=above, below=below, texts={"table": lambda width: "\n".join(in_rows(above, count, below, width)) + "\n"})


def merged(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The same tensors, those of several kinds of layers that are alike in everything else together."""
    found: dict[Tensor, list[Repeat]] = {}
    for tensor in tensors:
        layers = [repeat for repeat in tensor.repeats if repeat.axis == "layer"]
        rest = tensor._replace(repeats=tuple(repeat for repeat in tensor.repeats if repeat not in layers[:1]))
        found.setdefault(rest, []).extend(layers[:1])
    return [tensor._replace(repeats=(*([together(layers)] if layers else []), *tensor.repeats)) for tensor, layers in found.items()]


def together(layers: Sequence[Repeat]) -> Repeat:
    n = sum(layer.count for layer in layers)
    return layers[0] if len(layers) == 1 else Repeat("layer", n, n, "", tuple(sorted(run for layer in layers for run in layer.runs)))


def owned(tensor: Tensor) -> bool:
    return tensor.parameters > 0 and tensor.part != "mtp"


def dimensions(tensor: Tensor) -> str:
    return " × ".join(f"{n:,}" for n in tensor.shape)


def repeats(tensor: Tensor) -> str:
    """How often a tensor stands in the model: "58 layers × 256 experts"."""
    stacked = [f"{tensor.stacked.count:,} experts in one"] if tensor.stacked else []
    return " × ".join([*(f"{r.count:,} {r.axis}{'s' * (r.count != 1)}" for r in tensor.repeats), *stacked])


def in_rows(above: list[str], count: Count, below: list[str], width: int) -> Iterator[str]:
    """Names are long: below each of them its shape, its repeats and its count."""
    yield from above
    yield ""
    shapes = {tensor: dimensions(tensor) or "one number" for tensor in merged(count.tensors)}
    widest = max(map(len, shapes.values()), default=0)
    for tensor, shape in shapes.items():
        yield f"{tensor.name}{'   ' if tensor.note else ''}{tensor.note}{' to ' + tensor.tied_to if tensor.tied_to else ''}"
        start = f"  {shape:<{widest}}  {repeats(tensor)}"
        shown = f"{tensor.parameters:,}"
        yield start + shown.rjust(max(width - len(start), len(shown) + 2))
    yield ""
    yield from below
