"""One model opened: by runs of equal layers, by part, tensor by tensor, or key by key of its config.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from paramcount.counting.count import SCHEMA_VERSION, Count
from paramcount.counting.tensors import Tensor, qualify_component
from paramcount.errors import ParamcountError, make_printable
from paramcount.huggingface.fields import get_value
from paramcount.output.tables import Column, Table
from paramcount.sizes import ABSENT
from paramcount.sizes.reading import Reading
from paramcount.zoo import Model

LONGEST_VALUE = 22


def by_layer(count: Count) -> Table:
    """A row for each run of equal layers and, between them, for what stands in no layer, in the order the forward pass reads it."""
    rows: dict[tuple[Any, ...], list[int]] = {}
    for tensor in count.tensors:
        if not tensor.parameters or tensor.part == "mtp":
            continue
        layer = next((repeat for repeat in tensor.repeats if repeat.axis == "layer"), None)
        if layer is None:
            key = (qualify_component(tensor.part, tensor.component).partition(".")[0], "", 0, 1)
            add(rows, key, tensor.parameters, tensor.active)
            continue
        stack = tensor.name.partition("{layer}")[0].rstrip(".")
        for first, length in layer.runs:
            share = length * tensor.parameters // layer.count, length * tensor.active // layer.count
            add(rows, (stack, str(layer.kind), first, length), *share)
    cells = [
        [f"{name} {first}–{first + n - 1}" if kind and n > 1 else f"{name} {first}" if kind else name, kind, n, total // n, active // n, total]
        for (name, kind, first, n), (total, active) in in_order(rows)
    ]
    names = ("where", "kind", "layers", "each", "active_each", "parameters")
    labels = {"active_each": "active each"}
    hidden = ("layers", "active_each") if all(row[3] == row[4] for row in cells) else ("layers",)
    columns = [Column(name, labels.get(name, name), right=i > 1, only="csv" if name in hidden else "") for i, name in enumerate(names)]
    return opened(count, columns, cells, "by_layer")


def add(rows: dict[tuple[Any, ...], list[int]], key: tuple[Any, ...], parameters: int, active: int) -> None:
    sums = rows.setdefault(key, [0, 0])
    sums[0] += parameters
    sums[1] += active


def in_order(rows: dict[tuple[Any, ...], list[int]]) -> Iterator[tuple[tuple[Any, ...], list[int]]]:
    """Runs of one stack behind one another by index, where the stack's first stood."""
    stacks: dict[str, list[tuple[Any, ...]]] = {}
    for key in rows:
        stacks.setdefault(key[0], []).append(key)
    for keys in stacks.values():
        for key in sorted(keys, key=lambda key: key[2]):
            yield key, rows[key]


def by_part(count: Count) -> Table:
    """A row for each component of each part."""
    rows: dict[tuple[Any, ...], list[int]] = {}
    for tensor in count.tensors:
        if tensor.parameters and tensor.part != "mtp":
            for name, n, active in pieces(tensor):
                add(rows, (tensor.part, name), n, active)
    ordered = sorted(rows.items(), key=lambda row: list(count.parts).index(row[0][0]))
    columns = [
        Column("part", "part", right=False),
        Column("component", "component", right=False),
        Column("parameters", "parameters"),
        Column("active", "active"),
    ]
    if all(total == active for _, (total, active) in ordered):
        columns[3] = columns[3]._replace(only="csv")
    return opened(count, columns, [[*key, *sums] for key, sums in ordered], "by_part")


def pieces(tensor: Tensor) -> Iterator[tuple[str, int, int]]:
    """What a tensor, fused or not, adds to each component of the overview: (component, parameters, active)."""
    widths = tensor.splits or ((tensor.component, 1),)
    whole = sum(width for _, width in widths)
    for name, width in widths:
        yield name.partition(".")[0], tensor.parameters // whole * width, tensor.active // whole * width


def by_tensor(count: Count) -> Table:
    """A row for each tensor, those that differ only in layer or expert together."""
    rows = [
        [
            tensor.name,
            " × ".join(map(str, tensor.shape)),
            tensor.copies,
            tensor.parameters,
            tensor.note,
            qualify_component(tensor.part, tensor.component),
            tensor.part,
        ]
        for tensor in count.tensors
    ]
    columns = [
        Column("name", "tensor", right=False),
        Column("shape", "shape"),
        Column("copies", "copies"),
        Column("parameters", "parameters"),
        Column("note", "", right=False),
        Column("component", "component", right=False),
        Column("part", "part", right=False, only="csv"),
    ]
    return opened(count, columns, rows, "by_tensor", [tensor.to_dict() for tensor in count.tensors])


def opened(count: Count, columns: list[Column], rows: list[list[Any]], name: str, data: Any = None) -> Table:
    rows = [row for row in rows if row]
    listed = data if data is not None else [dict(zip([column.name for column in columns], row, strict=True)) for row in rows]
    return Table(columns, rows, {"schema_version": SCHEMA_VERSION, "id": count.id, "total": count.total, name: listed}, above=[f"{count.total:,} parameters"])


BY: dict[str, Callable[[Count], Table]] = {"layer": by_layer, "part": by_part, "tensor": by_tensor}


def keys(model: Model) -> Table:
    """What became of each key of a config.json: read, filled in by which default or derivation, left unread.

    Raises: ParamcountError for what was not read from a config.json.
    """
    reading = model.reading
    if not reading.origin:
        raise ParamcountError("was not read from a config.json", where=model.id, expected="the path of a config.json, or of a directory with one")
    rows = [*size_rows(model), *unread_rows(reading.unread)]
    names = ("key", "origin", "size", "value", "derived_from")
    data = {"schema_version": SCHEMA_VERSION, "id": model.id, "reference": reading.reference, "keys": [dict(zip(names, row, strict=True)) for row in rows]}
    rows = [[*row[:-1], ", ".join(row[-1])] for row in rows]
    columns = [
        Column("key", "key", right=False, show=lambda key: make_printable(key, 40)),
        Column("origin", "origin", right=False),
        Column("size", "size", right=False),
        Column("value", "value", show=plain),
        Column("derived_from", "derived from", right=False, show=without_sections, only="" if any(row[-1] for row in rows) else "csv"),
    ]
    return Table(columns, rows, data, above=[f"{model.name}   read as {reading.reference}, architecture {model.architecture}"])


def size_rows(model: Model) -> Iterator[list[Any]]:
    """A row for each size and each key that was used: [key, origin, size, value, the keys it was derived from]. Beside a key stands
    the config's own value, beside a size that was derived what came out."""
    reading = model.reading
    read = {key for origin in reading.origin.values() if origin.kind == "read" for key in origin.keys}
    listed: set[str] = set()
    for field, origin in reading.origin.items():
        value = value_at(model.sizes, field)
        if origin.kind == "read":
            own = get_value(reading.document, origin.keys[0])
            yield [origin.keys[0], "read", field if same(own, value) else "", own, []]
            if same(own, value):
                continue
        yield from used_rows(reading, [key for key in origin.keys if key not in read and key not in listed])
        listed.update(origin.keys)
        yield ["", "derived" if origin.kind == "read" else origin.kind, field, value, list(origin.keys)]
    yield from used_rows(reading, sorted(reading.used - read - listed))


def used_rows(reading: Reading, keys: Iterable[str]) -> Iterator[list[Any]]:
    """Keys that sizes were derived from or that were checked, if the config has them."""
    for key in keys:
        value = get_value(reading.document, key)
        if value is not ABSENT and key not in ("model_type", "architectures"):
            yield [key, "used", "", value, []]


def unread_rows(unread: Mapping[str, Any]) -> Iterator[list[Any]]:
    for key, value in unread.items():
        if key not in ("model_type", "architectures"):
            yield [key, "left unread", "", value, []]


def same(own: Any, value: Any) -> bool:
    """Whether a size is what its key says."""
    return own is value or (list(own) == list(value) if isinstance(own, list) and isinstance(value, tuple) else own == value)


def without_sections(keys: str) -> str:
    """Keys without the blocks that lead to them: a section's sizes are derived from its own keys.

    >>> without_sections("vision_config.image_size, vision_config.patch_size")
    'image_size, patch_size'
    """
    return make_printable(", ".join(key.rpartition(".")[2] for key in keys.split(", ")), 80)


def value_at(sizes: Any, path: str) -> Any:
    for name in path.split("."):
        sizes = getattr(sizes, name, None)
    return sizes


def plain(value: Any) -> str:
    """A value as config.json has it, cut to what a terminal shows."""
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    return make_printable(json.dumps(value, ensure_ascii=False, default=str), LONGEST_VALUE)
