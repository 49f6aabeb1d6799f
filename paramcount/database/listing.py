"""The models of `paramcount list`: the table `models`, searched, filtered and with the columns named."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import paramcount.zoo as zoo
from paramcount.database.fields import FieldSelection, select_fields
from paramcount.database.filters import Filter, parse_filter
from paramcount.database.store import Watch, read_rows, watch_ids
from paramcount.database.tables import find_table
from paramcount.errors import LONGEST
from paramcount.views.compare import CHANGE_COLUMNS, COLUMNS, FURTHER, Row, add_fields
from paramcount.zoo import Model
from paramcount.zoo.aliases import PossibleSizeError
from paramcount.zoo.names import matches_name


class Listing(NamedTuple):
    """The selected models, and the columns that were named."""

    rows: list[Row]
    columns: str | None
    sort: str | None


def list_model_rows(*, estimates: bool, watch: Watch | None = None) -> list[Row]:
    """A row for each model of the zoo, with the columns of comparisons and those of the database. `watch`: as in
    `open_database`."""
    fields = find_table("models").fields
    names = [field.name for field in fields]
    further = {field.name: field for field in fields if field.name not in COLUMNS}
    rest: Row = dict.fromkeys(CHANGE_COLUMNS) | {FURTHER: further}
    rows = [dict(zip(names, row)) | rest for row in read_rows(find_table("models"), watch)]
    return [row for row in rows if estimates or not row["estimate"]]


def search_rows(rows: Sequence[Row], words: Sequence[str]) -> list[Row]:
    """The rows that match every word, whatever its case, spaces, hyphens and underscores: a part of the id, name,
    family, publisher, Hugging Face id or an alias, or a wildcard for one of them."""
    patterns = [word[:LONGEST] for word in words]
    return [row for row in rows if all(any(matches_name(word, name) for name in list_names(row)) for word in patterns)]


def list_names(row: Row) -> list[str]:
    """The names of a model, of its family and of its publisher."""
    names = [row[name] for name in ("id", "name", "family", "publisher", "hf")]
    return [name for name in (*names, *json.loads(row["aliases"])) if name]


def select_rows(
    rows: list[Row], where: str | None, columns: str | None, sort: str | None, watch: Watch | None = None
) -> Listing:
    """The rows for which a filter holds, with the columns that are named in it, in `columns` and in `sort`.

    The models are loaded only for a column that the table does not have: a size or a weight format. `watch`: is told
    how many of them are.

    Raises: ParamcountError for an unknown column and for an invalid filter.
    """
    if where is None and columns is None and sort is None:
        return Listing(rows, None, None)
    models: list[Model] = []
    try:
        filter, selection = read_options(models, where, columns, sort)
    except PossibleSizeError:
        models = [zoo.load_entry(id) for id in watch_ids(list(zoo.list_ids()), watch)]
        filter, selection = read_options(models, where, columns, sort)
    missing = {name: field for name, field in selection.further.items() if rows and name not in rows[0]}
    if missing:
        rows = add_fields(rows, [zoo.load_entry(row["id"]) for row in rows], missing)
    return Listing([row for row in rows if filter is None or filter.matches(row)], selection.columns, selection.sort)


def read_options(
    models: Sequence[Model], where: str | None, columns: str | None, sort: str | None
) -> tuple[Filter | None, FieldSelection]:
    filter = parse_filter(where, models) if where is not None else None
    return filter, select_fields(models, columns, sort, filter.fields if filter else ())
