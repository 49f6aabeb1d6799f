"""One model in detail: by layer, by part, by tensor, or by config.json key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from typing import Any

from paramcount.counting.count import SCHEMA_VERSION, Count
from paramcount.errors import ParamcountError, format_shape, make_printable
from paramcount.flow import Rope
from paramcount.huggingface.fields import get_value
from paramcount.output.layer_kinds import describe_kind
from paramcount.output.tables import Column, Table
from paramcount.sizes import ABSENT, Sizes
from paramcount.sizes.reading import Reading
from paramcount.sizes.setting_keys import SettingOrigin, list_setting_origins
from paramcount.zoo import Model
from paramcount.zoo.what_if import get_size

LONGEST_VALUE = 22  # characters
CLASS_KEYS = ("model_type", "architectures")  # they select the architecture and are not sizes
RowKey = tuple[Any, ...]  # the first is the stack, the component or the part
Sums = dict[RowKey, list[int]]  # {row: [parameters, active]}


def build_layer_table(count: Count) -> Table:
    """One row per run of identical layers and per component outside the layers, in the order of the forward pass."""
    sums: Sums = {}
    for tensor in count.tensors:
        if not tensor.is_counted:
            continue
        layer = tensor.layer
        if layer is None:
            add_to_sums(sums, (tensor.main_component, "", 0, 1), tensor.parameters, tensor.active)
            continue
        stack = tensor.name.partition("{layer}")[0].rstrip(".")
        for first, length in layer.runs:
            parameters = length * tensor.parameters // layer.count
            active = length * tensor.active // layer.count
            add_to_sums(sums, (stack, layer.label, first, length), parameters, active)
    rows = []
    stacks = list(dict.fromkeys(stack for stack, *_ in sums))  # their runs stand together, by index
    runs = sorted(sums.items(), key=lambda item: (stacks.index(item[0][0]), item[0][2]))
    for (stack, kind, first, n), (parameters, active) in runs:
        name = format_run(stack, first, n) if kind else stack
        rows.append([name, kind, n, parameters // n, active // n, parameters])
    is_dense = all(row[3] == row[4] for row in rows)
    columns = [
        Column("where", "where", right=False),
        Column("kind", "kind", right=False, show=lambda kind: describe_kind(kind) or kind),
        Column("layers", "layers", only="csv"),
        Column("each", "per layer"),
        Column("active_each", "active per layer", only="csv" if is_dense else ""),
        Column("parameters", "parameters"),
    ]
    return make_breakdown(count, columns, rows, "by_layer")


def format_run(stack: str, first: int, n: int) -> str:
    """A run of layers.

    >>> format_run("model.layers", 0, 3), format_run("model.layers", 3, 1)
    ('model.layers 0–2', 'model.layers 3')
    """
    return f"{stack} {first}–{first + n - 1}" if n > 1 else f"{stack} {first}"


def add_to_sums(sums: Sums, key: RowKey, parameters: int, active: int) -> None:
    row = sums.setdefault(key, [0, 0])
    row[0] += parameters
    row[1] += active


def build_part_table(count: Count) -> Table:
    sums: Sums = {}
    for tensor in count.tensors:
        if tensor.is_counted:
            copies, active, _ = tensor.multiplicity
            for component, n in tensor.shares:
                add_to_sums(sums, (tensor.part, component.partition(".")[0]), n * copies, n * active)
    order = list(count.parts)
    keys = sorted(sums, key=lambda key: order.index(key[0]))
    rows = [[*key, *sums[key]] for key in keys]
    is_dense = all(parameters == active for _, _, parameters, active in rows)
    columns = [
        Column("part", "part", right=False),
        Column("component", "component", right=False),
        Column("parameters", "parameters"),
        Column("active", "active", only="csv" if is_dense else ""),
    ]
    return make_breakdown(count, columns, rows, "by_part")


def build_tensor_table(count: Count) -> Table:
    """One row per tensor; tensors that differ only in their layer or expert share a row."""
    rows = []
    for tensor in count.tensors:
        shape = format_shape(tensor.shape)
        component = tensor.detail
        label = component.rpartition(".")[0] if tensor.splits else component  # "qkv" for fused q, k and v
        numbers = [tensor.copies, tensor.parameters]
        rows.append([tensor.name, shape, *numbers, tensor.note, component, label, tensor.part])
    columns = [
        Column("name", "tensor", right=False, shortens=True),
        Column("shape", "shape"),
        Column("copies", "copies", optional=1),
        Column("parameters", "parameters"),
        Column("note", "", right=False, optional=2),
        Column("component", "component", right=False, only="csv"),
        Column("component", "component", right=False, only="text", optional=3),
        Column("part", "part", right=False, only="csv"),
    ]
    return make_breakdown(count, columns, rows, "by_tensor", [tensor.to_dict() for tensor in count.tensors])


def make_breakdown(count: Count, columns: list[Column], rows: list[list[Any]], name: str, data: Any = None) -> Table:
    """The table of a breakdown. `data`: its rows in JSON, if they contain more than the columns."""
    if data is None:
        names = [column.name for column in columns]
        data = [dict(zip(names, row, strict=True)) for row in rows]
    document = {"schema_version": SCHEMA_VERSION, "id": count.id, "total": count.total, name: data}
    return Table(columns, rows, document)


BREAKDOWNS: dict[str, Callable[[Count], Table]] = {
    "layer": build_layer_table,
    "part": build_part_table,
    "tensor": build_tensor_table,
}


def build_key_table(model: Model) -> Table:
    """How each key of a config.json was used, and which defaults and derivations filled in the rest.

    Raises: ParamcountError if the model was not read from a config.json.
    """
    reading = model.reading
    if not reading.origin:
        expected = "the path of a config.json, or of a directory with one"
        raise ParamcountError("was not read from a config.json", where=model.id, expected=expected)
    origins = list(list_setting_origins(model.sizes, reading.document))
    read_keys = {key for origin in origins for key in origin.keys}
    unread = {key: value for key, value in reading.unread.items() if key not in read_keys}
    size_rows = list(list_size_rows(model))
    rows = [*size_rows, *list_setting_rows(reading, origins)]
    if reading.context_key:
        rows.append([reading.context_key, "read", "", "context_length", model.context_length, []])
    rows += [[key, "ignored", "", "", value, []] for key, value in unread.items() if key not in CLASS_KEYS]
    names = ("key", "origin", "size", "setting", "value", "derived_from")
    data = {
        "schema_version": SCHEMA_VERSION,
        "id": model.id,
        "reference": reading.reference,
        "keys": [dict(zip(names, row, strict=True)) for row in rows],
    }
    has_derived = any(row[-1] for row in size_rows)  # settings follow the keys that they are derived from
    cells = []
    for key, origin, size, setting, value, keys in rows:
        name = (
            size or setting
        )  # of a row without a key it comes first: a narrow terminal repeats the first column alone
        cells.append([key, key or name, origin, size, setting, name if key else "", value, ", ".join(keys)])
    columns = [
        Column("key", "key", right=False, only="csv"),
        Column("label", "key or name", right=False, only="text", show=lambda key: make_printable(key, 40)),
        Column("origin", "origin", right=False),
        Column("size", "size", right=False, only="csv"),
        Column("setting", "setting", right=False, only="csv"),
        Column("name", "size or setting", right=False, only="text"),
        Column("value", "value", show=format_json_value),
        Column(
            "derived_from",
            "derived from",
            right=False,
            show=strip_sections,
            only="" if has_derived else "csv",
        ),
    ]
    title = f"{model.name}   read as {reading.reference}, architecture {model.architecture}"
    return Table(columns, cells, data, above=[title])


def list_size_rows(model: Model) -> Iterator[list[Any]]:
    """One row per size and per key that was used: [key, origin, size, "", value, keys it was derived from]. A key has
    the value in the config.json, a derived size the value that was computed."""
    reading = model.reading
    read_keys = {key for origin in reading.origin.values() if origin.kind == "read" for key in origin.keys}
    listed: set[str] = set()
    for field, origin in reading.origin.items():
        value = get_size(model.sizes, field)
        if origin.kind == "read":
            config_value = get_value(reading.document, origin.keys[0])
            is_unchanged = value == (tuple(config_value) if isinstance(config_value, list) else config_value)
            yield [origin.keys[0], "read", field if is_unchanged else "", "", config_value, []]
            if is_unchanged:
                continue
        yield from list_used_rows(reading, [key for key in origin.keys if key not in read_keys and key not in listed])
        listed.update(origin.keys)
        yield ["", "derived" if origin.kind == "read" else origin.kind, field, "", value, list(origin.keys)]
    yield from list_used_rows(reading, sorted(reading.used - read_keys - listed))


def list_used_rows(reading: Reading, keys: Iterable[str]) -> Iterator[list[Any]]:
    """The keys in the config.json that sizes were derived from or that were checked."""
    for key in keys:
        value = get_value(reading.document, key)
        if value is not ABSENT and key not in CLASS_KEYS:
            yield [key, "used", "", "", value, []]


def list_setting_rows(reading: Reading, origins: Iterable[SettingOrigin]) -> Iterator[list[Any]]:
    """One row per setting and per key that one was derived from: [key, origin, "", setting, value, these keys]."""
    listed: set[str] = set()
    for origin in origins:
        value = make_plain(origin.value)
        if origin.kind == "read":
            yield [origin.keys[0], "read", "", origin.name, value, []]
            continue
        yield from list_used_rows(reading, [key for key in origin.keys if key not in listed])
        listed.update(origin.keys)
        yield ["", origin.kind, "", origin.name, value, list(origin.keys)]


UNSCALED: dict[str, Any] = {  # of rotary positions
    "kind": "default", "factor": 1.0, "attention_factor": 1.0, "original_positions": 0, "low": 0.0, "high": 0.0,
    "truncate": True, "short": (), "long": (), "share": 1.0, "is_odd": False,
}  # fmt: skip


def make_plain(value: Any) -> Any:
    """The value of a setting for JSON. Of rotary positions, the base and what differs from those without scaling.

    >>> from paramcount.flow import LinearScaling
    >>> make_plain((0.0, float("inf"))), make_plain(Rope(5e5, LinearScaling(2.0)))
    ([0.0, 'inf'], {'base': 500000.0, 'kind': 'linear', 'factor': 2.0})
    """
    if isinstance(value, Rope):
        scaling = {} if value.scaling is None else value.scaling._asdict()
        found = {"kind": value.kind, "attention_factor": value.attention_factor, "is_odd": value.is_odd, **scaling}
        shown = {name: found[name] for name, absent in UNSCALED.items() if found.get(name, absent) != absent}
        return {"base": value.base, **shown}
    if isinstance(value, tuple):
        return [make_plain(x) for x in value]
    if isinstance(value, dict):
        return {key: make_plain(x) for key, x in value.items()}
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def strip_sections(keys: str) -> str:
    """Keys without the sections of the config.json that contain them, on one line.

    >>> strip_sections("vision_config.image_size, vision_config.patch_size")
    'image_size, patch_size'
    """
    return make_printable(", ".join(key.rpartition(".")[2] for key in keys.split(", ")), 80)


def format_json_value(value: object) -> str:
    if isinstance(value, Sizes):
        value = value.to_dict()
    return make_printable(json.dumps(value, ensure_ascii=False, default=str), LONGEST_VALUE)
