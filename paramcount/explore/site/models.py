"""The pages about models and families, and the table of all models."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import unescape
from urllib.parse import quote

from paramcount.explore.article.elements import Content, Html, element, join, make_number, make_table
from paramcount.explore.article.parameters import draw_bar
from paramcount.explore.site.frame import WebPage
from paramcount.explore.site.listing import ListedModel, make_place, order_by_release
from paramcount.output.numbers import format_count

MAP_SIZE = (1200, 630)
PREVIEW = "preview.png"
LINK = re.compile(r'<a href="#model/([^"]*)">(.*?)</a>')


def make_model_page(model: ListedModel, places: Mapping[str, str], *, preview: bool) -> WebPage:
    """The page about a model. `places`: {id: the folder of its page}."""
    path = f"models/{model.place}/"
    trail: list[Content] = [element("a", "Models", href="../")]
    if model.family:
        trail += [" / ", element("a", model.family, href=f"../../families/{make_place(model.family)}/")]
    article = link_pages(model.article, places)
    map = element("img", src="map.svg", alt=describe_map(model), width=MAP_SIZE[0], height=MAP_SIZE[1], loading="lazy")
    dark = "; the experts that one token uses are dark" if model.active != model.total else ""
    caption = f"Every tensor, its area in proportion to its parameters{dark}."
    figure = element("figure", element("a", map, href="map.svg"), element("figcaption", caption))
    content = Html(article.replace("</header>", f"</header>{make_play_links(model)}{figure}", 1))
    return WebPage(
        path=path,
        title=f"How big is {model.name}? {format_count(model.total)} parameters",
        description=describe(model),
        content=join((element("p", *trail, class_="trail"), content)),
        preview=path + PREVIEW if preview else "",
    )


def describe(model: ListedModel) -> str:
    """The description of a model's page."""
    active = f", {model.active:,} of them active per token" if model.active != model.total else ""
    return (
        f"{model.name} has {model.total:,} parameters{active}. Where they are, the formulas behind them, "
        "published figures, memory, KV cache and sources."
    )


def describe_map(model: ListedModel) -> str:
    return f"Map of the parameters of {model.name}; the table below lists the same numbers"


def make_play_links(model: ListedModel) -> Html:
    id = quote(model.id, safe="")
    links = {
        f"#change/{id}": "Change its sizes",
        f"#inside/{id}": "See inside",
        f"#fit/{id}": "Does it fit?",
        f"#compare/{id}": "Compare",
    }
    return element(
        "nav",
        *(element("a", name, href=f"../../explore/{fragment}", class_="button") for fragment, name in links.items()),
        class_="play",
        aria_label="Explore this model",
    )


def link_pages(article: str, places: Mapping[str, str]) -> str:
    """An article with links to pages of the site; a model without a page is plain text."""

    def replace_link(link: re.Match[str]) -> str:
        place = places.get(unescape(link[1]))
        return f'<a href="../{place}/">{link[2]}</a>' if place else link[2]

    return LINK.sub(replace_link, article)


def make_table_page(models: Sequence[ListedModel]) -> WebPage:
    """The table of all models."""
    hint = "name, family, publisher or year"
    field = element("input", type="search", id="filter", name="q", autocomplete="off", placeholder=hint)
    search = element("form", element("label", "Filter", for_="filter"), field, class_="filter", role="search")
    count = element("p", f"{len(models):,} models, the latest first.", id="number", role="status")
    table = make_models_table(order_by_release(models), "../models/", bars=False)
    return WebPage(
        path="models/",
        title="All models and their parameters",
        description=f"The exact numbers of parameters of {len(models):,} language models, total and active.",
        content=join((element("h1", "Models"), search, count, table)),
    )


def make_models_table(models: Sequence[ListedModel], folder: str, *, bars: bool) -> Html:
    rows = []
    for model in models:
        row: list[Content] = [
            element("a", model.name, href=f"{folder}{model.place}/"),
            make_number(model.total),
            "" if model.active == model.total else make_number(model.active),
            "" if model.context is None else model.context,
            model.publisher,
            model.released,
        ]
        rows.append([*row[:3], draw_bar(model.components), *row[3:]] if bars else row)
    headings = ["model", "total", "active", *(["components"] if bars else []), "context", "publisher", "released"]
    numbers = (1, 2, 4) if bars else (1, 2, 3)
    return make_table(headings, rows, numbers=numbers, has_labels=True, class_="models")


def make_family_page(family: str, models: Sequence[ListedModel]) -> WebPage:
    """The models of a family, the latest first."""
    path = f"families/{make_place(family)}/"
    trail = element("p", element("a", "Families", href="../"), class_="trail")
    ids = ",".join(quote(model.id, safe="") for model in order_by_release(models)[:4])
    compare = element("a", "Compare the latest", href=f"../../explore/#compare/{ids}", class_="button")
    smallest, largest = min(model.total for model in models), max(model.total for model in models)
    sizes = format_count(smallest) if smallest == largest else f"{format_count(smallest)} to {format_count(largest)}"
    number = f"{len(models):,} model{'s' * (len(models) != 1)}"
    return WebPage(
        path=path,
        title=f"The {family} family: {number}, {sizes} parameters",
        description=f"The exact numbers of parameters of {number} of the {family} family, {sizes}, by component.",
        content=join(
            (
                trail,
                element("h1", f"The {family} family"),
                element("p", f"{number}, {sizes} parameters.", class_="lead"),
                element("nav", compare, class_="play", aria_label="Explore this family"),
                make_models_table(order_by_release(models), "../../models/", bars=True),
            )
        ),
    )


def make_families_page(families: Mapping[str, Sequence[ListedModel]]) -> WebPage:
    """All families."""
    rows = []
    for family, models in sorted(families.items()):
        largest = max(models, key=lambda model: model.total)
        publishers = dict.fromkeys(model.publisher for model in order_by_release(models) if model.publisher)
        dates = sorted(model.released for model in models if model.released)
        rows.append(
            [
                element("a", family, href=f"{make_place(family)}/"),
                len(models),
                make_number(largest.total),
                ", ".join(list(publishers)[:3]),
                dates[-1] if dates else "",
            ]
        )
    table = make_table(
        ["family", "models", "largest", "publisher", "latest"], rows, numbers=(1, 2), has_labels=True, class_="models"
    )
    return WebPage(
        path="families/",
        title="Families of language models",
        description=f"{len(families):,} families of language models with the exact sizes of their models.",
        content=join((element("h1", "Families"), table)),
    )
