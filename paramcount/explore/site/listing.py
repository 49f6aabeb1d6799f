"""The models of a site, and the places of their pages."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from paramcount.counting.components import COMPONENTS
from paramcount.explore.article import render_article
from paramcount.explore.page import ZOO, expand
from paramcount.zoo import CONFIGS, Model, count_model, list_ids, load_entry

LONGEST = 100  # characters of the name of a folder


@dataclass(frozen=True)
class ListedModel:
    """A model with a page."""

    id: str
    place: str  # the name of its folder
    name: str
    family: str  # "" if it has none
    publisher: str
    released: str  # "2024-12-26", or "" if unknown
    total: int
    active: int
    context: int | None
    components: Mapping[str, int]
    article: str


def list_zoo_models() -> Iterable[ListedModel]:
    """All models of the zoo with known sizes. The articles about built-in models are part of the package."""
    articles = {model["id"]: model.get("article") for model in expand(ZOO.read_bytes())["models"]}
    with (CONFIGS / "zoo.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["estimate"] == "false":
                yield read_row(row, articles.get(row["id"]) or render_article(load_entry(row["id"])))
    built_in = set(list_ids(own=False))
    for id in list_ids():
        if id not in built_in and not (model := load_entry(id)).estimate:
            yield describe_model(model)


def read_row(row: Mapping[str, Any], article: str) -> ListedModel:
    return ListedModel(
        id=row["id"],
        place=make_place(row["id"]),
        name=row["name"],
        family=row["family"],
        publisher=row["publisher"],
        released=row["released"],
        total=int(row["total"]),
        active=int(row["active"]),
        context=int(row["context_length"]) if row["context_length"] else None,
        components={name: int(row[name]) for name in COMPONENTS},
        article=article,
    )


def describe_model(model: Model) -> ListedModel:
    count = count_model(model)
    return ListedModel(
        id=model.id,
        place=make_place(model.id),
        name=model.name,
        family=model.family or "",
        publisher=model.publisher or "",
        released=model.released.isoformat() if model.released else "",
        total=count.total,
        active=count.active,
        context=model.context_length,
        components=count.components,
        article=render_article(model),
    )


def make_place(name: str) -> str:
    """The name of a folder for a model or a family, whatever its name: "my-model" for "../My model".

    >>> make_place("gpt2-small"), make_place("../My model"), make_place("...")
    ('gpt2-small', 'my-model', 'model')
    """
    return re.sub("[^a-z0-9.]+", "-", name.lower()).strip("-.")[:LONGEST].strip("-.") or "model"


def order_by_release(models: Iterable[ListedModel]) -> list[ListedModel]:
    """The latest first, those without a date last; the largest first of one day."""
    return sorted(models, key=lambda model: (model.released, model.total), reverse=True)
