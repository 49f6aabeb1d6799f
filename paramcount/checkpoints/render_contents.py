"""The contents of a checkpoint as a table: a row per component with its shapes, or a row per pattern of names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod
from pathlib import Path

from paramcount.checkpoints.classify import get_display_name
from paramcount.checkpoints.contents import Copy, NamePattern, StoredCount
from paramcount.checkpoints.render_verification import format_bits, format_not_included
from paramcount.counting.components import COMPONENTS
from paramcount.errors import format_shape, make_printable
from paramcount.output.numbers import format_bytes, format_count, format_share
from paramcount.output.tables import Column, Table

MOST_SHAPES = 6  # per component
MOST_LISTED = 4  # types, stacks, faults
MOST_ROWS = 400  # of a text table


def build_table(count: StoredCount) -> Table:
    """A row per component with parameters, without empty components."""
    tensors = Counter[str]()
    for pattern in count.patterns:
        tensors[pattern.what] += pattern.tensors
    above, below = [format_headline(count)], list_details(count)
    component = Column("component", "component", right=False, show=format_component)
    if count.total is None:
        labels = (*COMPONENTS, *sorted({*tensors} - {*COMPONENTS}))
        rows = [[label, tensors[label]] for label in labels if tensors[label]]
        return Table([component, Column("tensors", "tensors")], rows, count.to_dict(), above, below)
    columns = [
        component,
        Column("tensors", "tensors", only="csv"),
        Column("parameters", "parameters"),
        Column("share", "share", only="text"),
        Column("shapes", "shapes", right=False, only="text"),
    ]
    rows = []
    for name, n in count.components.items():
        if n:
            shapes = format_shapes(count.shapes.get(name, {}), n)
            rows.append([name, tensors[name], n, format_share(n, count.total), shapes])
    return Table(columns, rows, count.to_dict(), above, below, headings=False, wraps=True)


def build_tensor_table(count: StoredCount, *, full: bool) -> Table:
    """A row per pattern of names, type and shape. `full`: without a limit on rows."""
    rows = [build_row(pattern) for pattern in (count.patterns if full else count.patterns[:MOST_ROWS])]
    columns = [
        Column("name", "tensor", right=False, shortens=True),
        Column("dtype", "type", right=False),
        Column("shape", "shape"),
        Column("tensors", "tensors", optional=1),
        Column("parameters", "parameters"),
        Column("component", "component", right=False, show=format_component, optional=2),
    ]
    more = len(count.patterns) - len(rows)
    below = [f"… and {more:,} more; --csv and --json list them all"] if more else []
    return Table(columns, rows, count.to_dict(), above=[format_headline(count)], below=below)


def format_component(name: str) -> str:
    return make_printable(get_display_name(name))


def build_row(pattern: NamePattern) -> list[object]:
    shape = None if pattern.shape is None else format_shape(pattern.shape)
    return [pattern.pattern, pattern.dtype, shape, pattern.tensors, pattern.parameters, pattern.what]


def format_headline(count: StoredCount) -> str:
    headline = f"{make_printable(Path(count.path).name or count.path)}   "
    if count.total is None:
        headline += f"{count.tensors:,} tensors, shapes unknown"
    else:
        headline += f"{count.total:,} parameters ({format_count(count.total)})"
    if count.zoo:
        headline += f"   {'contains' if count.whole else 'lists'} the tensors of {', '.join(count.zoo)}"
    return headline


def format_shapes(shapes: Mapping[tuple[int, ...], int], n: int) -> str:
    """The sum of shapes that gives a component, largest share first; empty if it does not add up.

    >>> format_shapes({(2304,): 12, (768, 2304): 12}, 21_261_312)
    '12 × [768, 2304] + 12 × [2304]'
    """
    if sum(prod(shape) * times for shape, times in shapes.items()) != n:
        return ""
    ordered = sorted(shapes.items(), key=lambda item: -prod(item[0]) * item[1])
    terms = [
        f"{times:,} × {format_shape(shape)}" if times > 1 else format_shape(shape)
        for shape, times in ordered[:MOST_SHAPES]
    ]
    if len(ordered) > MOST_SHAPES:
        terms.append(f"{len(ordered) - MOST_SHAPES:,} more shapes")
    return " + ".join(terms)


def list_details(count: StoredCount) -> list[str]:
    """How the values are stored, what is outside the total, and problems of the files."""
    lines = [" · ".join([*describe_storage(count), *describe_structure(count)])]
    if count.beside:
        lines.append(format_not_included(count.beside))
    lines += [describe_copy(copy) for copy in count.copies]
    if count.by == "names" or count.total is None:
        line = "components inferred from tensor names"
        if count.untold:
            line += f"; {count.untold:,} unrecognised tensor{'s' if count.untold > 1 else ''} counted as other"
        lines.append(line)
    else:
        lines.append(f"components as in {count.zoo[0]}")
    if count.nearest:
        lines.append(f"nearest in the zoo: {count.nearest.id}, {count.nearest.differing:,} tensors differ")
    return lines + shorten([f"problem: {fault}" for fault in count.faults])


def describe_storage(count: StoredCount) -> list[str]:
    """Tensors, elements, bytes and types of a checkpoint."""
    files = f" in {count.files:,} files" if count.files > 1 else ""
    texts = [f"{count.tensors:,} tensors{files}"]
    if count.elements is not None:
        texts.append(f"{count.elements:,} elements")
    if count.bytes is not None:
        texts.append(f"{count.bytes:,} bytes ({format_bytes(count.bytes)})")
    if count.scheme:
        texts.append(count.scheme)
    if len(count.types) == 1:
        texts.append(count.types[0].dtype)
    elif count.types:
        bytes = sum(type.bytes for type in count.types)
        shares = [f"{type.dtype} {format_share(type.bytes, bytes) or '0.0%'}" for type in count.types]
        texts.append(", ".join(shorten(shares)))
    return texts + format_bits(count.bits)


def describe_structure(count: StoredCount) -> list[str]:
    stacks = shorten([f"{n:,} in {make_printable(name, 40)}" for name, n in count.stacks.items() if n > 1])
    texts = [f"layers: {', '.join(stacks)}"] if stacks else []
    if count.experts:
        texts.append(f"{count.experts:,} experts")
    return texts


def describe_copy(copy: Copy) -> str:
    name, of = make_printable(copy.name, 60), make_printable(copy.of, 60)
    if copy.same is None:
        return f"{name} has the same shape as {of}; its values are not available to check for a copy"
    return f"{name} is a copy of {of} (sampled values are equal)" if copy.same else f"{name} is not a copy of {of}"


def shorten(texts: list[str]) -> list[str]:
    return texts if len(texts) <= MOST_LISTED else [*texts[:MOST_LISTED], f"… and {len(texts) - MOST_LISTED:,} more"]
