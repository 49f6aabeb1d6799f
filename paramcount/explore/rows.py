"""A row for each model: facts that the page shows before it reads the structures of models."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from typing import Any

from paramcount.costs.columns import RESOURCES
from paramcount.symbolic.trees import to_json
from paramcount.zoo import CONFIGS, Model, count_model
from paramcount.zoo.columns import FIELDS, FURTHER_FIELDS

Row = dict[str, Any]
NAMES = (
    "id", "name", "family", "publisher", "released", "hf", "architecture", "aliases", "own", "context_length",
    "total", "reference_total", "active", "embedding", "experts", "mlp", "kv_per_token",
)  # fmt: skip
# Known to most readers: first in searches, and examples at the start of the page
FAMOUS = (
    "deepseek-v3", "gpt-oss-120b", "qwen3-8b", "gpt2-small", "kimi-k2", "llama-3.1-8b", "qwen3.5-397b-a17b",
    "llama-3.1-70b", "llama-3.1-405b", "gpt-oss-20b", "deepseek-r1", "mixtral-8x7b", "mistral-7b-v0.1", "qwen3-0.6b",
    "qwen3-235b-a22b", "gemma-3-27b", "gpt2-xl", "phi-4", "bert-base-uncased", "mamba-2.8b",
    "whisper-large-v3", "t5-base", "falcon-180b",
)  # fmt: skip


def get_fields() -> dict[str, Any]:
    """The columns of the rows, by name."""
    fields = {field.name: field for field in (*FIELDS, *FURTHER_FIELDS, *RESOURCES)}
    return {name: fields[name] for name in NAMES}


def list_rows(models: Iterable[Model]) -> Iterator[Row]:
    fields = get_fields()
    for model in models:
        count = count_model(model)
        row = {name: field.compute(model, count) for name, field in fields.items()}
        yield row | {"aliases": json.loads(row["aliases"])}


def read_rows() -> Iterator[Row]:
    """The rows of the built-in models as the table of the zoo has them, without third-party estimates."""
    parse: dict[str, Any] = {"integer": int, "flag": "true".__eq__}
    types = {name: parse.get(field.type, str) for name, field in get_fields().items()} | {"aliases": json.loads}
    with (CONFIGS / "zoo.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["estimate"] == "false":
                yield {name: read(row[name]) if row[name] else None for name, read in types.items()}


def export_rows(rows: Iterable[Row]) -> list[Row]:
    """The rows as data for the page, famous models first. Integers that JavaScript cannot hold exactly are trees."""
    return [
        {name: to_json(value) if type(value) is int else value for name, value in row.items()}
        for row in sort_by_fame(rows)
    ]


def sort_by_release(rows: Iterable[Row]) -> list[Row]:
    """The newest first; models without a date last."""
    return sorted(rows, key=lambda row: row["released"] or "", reverse=True)


def sort_by_fame(rows: Iterable[Row]) -> list[Row]:
    """The famous models first, in the order of FAMOUS, then the newest."""
    places = {id: place for place, id in enumerate(FAMOUS)}
    return sorted(sort_by_release(rows), key=lambda row: places.get(row["id"], len(FAMOUS)))
