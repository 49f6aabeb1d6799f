"""Every table of the database, declared once: its columns feed SQL, `--schema`, exported files and the data dictionary.

A table yields records for one model; the columns compute their values from a record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from paramcount.counting import Count
from paramcount.errors import ParamcountError, find_nearest, join_words, quote
from paramcount.sizes.values import flatten
from paramcount.zoo import Model, count_model
from paramcount.zoo.columns import FIELDS, FURTHER_FIELDS, FieldType, TableField
from paramcount.zoo.what_if import get_size, list_paths

Record = tuple[Any, ...]
LARGEST = 2**63 - 1  # the largest integer of SQLite
WEIGHT_FORMATS = ("f32", "bf16", "fp8", "int8", "int4", "nf4", "q8_0", "q4_k_m")
SQL_TYPES = {"integer": "INTEGER", "number": "REAL", "flag": "INTEGER", "text": "TEXT", "date": "TEXT"}


class TableSpec(NamedTuple):
    """A table: its meaning, its columns, and its records for a model, whose count is None for an estimate."""

    name: str
    meaning: str
    fields: tuple[TableField, ...]
    list_records: Callable[[Model, Count | None], Iterable[Record]]

    @property
    def sql(self) -> str:
        """The statement that creates the table."""
        columns = [f'"{field.name}" {SQL_TYPES[field.type]}' for field in self.fields]
        columns[0] += " PRIMARY KEY" if self.name == "models" else " NOT NULL REFERENCES models (id)"
        return f"CREATE TABLE {self.name} ({', '.join(columns)})"


def list_rows(table: TableSpec, models: Iterable[Model]) -> Iterator[list[Any]]:
    """The rows of a table: exact integers, flags as true and false, dates as strings.

    Raises: ParamcountError for an integer of 2^63 or more.
    """
    for model in models:
        count = None if model.estimate else count_model(model)
        for record in table.list_records(model, count):
            row = [field.compute(*record) for field in table.fields]
            for field, value in zip(table.fields, row):
                if isinstance(value, int) and not -LARGEST - 1 <= value <= LARGEST:
                    found = f"{field.name} is 2⁶³ or more"
                    raise ParamcountError(found, where=model.id, expected="smaller sizes")
            yield row


# ---- records


def list_size_records(model: Model, count: Count | None) -> Iterator[Record]:
    """(model, path, value, meaning, config.json key) of every size, also those of inner configs."""
    if model.config is None:
        return
    from paramcount.explaining.glossary import describe_size

    for path in list_paths(model.config):
        yield (model, path, get_size(model.config, path), *describe_size(model.config, path))


def list_setting_records(model: Model, count: Count | None) -> Iterator[Record]:
    """(model, key, value) of every setting; the keys of nested mappings are joined by dots."""
    settings = model.entry.settings if model.entry else None
    return ((model, key, value) for key, value in flatten(settings or {}))


def list_published_records(model: Model, count: Count | None) -> Iterator[Record]:
    """(model, what, printed, figure, exact, value counted, verdict, source, who claims it) of every figure."""
    if count is None:
        for claim in model.claims:
            yield model, claim.what, claim.value, find_figure(claim.value), False, None, None, claim.source, claim.by
        return
    from paramcount.zoo.checks import run_checks

    checks = [check for check in run_checks(model, count) if check.what != "reference"]
    for figure, check in zip(model.published, checks, strict=True):
        yield (
            model, figure.what, str(figure.value), check.expected, figure.exact, check.found, check.verdict,
            figure.source, None,
        )  # fmt: skip


def find_figure(text: str) -> int | None:
    """The integer that a figure states; None for other text."""
    from paramcount.output.numbers import parse_figure

    try:
        return parse_figure(text).value
    except ParamcountError:
        return None


def list_explanation_records(model: Model, count: Count | None) -> Iterator[Record]:
    """(model, component, line, whether the total includes it) of every formula."""
    if count is None:
        return
    from paramcount.explaining.explain import explain_model

    explanation = explain_model(model)
    for components, is_included in ((explanation.components, True), (explanation.not_included, False)):
        for component in components:
            yield from ((model, component.name, line, is_included) for line in component.lines)


def list_memory_records(model: Model, count: Count | None) -> Iterator[Record]:
    """(model, what, dtype, label, bytes): weights in each format that the architecture can have, and caches."""
    if count is None:
        return
    from paramcount.costs.caches import count_growth, count_states, list_cache_groups
    from paramcount.costs.columns import count_weight_bytes
    from paramcount.costs.dtypes import find_weight_format, parse_kv_dtype

    for name in WEIGHT_FORMATS:
        format = find_weight_format(name)
        if format is not None:
            try:
                yield model, "weights", name, format.label, count_weight_bytes(count, format)
            except ParamcountError:  # llama.cpp has no such architecture
                continue
    groups = list_cache_groups(model)
    for name in ("bf16", "fp8", "q8_0", "q4_0"):
        dtype = parse_kv_dtype(name)
        yield model, "kv_per_token", name, dtype.label, count_growth(groups, dtype)
    dtype = parse_kv_dtype("bf16")
    yield model, "state", "bf16", dtype.label, count_states(groups, dtype)


# ---- columns


def declare(name: str, type: FieldType, meaning: str, compute: Callable[..., Any]) -> TableField:
    return TableField(name, type, "", meaning, compute)


def declare_item(name: str, index: int, meaning: str, type: FieldType = "text", unit: str = "") -> TableField:
    """A column that is one item of the record; an empty string is unknown."""
    return TableField(name, type, unit, meaning, lambda *record: None if record[index] == "" else record[index])


def declare_attribute(
    name: str, index: int, meaning: str, type: FieldType = "text", unit: str = "", attribute: str = ""
) -> TableField:
    """A column that is an attribute of one item of the record; an empty string is unknown."""
    path = attribute or name

    def compute(*record: Any) -> Any:
        value = getattr(record[index], path)
        return None if value == "" else value

    return TableField(name, type, unit, meaning, compute)


MODEL = declare("model", "text", "Id of the model: models.id.", lambda model, *_: model.id)


def to_integer(value: object) -> int | None:
    """An integer or a flag as an integer; None for other values."""
    return int(value) if isinstance(value, int) else None


def to_text(value: object) -> str:
    """A value as JSON, a string as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def make_models_table() -> TableSpec:
    from paramcount.costs.columns import RESOURCES

    fields = (*FIELDS, *FURTHER_FIELDS, *RESOURCES)
    return TableSpec("models", "One row per model.", fields, lambda model, count: [(model, count)])


TABLES: tuple[TableSpec, ...] = (
    make_models_table(),
    TableSpec(
        "sizes",
        "The sizes and flags of each architecture, as in the zoo entry.",
        (
            MODEL,
            declare_item("name", 1, "Name of the size; vision.d_model is that of an inner config."),
            declare("value", "integer", "The value; 1 or 0 for a flag; empty for a list or null.",
                    lambda model, path, value, *_: to_integer(value)),
            declare_item("meaning", 3, "The size in words; empty if it has no description."),
            declare_item("config_key", 4, "Its config.json key, or several; empty if it is derived."),
            declare("text", "text", "The value as JSON.", lambda model, path, value, *_: to_text(value)),
        ),
        list_size_records,
    ),
    TableSpec(
        "settings",
        "The config.json keys of the forward pass that no count depends on.",
        (
            MODEL,
            declare_item("name", 1, "Key; dots join the keys of nested mappings."),
            declare("value", "integer", "The value of an integer; 1 or 0 for a flag.",
                    lambda model, key, value: to_integer(value)),
            declare("number", "number", "The value of an integer or decimal number.",
                    lambda model, key, value: float(value) if isinstance(value, (int, float)) else None),
            declare("text", "text", "The value as JSON; a string without quotes.",
                    lambda model, key, value: to_text(value)),
        ),
        list_setting_records,
    ),
    TableSpec(
        "components",
        "The parameters of each component; the components of a model sum to its total.",
        (
            MODEL,
            declare_item("component", 1, "Component, zeros included."),
            declare_item("parameters", 2, "Parameters.", "integer", "parameters"),
            declare_item("active", 3, "Active parameters, at most.", "integer", "parameters"),
        ),
        lambda model, count: (
            (model, name, n, count.active_components[name]) for name, n in count.components.items()
        ) if count else (),
    ),
    TableSpec(
        "parts",
        "The parameters of each part; the parts of a model sum to its total.",
        (
            MODEL,
            declare_item("part", 1, "Part: decoder, encoder, cross_attention, vision, audio or projector."),
            declare_item("parameters", 2, "Parameters.", "integer", "parameters"),
        ),
        lambda model, count: ((model, name, n) for name, n in count.parts.items()) if count else (),
    ),
    TableSpec(
        "tensors",
        "The tensors of the reference implementation; those that differ only in layer or expert are one row.",
        (
            MODEL,
            declare_attribute("name", 1, "Name; {layer} and {expert} stand for indices."),
            declare("shape", "text", "Shape as stored, as JSON.", lambda model, tensor: json.dumps(tensor.shape)),
            declare_attribute("component", 1, "Component of its parameters; of a fused tensor, the first."),
            declare_attribute("part", 1, "Part of the model, or mtp."),
            declare_attribute("role", 1, "parameter, buffer or legacy_buffer."),
            declare_attribute("copies", 1, "Number of such tensors.", "integer", "tensors"),
            declare_attribute("elements", 1, "Values in all copies.", "integer", "values"),
            declare_attribute("parameters", 1, "Learned parameters in all copies; 0 if tied.", "integer", "parameters"),
            declare_attribute("active", 1, "Active parameters in all copies.", "integer", "parameters"),
            declare_attribute("tied_to", 1, "Tensor that it shares its values with."),
        ),
        lambda model, count: ((model, tensor) for tensor in count.tensors) if count else (),
    ),
    TableSpec(
        "published",
        "Published figures next to the counts that they state, and third-party estimates.",
        (
            MODEL,
            declare_item("what", 1, "What the figure counts: total, active, checkpoint …"),
            declare_item("printed", 2, "The figure as printed."),
            declare_item("figure", 3, "The figure as an integer.", "integer", "parameters"),
            declare_item("exact", 4, "Whether the source states every digit.", "flag"),
            declare_item("counted", 5, "What paramcount counts.", "integer", "parameters"),
            declare_item("verdict", 6, "exact, rounded, truncated, differs, corrected or not checkable."),
            declare_item("source", 7, "Source that states it: sources.source of the same model."),
            declare_item("claimed_by", 8, "Author of a third-party estimate."),
        ),
        list_published_records,
    ),
    TableSpec(
        "explanations",
        "The formula of every component; the included rows of a model sum to its total.",
        (
            MODEL,
            declare_item("component", 1, "Component, or what else the formula counts."),
            declare_attribute("detail", 2, "Part of the component, such as qkv.q, if it has several formulas."),
            declare_attribute("part", 2, "Part of the model."),
            declare_attribute("layers", 2, "The layers that it applies to, if not all."),
            declare_attribute("kind", 2, "weights or biases.", attribute="of"),
            declare_attribute("formula", 2, "The formula in named sizes."),
            declare_attribute("numbers", 2, "The formula in numbers."),
            declare_attribute("parameters", 2, "Its value.", "integer", "parameters", attribute="value"),
            declare_attribute("active", 2, "Active parameters.", "integer", "parameters"),
            declare_attribute("note", 2, "A remark, such as tied to embedding."),
            declare_item("included", 3, "Whether the total includes it.", "flag"),
        ),
        list_explanation_records,
    ),
    TableSpec(
        "sources",
        "The sources that an entry cites.",
        (
            MODEL,
            declare_attribute("source", 1, "Identifier within the entry.", attribute="id"),
            declare_attribute("kind", 1, "config_json, mirror, paper, model_card …"),
            declare_attribute("ref", 1, "Where it is."),
            declare("accessed", "date", "When it was read.", lambda model, source: source.accessed.isoformat()),
        ),
        lambda model, count: ((model, source) for source in model.sources),
    ),
    TableSpec(
        "memory",
        "Bytes of the weights in common formats, of the KV cache per token and of the recurrent state.",
        (
            MODEL,
            declare_item("what", 1, "weights, kv_per_token or state."),
            declare_item("dtype", 2, "Format, as --dtype and --kv-dtype name it."),
            declare_item("label", 3, "Format in words."),
            declare_item("bytes", 4, "Bytes; of kv_per_token, per token and sequence.", "integer", "bytes"),
        ),
        list_memory_records,
    ),
)  # fmt: skip


def find_table(name: str) -> TableSpec:
    """The table with this name.

    Raises: ParamcountError if there is none.
    """
    by_name = {table.name: table for table in TABLES}
    if name not in by_name:
        raise ParamcountError(
            f"unknown table {quote(name)}", expected=join_words(by_name), nearest=find_nearest(name, by_name)
        )
    return by_name[name]
