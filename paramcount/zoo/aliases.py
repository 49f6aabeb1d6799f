"""Aliases of sizes and columns: config.json keys and table headings."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache

from paramcount.errors import ParamcountError, find_nearest, list_names, make_printable
from paramcount.sizes import USUAL, get_key, inner_configs
from paramcount.sizes.setting_keys import ENTRY_FIELDS
from paramcount.zoo.columns import HEADINGS

# {config.json key: column} of columns that are not sizes.
FACT_KEYS = {**ENTRY_FIELDS, "tie_word_embeddings": "tied"}


def fold_heading(name: str) -> str:
    """A name without case, spaces, hyphens and underscores.

    >>> fold_heading("KV heads") == fold_heading("kv_heads")
    True
    """
    return re.sub(r"[\s_\-]+", " ", name.casefold()).strip(" .")


def find_by_heading(name: str, fields: Collection[str]) -> list[str]:
    """The fields with this table heading."""
    return [field for field in fields if fold_heading(HEADINGS.get(field, field)) == fold_heading(name)]


@cache
def map_keys_to_fields() -> dict[str, tuple[str, ...]]:
    """{config.json key: the fields that some architecture reads from it}. Loads every architecture."""
    from paramcount.architectures import ARCHITECTURES, architecture

    fields_by_key: dict[str, set[str]] = {}
    for sizes in {architecture(name) for name in ARCHITECTURES}:
        for field in sizes.fields.keys() - inner_configs(sizes):
            for key in get_key(sizes, field).spellings(field):
                fields_by_key.setdefault(re.split(r"[./]", key)[-1], set()).add(field)
    return {key: tuple(sorted(fields)) for key, fields in fields_by_key.items()}


class UnknownColumnError(ParamcountError):
    """Raised for a name that refers to no column."""


def find_column(name: str, columns: Sequence[str]) -> str:
    """The column that a name, a heading or a config.json key refers to.

    >>> [find_column(name, ["n_layers", "n_kv_heads"]) for name in ("n_layers", "KV heads", "n_layer")]
    ['n_layers', 'n_kv_heads', 'n_layers']

    Raises: UnknownColumnError if it refers to no column, or to several.
    """
    if name in columns:
        return name
    matches = find_by_heading(name, columns)
    if not matches:
        usual_keys = [*USUAL.items(), *((field, key) for key, field in FACT_KEYS.items())]
        matches = [field for field, key in usual_keys if key == name and field in columns]
    if not matches:
        matches = [field for field in map_keys_to_fields().get(name, ()) if field in columns]
    if len(matches) == 1:
        return matches[0]
    raise UnknownColumnError(
        f"unknown column {make_printable(name, 40)!r}",
        expected=list_names(columns, name),
        nearest=matches or find_nearest(name, columns),
    )
