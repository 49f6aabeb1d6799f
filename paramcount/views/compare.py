"""Models side by side: one row each, with the same columns in every command and format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from paramcount.counting import COMPONENTS, SCHEMA_VERSION, Count
from paramcount.errors import ParamcountError
from paramcount.output.numbers import format_bytes
from paramcount.output.tables import Column, Table, format_value
from paramcount.zoo import Model, count_model
from paramcount.zoo.aliases import HEADINGS, find_column

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]  # {column: value}
RESOURCES = "resources"  # the key of a row's further columns: {name: Resource}


class Resource(Protocol):
    """A further column: its heading, how to format a value, and its value for a model."""

    @property
    def label(self) -> str: ...

    @property
    def show(self) -> Callable[[int], str]: ...

    @property
    def compute(self) -> Callable[[Model], int]: ...


COUNTS = ("total", "active", "non_embedding", "active_non_embedding", "language_model")
EXTRAS = ("buffers", "mtp", "bytes_fp32", "bytes_bf16")
SIZES = (
    "n_layers", "d_model", "n_heads", "n_kv_heads", "d_head", "d_ff", "n_routed_experts", "n_active_experts",
    "n_shared_experts", "d_expert", "d_shared_expert", "vocab_size",
)  # fmt: skip
FACTS = (
    "context_length", "tied", "name", "family", "publisher", "released", "hf", "architecture", "verified", "estimate",
    "claimed_total",
)  # fmt: skip
COLUMNS = ("id", *COUNTS, *COMPONENTS, *EXTRAS, *SIZES, *FACTS)
CHANGE_COLUMNS = ("original_total", "original_active", "difference", "active_difference")  # if any size was changed
MAX_NAMES_IN_CAPTION = 6
INTEGERS = (*COUNTS, *COMPONENTS, *EXTRAS, *SIZES, "context_length")

TERMINAL_COLUMNS = (
    "id", "total", "active", "bytes_fp32", "bytes_bf16", "n_layers", "d_model", "n_heads", "n_kv_heads", "d_head",
    "d_ff", "n_routed_experts", "n_active_experts", "d_expert", "vocab_size", "context_length", "tied",
)  # fmt: skip
PAPER_COLUMNS = (
    "id", "total", "active", "n_layers", "d_model", "n_heads", "n_kv_heads", "d_ff", "n_routed_experts",
    "n_active_experts", "vocab_size",
)  # fmt: skip
EXPERT_COLUMNS = ("active", "n_routed_experts", "n_active_experts", "d_expert")  # hidden if no model has experts
LEFT_ALIGNED = ("id", "name", "family", "publisher", "released", "hf", "architecture", "claimed_total")


def make_frame(models: Iterable[Model]) -> pandas.DataFrame:
    """One row per model: counts, components and sizes; columns of integers are Int64."""
    import pandas

    rows = make_rows(models)
    columns = list_columns(rows)
    frame = pandas.DataFrame([[row[name] for name in columns] for row in rows], columns=list(columns))
    dtypes = dict.fromkeys((*INTEGERS, *columns[len(COLUMNS) :]), "Int64")
    dtypes |= dict.fromkeys(("tied", "verified", "estimate"), "boolean")
    try:
        return frame.astype(dtypes)
    except OverflowError:
        expected = "smaller sizes, or paramcount.count, which has no limit"
        raise ParamcountError("a count is 2⁶³ or more", expected=expected) from None


def make_rows(models: Iterable[Model]) -> list[Row]:
    """One row per model, with its `active_components` for plots; a third-party estimate has no counts."""
    return [_make_estimate_row(model) if model.estimate else _make_row(model, count_model(model)) for model in models]


def list_columns(rows: Sequence[Row]) -> tuple[str, ...]:
    """The columns of the rows."""
    resources = rows[0].get(RESOURCES, ()) if rows else ()
    changes = CHANGE_COLUMNS if any(row.get("set") for row in rows) else ()
    return (*COLUMNS, *resources, *changes)


def add_resources(rows: Sequence[Row], models: Iterable[Model], resources: Mapping[str, Resource]) -> list[Row]:
    """The rows with further columns, whose values are None for third-party estimates."""
    return [
        row
        | {name: None if model.estimate else resource.compute(model) for name, resource in resources.items()}
        | {RESOURCES: resources}
        for row, model in zip(rows, models, strict=True)
    ]


def _make_row(model: Model, count: Count) -> Row:
    """The row of a counted model."""
    sizes = model.sizes
    row: Row = {name: getattr(count, name) for name in (*COUNTS, *EXTRAS)} | dict(count.components)
    for name in SIZES:
        size = getattr(sizes, name, 0)
        row[name] = size if type(size) is int else None  # None: differs between layers, or is not set
    if row["n_kv_heads"] == 0:
        row["n_kv_heads"] = row["n_heads"]
    if row["d_head"] == 0:
        row["d_head"] = getattr(sizes, "d_nope", 0) + getattr(sizes, "d_rope", 0)
    has_no_reference = bool(model.reading.origin) or model.original is not None  # a config.json, or changed sizes
    verified = None if has_no_reference else not isinstance(model.checked, str)
    row |= {"active_components": count.active_components, "tied": count.tied}
    row |= _list_facts(model) | {"verified": verified}
    return row | (_list_changes(model, count) if model.original else dict.fromkeys(CHANGE_COLUMNS))


def _list_changes(model: Model, count: Count) -> Row:
    """The columns about the changed sizes of a model."""
    from paramcount.zoo.what_if import changes_to_dict  # only if sizes were changed

    changes = changes_to_dict(model)
    return changes | {
        "difference": count.total - changes["original_total"],
        "active_difference": count.active - changes["original_active"],
    }


def _make_estimate_row(model: Model) -> Row:
    """The row of a third-party estimate: the totals as printed in their sources, and no computed number."""
    totals = [f"{claim.value} ({claim.by})" for claim in model.claims if claim.what == "total"]
    facts = _list_facts(model) | {"verified": False, "claimed_total": "; ".join(totals) or None}
    return dict.fromkeys((*COLUMNS, *CHANGE_COLUMNS)) | facts


def _list_facts(model: Model) -> Row:
    """The columns that do not depend on the count."""
    names = ("id", "context_length", "name", "family", "publisher", "hf", "architecture", "estimate")
    released = model.released.isoformat() if model.released else None
    return {name: getattr(model, name) for name in names} | {"claimed_total": None, "released": released}


def build_comparison_table(
    rows: Sequence[Row],
    *,
    columns: str | None = None,
    sort: str | None = None,
    transpose: bool = False,
    format: str = "table",
) -> Table:
    """The comparison of models as a table.

    Args:
        rows: From `make_rows`.
        columns: Column names, separated by commas. By default CSV and JSON have every column, LaTeX those that fit a
            page.
        sort: A column; prefix with - for descending.
        transpose: One column per model.
        format: One of `tables.FORMATS`.
    """
    has_all = format in ("csv", "json")
    names = _choose_columns(rows, columns, format)
    rows = sort_rows(rows, sort)
    models = [{name: row[name] for name in (*names, "set") if name in row} for row in rows]
    data = {"schema_version": SCHEMA_VERSION, "models": models}
    resources = rows[0].get(RESOURCES, {}) if rows else {}
    fields = [make_column(name, resources.get(name)) for name in names]
    above, below, caption = describe_row_changes(rows), list_footnotes(rows), make_caption(rows)
    if not transpose:
        cells = [[row[name] if has_all else _mark_cell(row, name) for name in names] for row in rows]
        return Table(fields, cells, data, above=above, below=below, caption=caption)
    headings = [Column("column", "", False), *(Column(row["id"], _mark_cell(row, "id")) for row in rows)]
    cells = []
    for name, field in zip(names, fields, strict=True):
        if name == "id":
            continue
        label = name if has_all else field.label
        cells.append([label, *(row[name] if has_all else field.show(_mark_cell(row, name)) for row in rows)])
    return Table(headings, cells, data, above=above, below=below, caption=caption)


def make_column(name: str, resource: Resource | None) -> Column:
    """The column with this name."""
    if resource:
        return Column(name, resource.label, show=lambda value: "–" if value is None else resource.show(value))
    return Column(name, HEADINGS.get(name, name), name not in LEFT_ALIGNED, FORMATTERS.get(name, format_value))


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
    """An explanation of each mark in the rows."""
    footnotes = []
    if any(row["estimate"] for row in rows):
        footnotes.append("~ third-party estimate, not a count")
    if any(is_unverified(row) for row in rows):
        footnotes.append(UNVERIFIED)
    return footnotes


def make_caption(rows: Sequence[Row]) -> str:
    """The caption of the table in a paper."""
    names = ", ".join(row["id"] for row in rows) if len(rows) <= MAX_NAMES_IN_CAPTION else f"{len(rows)} models"
    return f"Parameter counts of {names}, computed by paramcount"


def sort_rows(rows: Sequence[Row], sort: str | None) -> Sequence[Row]:
    """The rows sorted by a column, descending if it is prefixed with -; rows without a value come last."""
    if sort is None:
        return rows
    (key,) = _find_columns([sort.removeprefix("-")], list_columns(rows))
    with_value = [row for row in rows if row[key] is not None]
    without_value = [row for row in rows if row[key] is None]
    with_value.sort(key=lambda row: row[key], reverse=sort.startswith("-"))
    return with_value + without_value


def format_bytes_or_dash(value: int | None) -> str:
    """A number of bytes; a dash if it is unknown."""
    return "–" if value is None else format_bytes(value)


def format_signed_or_dash(value: int | None) -> str:
    """A difference with its sign; a dash if it is unknown.

    >>> format_signed_or_dash(1024), format_signed_or_dash(-1), format_signed_or_dash(None)
    ('+1,024', '−1', '–')
    """
    return "–" if value is None else f"{value:+,}".replace("-", "−")


FORMATTERS = {
    "bytes_fp32": format_bytes_or_dash,
    "bytes_bf16": format_bytes_or_dash,
    "difference": format_signed_or_dash,
    "active_difference": format_signed_or_dash,
}
UNVERIFIED = "* unverified: not checked against a reference implementation"


def _mark_cell(row: Row, name: str) -> Any:
    """A cell for people: "~" before an estimated total, "*" after the id of an unverified model."""
    if name == "total" and row["claimed_total"]:
        return f"~{row['claimed_total'].partition(' ')[0]}"
    if name in SIZES and row[name] == 0:
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
    return _select_columns(rows, PAPER_COLUMNS if format == "latex" else TERMINAL_COLUMNS)


def _find_columns(names: Iterable[str], columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that names, config.json keys or headings refer to, each once."""
    known = set(columns)
    return tuple(dict.fromkeys(s if (s := name.lower()) in known else find_column(name, columns) for name in names))


def _select_columns(rows: Sequence[Row], columns: Sequence[str]) -> tuple[str, ...]:
    """The columns, without those about experts if no model has any, and with differences if sizes were changed."""
    has_experts = any(row["n_routed_experts"] for row in rows)
    names = [name for name in columns if has_experts or name not in EXPERT_COLUMNS]
    if list_columns(rows) != COLUMNS:
        names.insert(names.index("total") + 1, "difference")
        if has_experts:
            names.insert(names.index("active") + 1, "active_difference")
    return tuple(names)
