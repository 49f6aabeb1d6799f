"""What a checkpoint stores, as tables: a row per component with the shapes that make it, or one per pattern of names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod
from pathlib import Path

from paramcount.checkpoints.contents import Copy, Pattern, StoredCount
from paramcount.checkpoints.render_verification import beside, bits, shape
from paramcount.counting.count import COMPONENTS
from paramcount.errors import make_printable
from paramcount.output.numbers import format_bytes, format_count
from paramcount.output.tables import Column, Table
from paramcount.views.model import format_share

MOST_SHAPES = 6  # of a component
MOST_LISTED = 4  # types, stacks, faults
MOST_ROWS = 400  # for people


def table(found: StoredCount) -> Table:
    """The overview: components that are all zero are left out."""
    columns = [Column("component", "component", right=False), Column("tensors", "tensors", only="csv")]
    tensors = Counter[str]()
    for pattern in found.patterns:
        tensors[pattern.what] += pattern.tensors
    if found.total is None:
        rows = [[name, n] for name in (*COMPONENTS, *sorted({*tensors} - {*COMPONENTS})) if (n := tensors[name])]
        columns[1] = Column("tensors", "tensors")
        return Table(columns, rows, found.to_dict(), above=[headline(found)], below=check_shard_name(found))
    shapes = {name: arithmetic(found.shapes.get(name, {}), n) for name, n in found.components.items()}
    rows = [[name, tensors[name], n, format_share(n, found.total), shapes[name]] for name, n in found.components.items() if n]
    columns += [
        Column("parameters", "parameters"),
        Column("share", "share", only="people"),
        Column("shapes", "shapes", right=False, only="people"),
    ]
    return Table(columns, rows, found.to_dict(), above=[headline(found)], below=check_shard_name(found), headings=False, wraps=True)


def by_tensor(found: StoredCount, *, full: bool) -> Table:
    """A row for each pattern of names, stored type and shape. `full`: however many there are."""
    rows = [row(pattern) for pattern in (found.patterns if full else found.patterns[:MOST_ROWS])]
    columns = [
        Column("name", "tensor", right=False),
        Column("dtype", "type", right=False),
        Column("shape", "shape"),
        Column("tensors", "tensors"),
        Column("parameters", "parameters"),
        Column("component", "component", right=False),
    ]
    below = [] if len(rows) == len(found.patterns) else [f"… and {len(found.patterns) - len(rows):,} more; --csv and --json list them all"]
    return Table(columns, rows, found.to_dict(), above=[headline(found)], below=below)


def row(pattern: Pattern) -> list[object]:
    sizes = None if pattern.shape is None else " × ".join(map(str, pattern.shape))
    return [pattern.pattern, pattern.dtype, sizes, pattern.tensors, pattern.parameters, pattern.what]


def headline(found: StoredCount) -> str:
    name = make_printable(Path(found.path).name or found.path)
    counted = f"{found.total:,} parameters ({format_count(found.total)})" if found.total is not None else f"{found.tensors:,} tensors, shapes unknown"
    models = f"   {'contains' if found.whole else 'lists'} the tensors of {', '.join(found.zoo)}" if found.zoo else ""
    return f"{name}   {counted}{models}"


def arithmetic(shapes: Mapping[tuple[int, ...], int], n: int) -> str:
    """The shapes that make a component, the largest share first; nothing where they do not.

    >>> arithmetic({(2304,): 12, (768, 2304): 12}, 21_261_312)
    '12 × [768, 2304] + 12 × [2304]'
    """
    if sum(prod(sizes) * times for sizes, times in shapes.items()) != n:
        return ""
    ordered = sorted(shapes.items(), key=lambda item: -prod(item[0]) * item[1])
    terms = [f"{times:,} × {shape(sizes)}" if times > 1 else shape(sizes) for sizes, times in ordered[:MOST_SHAPES]]
    return " + ".join([*terms, *([f"{len(ordered) - MOST_SHAPES:,} more shapes"] if len(ordered) > MOST_SHAPES else [])])


def check_shard_name(found: StoredCount) -> list[str]:
    """How it is stored, what stands beside the parameters, and what speaks against the files."""
    lines = [" · ".join([*amounts(found), *structure(found)])]
    if found.beside:
        lines.append(beside(found.beside))
    lines += [describe(copy) for copy in found.copies]
    if found.by == "names" or found.total is None:
        untold = f"; {found.untold:,} unrecognised tensor{'s' if found.untold > 1 else ''} counted as other" if found.untold else ""
        lines.append(f"components inferred from tensor names{untold}")
    else:
        lines.append(f"components from {found.zoo[0]}")
    if found.nearest:
        lines.append(f"nearest in the zoo: {found.nearest.id}, {found.nearest.differing:,} tensors differ")
    return lines + cut([f"problem: {fault}" for fault in found.faults])


def amounts(found: StoredCount) -> list[str]:
    """What is stored: tensors, elements, bytes, types."""
    files = f" in {found.files:,} files" if found.files > 1 else ""
    texts = [f"{found.tensors:,} tensors{files}"]
    if found.elements is not None:
        texts.append(f"{found.elements:,} elements")
    if found.bytes is not None:
        texts.append(f"{found.bytes:,} bytes ({format_bytes(found.bytes)})")
    if found.scheme:
        texts.append(found.scheme)
    bytes = sum(type.bytes for type in found.types)
    types = [type.dtype if len(found.types) == 1 else f"{type.dtype} {format_share(type.bytes, bytes) or '0.0%'}" for type in found.types]
    texts += [", ".join(cut(types))] if types else []
    return texts + bits(found.bits)


def structure(found: StoredCount) -> list[str]:
    """How many layers and experts were seen."""
    stacks = cut([f"{n:,} in {make_printable(name, 40)}" for name, n in found.stacks.items() if n > 1])
    return [*([f"layers: {', '.join(stacks)}"] if stacks else []), *([f"{found.experts:,} experts"] if found.experts else [])]


def describe(copy: Copy) -> str:
    """Whether a head is a copy of the table, as people read it."""
    name, of = make_printable(copy.name, 60), make_printable(copy.of, 60)
    if copy.same is None:
        return f"{name} has the same shape as {of}; its values are not available to check for a copy"
    return f"{name} is a copy of {of} (sampled values are equal)" if copy.same else f"{name} is not a copy of {of}"


def cut(texts: list[str]) -> list[str]:
    return texts if len(texts) <= MOST_LISTED else [*texts[:MOST_LISTED], f"… and {len(texts) - MOST_LISTED:,} more"]
