"""One HTML file with the data of some models and the program that shows them. It asks for nothing from the network."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from paramcount.errors import ParamcountError
from paramcount.version import __version__
from paramcount.zoo import CONFIGS, Model, list_ids, load_entry

FOLDER = Path(__file__).parent
ZOO = FOLDER / "zoo.json.gz"  # the data of the built-in models: `python -m tests.refresh_page` writes it
COLUMNS = ("id", "name", "family", "architecture", "released", "total", "active")  # of the table without scripts
LARGEST_LEVEL = 9  # of compression
STYLES = ("style.css", "article.css", "run.css")
HARMLESS = str.maketrans("<>&", ",:.")  # data.js has the alphabet
RECORDS = ("models", "structures", "parts", "drawings")  # the data of a page that are lists of records


def build_page(models: Sequence[Model]) -> str:
    """The page about these models.

    Raises: ParamcountError if there is none.
    """
    if not models:
        raise ParamcountError("no models to explore", expected="at least one")
    from paramcount.explore.models import export_models

    data = export_models(models)
    return assemble([compress(data)], data["models"])


def build_zoo_page() -> str:
    """The page about all models of the zoo. The data of built-in models are part of the package.

    Raises: ParamcountError for an entry that cannot be read.
    """
    built_in, rows = set(list_ids(own=False)), read_rows()
    own = [model for id in list_ids() if id not in built_in and not (model := load_entry(id)).estimate]
    if not own:
        return assemble([ZOO.read_bytes()], rows)
    from paramcount.explore.models import export_models

    data = export_models(own)
    return assemble([ZOO.read_bytes(), compress(data)], [*rows, *data["models"]])


def assemble(data: Iterable[bytes], rows: Iterable[Mapping[str, Any]]) -> str:
    """The page with its data, style and program.

    Args:
        data: From `compress`; models share structures with others of the same data.
        rows: Of the table without scripts.
    """
    from paramcount.explore.tiny_models import export_tiny_models

    script = (FOLDER / "page.js").read_text(encoding="utf-8")
    scripts = [f'<script type="application/octet-stream">{encode(part)}</script>' for part in data]
    scripts.append(f'<script type="application/x-tiny-models">{encode(export_tiny_models())}</script>')
    return fill_template(
        (FOLDER / "page.html").read_text(encoding="utf-8"),
        {
            "style": "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in STYLES),
            "script": script,
            "script_hash": hash_script(f"\n{script}\n"),
            "version": __version__,
            "data": "\n".join(scripts),
            "table": build_table(rows),
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


def compress(data: dict[str, Any]) -> bytes:
    """The data of a page as compressed JSON."""
    text = json.dumps(store_as_columns(data), ensure_ascii=False, separators=(",", ":"))
    return gzip.compress(text.encode(), LARGEST_LEVEL, mtime=0)


def expand(data: bytes) -> dict[str, Any]:
    """The data that `compress` was given."""
    stored: dict[str, Any] = json.loads(gzip.decompress(data))
    return stored | {name: list_records(**stored[name]) for name in RECORDS}


def encode(data: bytes) -> str:
    """Bytes as text without a character that HTML could read: base85 with other characters for < > &."""
    return base64.b85encode(data).decode().translate(HARMLESS)


def read_rows() -> list[dict[str, Any]]:
    """The built-in models in the table of the zoo, without third-party estimates."""
    with (CONFIGS / "zoo.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["estimate"] == "false"]
    return [row | {name: int(row[name]) for name in ("total", "active")} for row in rows]


def build_table(models: Iterable[Mapping[str, Any]]) -> str:
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


def list_records(order: Sequence[int], kinds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The records that `make_columns` was given.

    >>> list_records(**make_columns([{"a": 1, "b": 2}, {"a": 3, "b": 4}, {"c": 5}]))
    [{'a': 1, 'b': 2}, {'a': 3, 'b': 4}, {'c': 5}]
    """
    rows = [zip(*kind["columns"]) for kind in kinds]
    return [dict(zip(kinds[kind]["keys"], next(rows[kind]))) for kind in order]
