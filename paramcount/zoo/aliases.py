"""Aliases of sizes and columns: config.json keys and table headings."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from paramcount.errors import ParamcountError, find_nearest, list_names, make_printable
from paramcount.sizes import USUAL
from paramcount.sizes.setting_keys import ENTRY_FIELDS
from paramcount.zoo.catalog import PACKAGE
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
def read_keys() -> dict[str, Any]:
    """{"fields": {config.json key or field: the fields of architectures that it names}, "encoders": their sizes}.

    `python -m tests.refresh_index` writes them, because asking every architecture takes most of a second.
    """
    keys: dict[str, Any] = json.loads((PACKAGE / "architectures/keys.json").read_text(encoding="utf-8"))
    return keys


def is_size_name(name: str) -> bool:
    """Whether a word may name a size of some architecture: its field, its config.json key or what people call it.

    >>> is_size_name("d_kv_lora"), is_size_name("vision.d_model"), is_size_name("totl")
    (True, True, False)
    """
    last, fields = name.rpartition(".")[2], read_keys()["fields"]
    is_known = last in fields or last in read_keys()["encoders"]
    return is_known or bool(find_by_heading(last, fields) or find_spoken(last, SPOKEN))


class UnknownColumnError(ParamcountError):
    """Raised for a name that refers to no column."""


class PossibleSizeError(UnknownColumnError):
    """Raised for a name that refers to no column, but perhaps to a size of a model that is not loaded yet."""


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
        matches = [field for field in read_keys()["fields"].get(name, ()) if field in columns]
    if len(matches) == 1:
        return matches[0]
    error_class = PossibleSizeError if is_size_name(name) else UnknownColumnError
    raise error_class(
        f"unknown column {make_printable(name, 40)!r}",
        expected=list_names(columns, name),
        nearest=matches or find_nearest_fields(name, columns),
    )
