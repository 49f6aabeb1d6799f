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


# {size or column: what people call it, as fold_heading writes it, beside its heading and config.json key}
SPOKEN = {
    "total": ("params", "param", "parameters", "n params", "total params", "total parameters", "size"),
    "active": ("active params", "active parameters"),
    "vocab_size": ("vocab", "vocabulary", "vocabulary size"),
    "d_model": ("hidden", "hidden size", "hidden dim", "embedding dim", "dim", "width"),
    "n_layers": ("layers", "depth"),
    "d_ff": ("ffn", "ffn size", "ffn dim", "mlp size", "intermediate"),
    "n_heads": ("heads", "attention heads"),
    "n_kv_heads": ("kv heads", "key value heads"),
    "d_head": ("head dim", "head size"),
    "n_routed_experts": ("experts", "num experts"),
    "n_active_experts": ("active experts", "experts per token", "top k"),
    "context": ("ctx", "context size", "max length"),
    "n_positions": ("positions", "ctx", "context", "context length", "context size", "max length"),
    "released": ("date", "release date"),
    "publisher": ("author", "org", "organization"),
}


def find_spoken(name: str, fields: Collection[str]) -> list[str]:
    """The field that people call so.

    >>> find_spoken("params", ["total", "active"]), find_spoken("KV heads", ["n_kv_heads"])
    (['total'], ['n_kv_heads'])
    """
    return [field for field, names in SPOKEN.items() if field in fields and fold_heading(name) in names][:1]


def find_nearest_fields(name: str, fields: Collection[str]) -> tuple[str, ...]:
    """The fields whose name, heading or spoken name is nearest to a misspelt one, best first.

    >>> find_nearest_fields("parms", ["total", "active"])
    ('total',)
    """
    names = {field: field for field in fields}
    for field in fields:
        names.setdefault(fold_heading(HEADINGS.get(field, field)), field)
    for field, spoken in SPOKEN.items():
        if field in fields:
            names = {**dict.fromkeys(spoken, field), **names}
    return tuple(dict.fromkeys(names[near] for near in find_nearest(name, names)))


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
        matches = find_spoken(name, columns)
    if not matches:
        matches = [field for field in map_keys_to_fields().get(name, ()) if field in columns]
    if len(matches) == 1:
        return matches[0]
    raise UnknownColumnError(
        f"unknown column {make_printable(name, 40)!r}",
        expected=list_names(columns, name),
        nearest=matches or find_nearest_fields(name, columns),
    )
