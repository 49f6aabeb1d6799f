"""Models side by side: one row each, with the same columns in every command and format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paramcount.counting import SCHEMA_VERSION
from paramcount.counting.components import COMPONENTS
from paramcount.errors import ParamcountError
from paramcount.output.tables import Column, Table
from paramcount.views.wording import AS_COUNTED, Wording, choose_shares
from paramcount.zoo import Model, count_model
from paramcount.zoo.aliases import find_column
from paramcount.zoo.columns import CHANGE_FIELDS, FIELDS, TableField

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]  # {column: value}
FURTHER = "further_fields"  # the key of a row's columns beyond FIELDS: {name: Field}
COLUMNS = tuple(field.name for field in FIELDS)
CHANGE_COLUMNS = tuple(field.name for field in CHANGE_FIELDS)  # if any size was changed
KNOWN = {field.name: field for field in (*FIELDS, *CHANGE_FIELDS)}
DTYPES = {"integer": "Int64", "flag": "boolean", "number": "Float64"}  # of a DataFrame
MAX_NAMES_IN_CAPTION = 6

TERMINAL_COLUMNS = (
    "id", "total", "active", *COMPONENTS, "n_layers", "d_model", "n_heads", "n_kv_heads", "d_head", "d_ff",
    "n_routed_experts", "n_active_experts", "d_expert", "vocab_size", "context_length", "tied", "bytes_fp32",
    "bytes_bf16",
)  # fmt: skip
PAPER_COLUMNS = ("id", "total", "active", *COMPONENTS, "n_layers", "d_model")
SIZES = COLUMNS[COLUMNS.index("n_layers") : COLUMNS.index("vocab_size") + 1]
TOTALS = ("id", "total", "difference", "active", "active_difference")  # on every terminal
EXPERT_COLUMNS = ("active", "n_routed_experts", "n_active_experts", "d_expert")  # hidden if no model has experts


def make_frame(models: Iterable[Model]) -> pandas.DataFrame:
    """One row per model with its counts, components and sizes; integers are Int64."""
    import pandas

    rows = make_named_rows(models)
    columns = list_columns(rows)
    frame = pandas.DataFrame([[row[name] for name in columns] for row in rows], columns=list(columns))
    try:
        return frame.astype({name: DTYPES[KNOWN[name].type] for name in columns if KNOWN[name].type in DTYPES})
    except OverflowError:
        expected = "smaller sizes, or paramcount.count, which has no limit"
        raise ParamcountError("a count is 2⁶³ or more", expected=expected) from None


def make_rows(models: Iterable[Model]) -> list[Row]:
    """One row per model, with its `active_components` for plots; a third-party estimate has no counts."""
    return [_make_row(model) for model in models]


def make_named_rows(models: Iterable[Model]) -> list[Row]:
    """The same, in which the id of a config.json is the name of its directory, unless several have the same."""
    models = list(models)
    names = [model.name if model.reading.origin else model.id for model in models]
    return [_make_row(model) | ({"id": name} if names.count(name) == 1 else {}) for model, name in zip(models, names)]


def list_columns(rows: Sequence[Row]) -> tuple[str, ...]:
    further = rows[0].get(FURTHER, ()) if rows else ()
    changes = CHANGE_COLUMNS if any(row.get("set") for row in rows) else ()
    return (*COLUMNS, *further, *changes)


def add_fields(rows: Sequence[Row], models: Iterable[Model], fields: Mapping[str, TableField]) -> list[Row]:
    """The rows with further columns, whose values are None for third-party estimates."""
    if not fields:
        return list(rows)
    return [
        row
        | {name: field.compute(model, count) for name, field in fields.items()}
        | {FURTHER: row.get(FURTHER, {}) | fields}
        for row, model in zip(rows, models, strict=True)
        for count in [None if model.estimate else count_model(model)]
    ]


def _make_row(model: Model) -> Row:
    count = None if model.estimate else count_model(model)
    row: Row = {field.name: field.compute(model, count) for field in KNOWN.values()}
    if model.original is not None and count is not None:
        from paramcount.zoo.what_if import changes_to_dict  # only if sizes were changed

        row["set"] = changes_to_dict(model)["set"]
    return row if count is None else row | {"active_components": count.active_components}


def build_comparison_table(
    rows: Sequence[Row],
    *,
    columns: str | None = None,
    sort: str | None = None,
    limit: int | None = None,
    transpose: bool = False,
    format: str = "table",
    wording: Wording = AS_COUNTED,
) -> Table:
    """The comparison of models as a table.

    Args:
        rows: From `make_rows`.
        columns: Column names, separated by commas. By default CSV and JSON have every column, other formats the
            components of these models and the usual sizes, and a terminal as many sizes as have space.
        sort: A column; prefix with - for descending.
        limit: The most rows.
        transpose: One column per model.
        format: One of `tables.FORMATS`.
        wording: How the formats for people word names and numbers.
    """
    has_all = format in ("csv", "json")
    names = _choose_columns(rows, columns, format)
    rows = sort_rows(rows, sort)[:limit]
    models = [{name: row[name] for name in (*names, "set") if name in row} for row in rows]
    data = {"schema_version": SCHEMA_VERSION, "models": models}
    further = rows[0].get(FURTHER, {}) if rows else {}
    chosen = [further.get(name) or KNOWN[name] for name in names]
    fields = [wording.format_column(field.column._replace(name=name), field) for name, field in zip(names, chosen)]
    if wording.names and not has_all:
        rows = [row | {"id": row["name"]} for row in rows]
    above, below = describe_row_changes(rows), list_footnotes(rows)
    ids = ", ".join(row["id"] for row in rows) if len(rows) <= MAX_NAMES_IN_CAPTION else f"{len(rows)} models"
    caption = f"Parameter counts of {ids}, computed by paramcount"
    if not transpose:
        cells = [[row[name] if has_all else _mark_cell(row, name) for name in names] for row in rows]
        first = sum(name in (*TOTALS, *COMPONENTS) for name in names)
        return Table(fields, cells, data, above=above, below=below, caption=caption, drops=not columns, first=first)
    headings = [Column("column", "", False), *(Column(row["id"], _mark_cell(row, "id")) for row in rows)]
    cells = []
    for name, field in zip(names, fields, strict=True):
        if name == "id":
            continue
        label = name if has_all else field.label
        cells.append([label, *(row[name] if has_all else field.show(_mark_cell(row, name)) for row in rows)])
    return Table(headings, cells, data, above=above, below=below, caption=caption)


def list_shares(
    rows: Sequence[Row], columns: str | None, sort: str | None
) -> tuple[str, str | None, dict[str, TableField]]:
    """The columns and the order of a table of shares instead of counts, and the further columns that it needs."""
    names = columns.split(",") if columns else select_columns(rows, ("total", "active", *COMPONENTS))
    key = (sort or "").removeprefix("-")
    shares, fields = choose_shares([*names, key])
    order = sort.replace(key, shares[-1]) if sort else None
    return ",".join(shares[:-1]), order, fields


def describe_row_changes(rows: Sequence[Row]) -> list[str]:
    """The changes of sizes that the rows have, each once."""
    if not any(row.get("set") for row in rows):
        return []
    from paramcount.sizes.values import format_size

    texts = []
    for row in rows:
        changes = row.get("set") or {}
        texts.append(", ".join(f"{name} = {format_size(after)}" for name, (_, after) in changes.items()))
    return [f"changed to {text}" for text in dict.fromkeys(texts) if text]


def list_footnotes(rows: Sequence[Row]) -> list[str]:
    footnotes = []
    if any(row["estimate"] for row in rows):
        footnotes.append("~ third-party estimate, not a count")
    if any(is_unverified(row) for row in rows):
        footnotes.append(UNVERIFIED)
    return footnotes


def sort_rows(rows: Sequence[Row], sort: str | None) -> Sequence[Row]:
    """The rows sorted by a column, descending if it is prefixed with -; rows without a value come last."""
    if sort is None:
        return rows
    (key,) = _find_columns([sort.removeprefix("-")], list_columns(rows))
    with_value = [row for row in rows if row[key] is not None]
    without_value = [row for row in rows if row[key] is None]
    with_value.sort(key=lambda row: row[key], reverse=sort.startswith("-"))
    return with_value + without_value


UNVERIFIED = "* unverified: not checked against a reference implementation"


def _mark_cell(row: Row, name: str) -> Any:
    """A cell for people: "~" before an estimated total, "*" after the id of an unverified model."""
    if name == "total" and row["claimed_total"]:
        return f"~{row['claimed_total'].partition(' ')[0]}"
    if row[name] == 0 and name in SIZES:
        return None  # the model has no such size
    return f"{row['id']} *" if name == "id" and is_unverified(row) else row[name]


def is_unverified(row: Row) -> bool:
    """Whether the count of a row's model was not checked against a reference implementation."""
    return row["verified"] is False and not row["estimate"]


def _choose_columns(rows: Sequence[Row], columns: str | None, format: str) -> tuple[str, ...]:
    """The columns that the user chose, else those for the format."""
    if columns:
        names = [name.strip() for name in columns.split(",") if name.strip()]
        return _find_columns(["id", *names], list_columns(rows))
    if format in ("csv", "json"):
        return list_columns(rows)
    return select_columns(rows, PAPER_COLUMNS if format == "latex" else TERMINAL_COLUMNS)


def _find_columns(names: Iterable[str], columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that names, config.json keys or headings refer to, each once."""
    known = set(columns)
    return tuple(dict.fromkeys(s if (s := name.lower()) in known else find_column(name, columns) for name in names))


def select_columns(rows: Sequence[Row], columns: Sequence[str]) -> tuple[str, ...]:
    """The columns, without those about experts if no model has any, and with differences if sizes were changed."""
    has_experts = any(row["n_routed_experts"] for row in rows)
    components = {name for name in COMPONENTS if any(row[name] for row in rows)}
    names = [name for name in columns if has_experts or name not in EXPERT_COLUMNS]
    names = [name for name in names if name not in COMPONENTS or name in components]
    if list_columns(rows) != COLUMNS:
        names.insert(names.index("total") + 1, "difference")
        if has_experts:
            names.insert(names.index("active") + 1, "active_difference")
    return tuple(names)
