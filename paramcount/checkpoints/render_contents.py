"""The contents of a checkpoint as a table: a row per component with its shapes, or a row per pattern of names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod
from pathlib import Path

from paramcount.checkpoints.classify import get_display_name
from paramcount.checkpoints.contents import Copy, Pattern, StoredCount
from paramcount.checkpoints.render_verification import format_bits, format_known_shape, format_not_included
from paramcount.counting.count import COMPONENTS
from paramcount.errors import format_shape, make_printable
from paramcount.output.numbers import format_bytes, format_count
from paramcount.output.tables import Column, Table
from paramcount.views.model import format_share

MOST_SHAPES = 6  # per component
MOST_LISTED = 4  # types, stacks, faults
MOST_ROWS = 400  # of a text table


def build_table(found: StoredCount) -> Table:
    """A row per component with parameters, without empty components."""
    columns = [
        Column("component", "component", right=False, show=format_component),
        Column("tensors", "tensors", only="csv"),
    ]
    tensors = Counter[str]()
    for pattern in found.patterns:
        tensors[pattern.what] += pattern.tensors
    if found.total is None:
        rows = [[name, n] for name in (*COMPONENTS, *sorted({*tensors} - {*COMPONENTS})) if (n := tensors[name])]
        columns[1] = Column("tensors", "tensors")
        return Table(columns, rows, found.to_dict(), above=[format_headline(found)], below=list_details(found))
    shapes = {name: format_shapes(found.shapes.get(name, {}), n) for name, n in found.components.items()}
    rows = [
        [name, tensors[name], n, format_share(n, found.total), shapes[name]]
        for name, n in found.components.items()
        if n
    ]
    columns += [
        Column("parameters", "parameters"),
        Column("share", "share", only="text"),
        Column("shapes", "shapes", right=False, only="text"),
    ]
    return Table(
        columns,
        rows,
        found.to_dict(),
        above=[format_headline(found)],
        below=list_details(found),
        headings=False,
        wraps=True,
    )


def build_tensor_table(found: StoredCount, *, full: bool) -> Table:
    """A row per pattern of names, type and shape. `full`: without a limit on rows."""
    rows = [build_row(pattern) for pattern in (found.patterns if full else found.patterns[:MOST_ROWS])]
    columns = [
        Column("name", "tensor", right=False),
        Column("dtype", "type", right=False),
        Column("shape", "shape"),
        Column("tensors", "tensors"),
        Column("parameters", "parameters"),
        Column("component", "component", right=False, show=format_component),
    ]
    below = (
        []
        if len(rows) == len(found.patterns)
        else [f"… and {len(found.patterns) - len(rows):,} more; --csv and --json list them all"]
    )
    return Table(columns, rows, found.to_dict(), above=[format_headline(found)], below=below)


def format_component(name: str) -> str:
    return make_printable(get_display_name(name))


def build_row(pattern: Pattern) -> list[object]:
    sizes = None if pattern.shape is None else format_shape(pattern.shape)
    return [pattern.pattern, pattern.dtype, sizes, pattern.tensors, pattern.parameters, pattern.what]


def format_headline(found: StoredCount) -> str:
    name = make_printable(Path(found.path).name or found.path)
    counted = (
        f"{found.total:,} parameters ({format_count(found.total)})"
        if found.total is not None
        else f"{found.tensors:,} tensors, shapes unknown"
    )
    models = f"   {'contains' if found.whole else 'lists'} the tensors of {', '.join(found.zoo)}" if found.zoo else ""
    return f"{name}   {counted}{models}"


def format_shapes(shapes: Mapping[tuple[int, ...], int], n: int) -> str:
    """The sum of shapes that gives a component, largest share first; empty if it does not add up.

    >>> format_shapes({(2304,): 12, (768, 2304): 12}, 21_261_312)
    '12 × [768, 2304] + 12 × [2304]'
    """
    if sum(prod(sizes) * times for sizes, times in shapes.items()) != n:
        return ""
    ordered = sorted(shapes.items(), key=lambda item: -prod(item[0]) * item[1])
    terms = [
        f"{times:,} × {format_known_shape(sizes)}" if times > 1 else format_known_shape(sizes)
        for sizes, times in ordered[:MOST_SHAPES]
    ]
    return " + ".join(
        [*terms, *([f"{len(ordered) - MOST_SHAPES:,} more shapes"] if len(ordered) > MOST_SHAPES else [])]
    )


def list_details(found: StoredCount) -> list[str]:
    """How the values are stored, what is outside the total, and problems of the files."""
    lines = [" · ".join([*describe_storage(found), *describe_structure(found)])]
    if found.beside:
        lines.append(format_not_included(found.beside))
    lines += [describe_copy(copy) for copy in found.copies]
    if found.by == "names" or found.total is None:
        unrecognized = (
            f"; {found.untold:,} unrecognised tensor{'s' if found.untold > 1 else ''} counted as other"
            if found.untold
            else ""
        )
        lines.append(f"components inferred from tensor names{unrecognized}")
    else:
        lines.append(f"components from {found.zoo[0]}")
    if found.nearest:
        lines.append(f"nearest in the zoo: {found.nearest.id}, {found.nearest.differing:,} tensors differ")
    return lines + shorten([f"problem: {fault}" for fault in found.faults])


def describe_storage(found: StoredCount) -> list[str]:
    """Tensors, elements, bytes and types of a checkpoint."""
    files = f" in {found.files:,} files" if found.files > 1 else ""
    texts = [f"{found.tensors:,} tensors{files}"]
    if found.elements is not None:
        texts.append(f"{found.elements:,} elements")
    if found.bytes is not None:
        texts.append(f"{found.bytes:,} bytes ({format_bytes(found.bytes)})")
    if found.scheme:
        texts.append(found.scheme)
    bytes = sum(type.bytes for type in found.types)
    types = [
        type.dtype if len(found.types) == 1 else f"{type.dtype} {format_share(type.bytes, bytes) or '0.0%'}"
        for type in found.types
    ]
    texts += [", ".join(shorten(types))] if types else []
    return texts + format_bits(found.bits)


def describe_structure(found: StoredCount) -> list[str]:
    """Numbers of layers and experts."""
    stacks = shorten([f"{n:,} in {make_printable(name, 40)}" for name, n in found.stacks.items() if n > 1])
    return [
        *([f"layers: {', '.join(stacks)}"] if stacks else []),
        *([f"{found.experts:,} experts"] if found.experts else []),
    ]


def describe_copy(copy: Copy) -> str:
    """Whether a head is a copy of the embedding, as text."""
    name, of = make_printable(copy.name, 60), make_printable(copy.of, 60)
    if copy.same is None:
        return f"{name} has the same shape as {of}; its values are not available to check for a copy"
    return f"{name} is a copy of {of} (sampled values are equal)" if copy.same else f"{name} is not a copy of {of}"


def shorten(texts: list[str]) -> list[str]:
    return texts if len(texts) <= MOST_LISTED else [*texts[:MOST_LISTED], f"… and {len(texts) - MOST_LISTED:,} more"]
