"""Many models side by side: one row each, the same columns everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paramcount.counting import COMPONENTS, SCHEMA_VERSION, Count
from paramcount.errors import ParamcountError
from paramcount.output.numbers import format_bytes
from paramcount.output.tables import Column, Table, format_value
from paramcount.zoo import Model, count_model
from paramcount.zoo.aliases import HEADINGS, find_column

if TYPE_CHECKING:
    import pandas

COUNTS = ("total", "active", "non_embedding", "active_non_embedding", "language_model")
BESIDE = ("buffers", "mtp", "bytes_fp32", "bytes_bf16")
SIZES = (
    "n_layers",
    "d_model",
    "n_heads",
    "n_kv_heads",
    "d_head",
    "d_ff",
    "n_routed_experts",
    "n_active_experts",
    "n_shared_experts",
    "d_expert",
    "d_shared_expert",
    "vocab_size",
)
FACTS = ("context_length", "tied", "name", "family", "publisher", "released", "hf", "architecture", "verified", "estimate", "claimed_total")
COLUMNS = ("id", *COUNTS, *COMPONENTS, *BESIDE, *SIZES, *FACTS)
WHAT_IF = ("original_total", "original_active", "difference", "active_difference")  # columns beside these where some model is a what-if
MOST_IN_CAPTION = 6
INTEGERS = (*COUNTS, *COMPONENTS, *BESIDE, *SIZES, "context_length")

PEOPLE = (
    "id", "total", "active", "bytes_fp32", "bytes_bf16", "n_layers", "d_model", "n_heads", "n_kv_heads", "d_head", "d_ff",
    "n_routed_experts", "n_active_experts", "d_expert", "vocab_size", "context_length", "tied",
)  # fmt: skip
PAPER = (
    "id", "total", "active", "n_layers", "d_model", "n_heads", "n_kv_heads", "d_ff", "n_routed_experts", "n_active_experts", "vocab_size",
)  # fmt: skip
LEFT = ("id", "name", "family", "publisher", "released", "hf", "architecture", "claimed_total")


def make_frame(models: Iterable[Model]) -> pandas.DataFrame:
    """One row per model: counts, components and sizes; columns of integers are Int64."""
    import pandas

    rows = rows_of(models)
    columns = columns_of(rows)
    frame = pandas.DataFrame([[row[name] for name in columns] for row in rows], columns=list(columns))
    kinds = dict.fromkeys((*INTEGERS, *columns[len(COLUMNS) :]), "Int64") | {"tied": "boolean", "verified": "boolean", "estimate": "boolean"}
    try:
        return frame.astype(kinds)
    except OverflowError:
        raise ParamcountError("a count of 2⁶³ or more", expected="smaller sizes, or paramcount.count, which has no limit") from None


def rows_of(models: Iterable[Model]) -> list[dict[str, Any]]:
    """{column: value} of each model, and its `active_components` for a plot; an estimate has none."""
    return [_claimed(model) if model.estimate else _row(model, count_model(model)) for model in models]


def columns_of(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The columns that rows have."""
    return (*COLUMNS, *WHAT_IF) if any(row.get("set") for row in rows) else COLUMNS


def _row(model: Model, count: Count) -> dict[str, Any]:
    sizes = model.sizes
    row: dict[str, Any] = {name: getattr(count, name) for name in (*COUNTS, *BESIDE)} | dict(count.components)
    for name in SIZES:
        size = getattr(sizes, name, 0)
        row[name] = size if type(size) is int else None  # None: layers differ in it, or it is left open
    if row["n_kv_heads"] == 0:
        row["n_kv_heads"] = row["n_heads"]
    if row["d_head"] == 0:
        row["d_head"] = getattr(sizes, "d_nope", 0) + getattr(sizes, "d_rope", 0)
    from_config = bool(model.reading.origin)  # of which nobody says more than its config.json
    row |= {"active_components": count.active_components, "tied": count.tied}
    row |= _facts(model) | {"verified": None if from_config or model.original else not isinstance(model.checked, str)}
    return row | (_changes(model, count) if model.original else dict.fromkeys(WHAT_IF))


def _changes(model: Model, count: Count) -> dict[str, Any]:
    from paramcount.zoo.what_if import changes_to_dict  # only where something is changed

    found = changes_to_dict(model)
    return found | {"difference": count.total - found["original_total"], "active_difference": count.active - found["original_active"]}


def _claimed(model: Model) -> dict[str, Any]:
    """An estimate's row: what others claim of its total, as they print it, and nothing that would have to be computed."""
    claims = [f"{claim.value} ({claim.by})" for claim in model.claims if claim.what == "total"]
    return dict.fromkeys((*COLUMNS, *WHAT_IF)) | _facts(model) | {"verified": False, "claimed_total": "; ".join(claims) or None}


def _facts(model: Model) -> dict[str, Any]:
    names = ("id", "context_length", "name", "family", "publisher", "hf", "architecture", "estimate")
    return {name: getattr(model, name) for name in names} | {"claimed_total": None, "released": model.released.isoformat() if model.released else None}


def table(rows: Sequence[dict[str, Any]], *, columns: str | None = None, sort: str | None = None, transpose: bool = False, format: str = "table") -> Table:
    """The comparison as a table. `columns`: a list with commas; `sort`: a column, "-" before it for the largest first; `format`: one of
    tables.FORMATS. Unless `columns` picks, CSV and JSON have every column, LaTeX those that fit a page."""
    full = format in ("csv", "json")
    picked = _picked(columns, columns_of(rows)) if columns else columns_of(rows) if full else _for_people(rows, PAPER if format == "latex" else PEOPLE)
    rows = in_order(rows, sort)
    below = ["~ an estimate: what others claim, never a count"] if any(row["estimate"] for row in rows) else []
    below += ["* unverified: nobody has counted it independently"] if any(unverified(row) for row in rows) else []
    data = {"schema_version": SCHEMA_VERSION, "models": [{name: row[name] for name in picked} | ({"set": row["set"]} if "set" in row else {}) for row in rows]}
    shown = [Column(name, HEADINGS.get(name, name), name not in LEFT, SHOWN.get(name, format_value)) for name in picked]
    above = settings(rows)
    cell = (lambda row, name: row[name]) if full else _marked
    caption = f"Parameter counts of {', '.join(row['id'] for row in rows) if len(rows) <= MOST_IN_CAPTION else f'{len(rows)} models'}, as counted by paramcount"
    if not transpose:
        return Table(shown, [[cell(row, name) for name in picked] for row in rows], data, above=above, below=below, caption=caption)
    headings = [Column("column", "", False), *(Column(row["id"], _marked(row, "id")) for row in rows)]
    cells = [
        [name if full else column.label, *(row[name] if full else column.show(_marked(row, name)) for row in rows)]
        for name, column in zip(picked, shown, strict=True)
        if name != "id"
    ]
    return Table(headings, cells, data, above=above, below=below, caption=caption)


def settings(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is set in what-ifs, each once."""
    if not any(row.get("set") for row in rows):
        return []
    from paramcount.sizes.values import format_size

    texts = [", ".join(f"{name} = {format_size(after)}" for name, (_, after) in row["set"].items()) for row in rows if row.get("set")]
    return [f"what if {text}" for text in dict.fromkeys(texts)]


def in_order(rows: Sequence[dict[str, Any]], sort: str | None) -> Sequence[dict[str, Any]]:
    """The rows by a column, "-" before it for the largest first; those of which it is unknown come last."""
    if sort is None:
        return rows
    (key,) = _known([sort.removeprefix("-")], columns_of(rows))
    known = [row for row in rows if row[key] is not None]
    return sorted(known, key=lambda row: row[key], reverse=sort.startswith("-")) + [row for row in rows if row[key] is None]


def short_bytes_or_dash(value: int | None) -> str:
    return "–" if value is None else format_bytes(value)


def signed_or_dash(value: int | None) -> str:
    return "–" if value is None else f"{value:+,}".replace("-", "−")


SHOWN = {"bytes_fp32": short_bytes_or_dash, "bytes_bf16": short_bytes_or_dash, "difference": signed_or_dash, "active_difference": signed_or_dash}


def _marked(row: dict[str, Any], name: str) -> Any:
    """A cell for people. A claimed total must never look like a counted one."""
    if name == "total" and row["claimed_total"]:
        return f"~{row['claimed_total'].partition(' ')[0]}"
    if name in SIZES and row[name] == 0:
        return None  # the model has no such size
    return f"{row['id']} *" if name == "id" and unverified(row) else row[name]


def unverified(row: Mapping[str, Any]) -> bool:
    """Whether nobody has counted a row's model independently."""
    return row["verified"] is False and not row["estimate"]


def _picked(columns: str, known: Sequence[str]) -> tuple[str, ...]:
    return _known(["id", *(name.strip() for name in columns.split(",") if name.strip())], known)


def _known(names: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(find_column(name, known) for name in names))


def _for_people(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> tuple[str, ...]:
    """The columns people compare, without those that say nothing about these models."""
    mixtures = any(row["n_routed_experts"] for row in rows)
    kept = [name for name in columns if mixtures or name not in ("active", "n_routed_experts", "n_active_experts", "d_expert")]
    if columns_of(rows) != COLUMNS:
        kept.insert(kept.index("total") + 1, "difference")
        if mixtures:
            kept.insert(kept.index("active") + 1, "active_difference")
    return tuple(kept)
