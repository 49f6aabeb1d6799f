"""One HTML file with the data of some models and the program that shows them. It asks for nothing from the network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from paramcount.errors import ParamcountError
from paramcount.explore.maps import write_colour_rules
from paramcount.explore.rows import Row, export_rows, list_rows, read_rows
from paramcount.explore.start import build_start, choose_examples
from paramcount.version import __version__
from paramcount.zoo import Model, list_ids, load_entry

FOLDER = Path(__file__).parent
ZOO = FOLDER / "zoo.json.gz"  # the data of the built-in models: `python -m tests.refresh_page` writes it
COLUMNS = ("id", "name", "family", "architecture", "released", "total", "active")  # of the table without scripts
LARGEST_LEVEL = 9  # of compression
STYLES = ("style.css", "article.css", "run.css")
HARMLESS = str.maketrans("<>&", ",:.")  # data.js has the alphabet
FIRST = 0xE000  # of the characters for private use, which no article has: they stand for phrases
MOST = 2500  # phrases
PIECE = re.compile(r"(?:<[^>]*>)+|[^<]+")
FOLDED = re.compile("[\ue000-\uf8ff]")
RECORDS = ("models", "structures", "parts", "drawings")  # the data of a page that are lists of records
# The number of values in a line: the page parses a line when it needs one of them, and longer ones compress better
BLOCKS = {
    "models": 100, "structures": 300, "parts": 4000, "expressions": 10**6, "packings": 10**6, "drawings": 100,
    "words": 10**6,
}  # fmt: skip


def build_page(models: Sequence[Model]) -> str:
    """The page about these models.

    Raises: ParamcountError if there is none.
    """
    if not models:
        raise ParamcountError("no models to explore", expected="at least one")
    from paramcount.explore.models import export_models

    return assemble([compress(export_models(models))], list(list_rows(models)), models)


def build_zoo_page() -> str:
    """The page about all models of the zoo. The data of built-in models are part of the package.

    Raises: ParamcountError for an entry that cannot be read.
    """
    built_in = set(list_ids(own=False))
    own = [model for id in list_ids() if id not in built_in and not (model := load_entry(id)).estimate]
    data, rows = [ZOO.read_bytes()], [*read_rows(), *list_rows(own)]
    if own:
        from paramcount.explore.models import export_models

        data.append(compress(export_models(own)))
    return assemble(data, rows, own)


def assemble(data: Iterable[bytes], rows: Sequence[Row], models: Iterable[Model]) -> str:
    """The page with its data, style and program.

    Args:
        data: From `compress`; models share structures with others of the same data.
        rows: Of all models.
        models: Those that are not built in, at least.
    """
    from paramcount.explore.tiny_models import export_tiny_models

    loaded = {model.id: model for model in models}
    first, others = choose_examples(rows)
    examples = {id: loaded[id] if id in loaded else load_entry(id) for id in (first, *others)}
    early, script = ((FOLDER / name).read_text(encoding="utf-8").strip() for name in ("early.js", "page.js"))
    elements = [
        ("rows", compress_lines([make_columns(export_rows(rows))])),
        *(("data", part) for part in data),
        ("tiny-models", export_tiny_models()),
    ]
    return fill_template(
        (FOLDER / "page.html").read_text(encoding="utf-8"),
        {
            "style": "\n".join(
                [write_colour_rules(), *((FOLDER / name).read_text(encoding="utf-8") for name in STYLES)]
            ),
            "early": early,
            "early_hash": hash_script(f"\n{early}\n"),
            "script": script,
            "script_hash": hash_script(f"\n{script}\n"),
            "version": __version__,
            "start": build_start(rows, examples),
            "data": "\n".join(
                f'<script type="application/octet-stream" class="{kind}">{encode(part)}</script>'
                for kind, part in elements
            ),
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
    """The data of a page as compressed lines of JSON: its fields, then blocks of values. blocks.js reads them, and
    data.js the phrases of articles."""
    phrases = find_phrases(model["article"] for model in data["models"])
    models = [model | {"article": fold(model["article"], phrases)} for model in data["models"]]
    data = data | {"models": models, "phrases": phrases}
    blocks = [(name, size, len(data[name])) for name, size in BLOCKS.items()]
    fields = {name: value for name, value in data.items() if name not in BLOCKS}
    first = {"ids": [model["id"] for model in data["models"]], "layout": blocks, "fields": fields}
    lines = (
        make_columns(values) if name in RECORDS else values
        for name, size, length in blocks
        for values in (data[name][start : start + size] for start in range(0, length, size))
    )
    return compress_lines([first, *lines])


def compress_lines(lines: Iterable[Any]) -> bytes:
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    return gzip.compress(text.encode(), LARGEST_LEVEL, mtime=0)


def expand(compressed: bytes) -> dict[str, Any]:
    """The data that `compress` was given."""
    first, *lines = map(json.loads, gzip.decompress(compressed).splitlines())
    data: dict[str, Any] = first["fields"]
    for name, size, length in first["layout"]:
        read, lines = lines[: ceil(length / size)], lines[ceil(length / size) :]
        data[name] = [value for line in read for value in (list_records(**line) if name in RECORDS else line)]
    phrases = data.pop("phrases", [])
    for model in data["models"]:
        model["article"] = unfold(model.get("article", ""), phrases)
    return data


def encode(data: bytes) -> str:
    """Bytes as text without a character that HTML could read: base85 with other characters for < > &."""
    return base64.b85encode(data).decode().translate(HARMLESS)


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


# Articles with a character in place of each frequent phrase, which compress to three quarters.


def find_phrases(articles: Iterable[str]) -> list[str]:
    """The tags and texts that save the most characters, each at least twice in the articles.

    >>> find_phrases(["<b>one</b>", "<b>two</b>"])
    ['</b>', '<b>']
    """
    uses = Counter(piece for article in articles for piece in PIECE.findall(article))
    savings = {piece: (len(piece) - 1) * n for piece, n in uses.items() if n > 1 and len(piece) > 1}
    return sorted(savings, key=lambda piece: (-savings[piece], piece))[:MOST]


def fold(article: str, phrases: Sequence[str]) -> str:
    """An article with a character for each phrase.

    >>> phrases = ["</b>", "<b>"]
    >>> len(fold("<b>one</b>", phrases)), unfold(fold("<b>one</b>", phrases), phrases)
    (5, '<b>one</b>')
    """
    characters = {phrase: chr(FIRST + i) for i, phrase in enumerate(phrases)}
    return "".join(characters.get(piece, piece) for piece in PIECE.findall(article))


def unfold(folded: str, phrases: Sequence[str]) -> str:
    """The article that `fold` was given. data.js does the same."""
    return FOLDED.sub(lambda match: phrases[ord(match[0]) - FIRST], folded)
