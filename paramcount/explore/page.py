"""One HTML file with the data of some models and the program that shows them. It asks for nothing from the network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from paramcount.drawing.colours import COLOURS
from paramcount.errors import ParamcountError
from paramcount.explore.models import export_models
from paramcount.version import __version__
from paramcount.zoo import Model, load_all
from paramcount.zoo.cache import hash_sources, read_cache, write_cache

FOLDER = Path(__file__).parent
COLUMNS = ("id", "name", "family", "architecture", "released", "total", "active")  # of the table without scripts
LARGEST_LEVEL = 9  # of compression
HARMLESS = str.maketrans("<>&", ",:.")  # data.js has the alphabet
CACHED = "explore"  # the kind of cache that has the data of the whole zoo
RECORDS = ("models", "structures", "parts", "drawings")  # the data of a page that are lists of records


def build_page(models: Sequence[Model]) -> str:
    """The page about these models.

    Raises: ParamcountError if there is none.
    """
    if not models:
        raise ParamcountError("no models to explore", expected="at least one")
    return assemble(export_models(models))


def build_zoo_page() -> str:
    """The page about all models of the zoo, whose data are kept in the cache.

    Raises: ParamcountError for an entry that cannot be read.
    """
    key = hash_sources()
    cached = read_cache(key, CACHED)
    if cached is not None:
        return assemble(json.loads(cached))
    data = export_models(model for model in load_all() if not model.estimate)
    write_cache(key, json.dumps(data).encode(), CACHED)
    return assemble(data)


def assemble(models: dict[str, Any]) -> str:
    """The page with its data, style and program."""
    data = models | {"colors": dict(COLOURS), "version": __version__}
    script = (FOLDER / "page.js").read_text(encoding="utf-8")
    return fill_template(
        (FOLDER / "page.html").read_text(encoding="utf-8"),
        {
            "style": (FOLDER / "style.css").read_text(encoding="utf-8"),
            "script": script,
            "script_hash": hash_script(f"\n{script}\n"),
            "data": compress(data),
            "table": build_table(data["models"]),
        },
    )


def fill_template(template: str, values: dict[str, str]) -> str:
    """The template with `{{name}}` replaced; values are not searched again."""
    pieces = template.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [values[name], rest]
    return "".join(filled)


def hash_script(script: str) -> str:
    """The hash of a script as a Content-Security-Policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def compress(data: dict[str, Any]) -> str:
    """JSON, compressed, as text without a character that HTML could read: base85 with other characters for < > &."""
    text = json.dumps(store_as_columns(data), ensure_ascii=False, separators=(",", ":"))
    return base64.b85encode(gzip.compress(text.encode(), LARGEST_LEVEL, mtime=0)).decode().translate(HARMLESS)


def build_table(models: Iterable[dict[str, Any]]) -> str:
    """The models as an HTML table, for readers whose browser runs no scripts."""
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    rows = ("".join(f"<td>{format_cell(model[name])}</td>" for name in COLUMNS) for model in models)
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def format_cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else html.escape(str(value))


# JSON has each key once, and values of one key, which are alike, compress better side by side.


def store_as_columns(data: dict[str, Any]) -> dict[str, Any]:
    """The data of a page with its records as columns. data.js reads them."""
    return data | {name: make_columns(data[name]) for name in RECORDS}


def make_columns(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """{"order": the kind of each record, "kinds": for each kind its keys, and the values of each key}.

    >>> make_columns([{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    {'order': [0, 0], 'kinds': [{'keys': ['a', 'b'], 'columns': [[1, 3], [2, 4]]}]}
    """
    kinds: dict[tuple[str, ...], int] = {}
    order = [kinds.setdefault(tuple(record), len(kinds)) for record in records]
    columns: list[list[list[Any]]] = [[[] for _ in keys] for keys in kinds]
    for record, kind in zip(records, order):
        for column, value in zip(columns[kind], record.values()):
            column.append(value)
    return {"order": order, "kinds": [{"keys": list(keys), "columns": columns[kind]} for keys, kind in kinds.items()]}
