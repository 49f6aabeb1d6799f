"""The start page: the search, what a parameter count is, and famous models with their maps."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from paramcount.explore.article.elements import Html, element, join, make_number
from paramcount.explore.rows import FAMOUS
from paramcount.explore.site.frame import WebPage
from paramcount.explore.site.lesson import draw_lesson
from paramcount.explore.site.listing import ListedModel, order_by_release
from paramcount.explore.site.models import MAP_SIZE, describe_map

MOST = 5  # famous models
QUESTION = "How big is a language model, and why?"


def make_start_page(models: Sequence[ListedModel], *, preview: bool) -> WebPage:
    """The page that opens first."""
    by_id = {model.id: model for model in models}
    famous = [by_id[id] for id in FAMOUS if id in by_id][:MOST] or order_by_release(models)[:MOST]
    first = famous[0]
    answer = f"Exact parameter counts of {len(models):,} models, from their configs alone, with the arithmetic."

    return WebPage(
        path="",
        title=f"paramcount: {QUESTION[0].lower()}{QUESTION[1:]}",
        description=answer,
        content=join(
            (
                element(
                    "section",
                    element("h1", QUESTION),
                    element("p", answer, class_="lead"),
                    make_search(),
                    class_="hero",
                ),
                make_ways(first),
                element("section", element("h2", "What a parameter count is"), draw_lesson()),
                element(
                    "section",
                    element("h2", "Where the parameters are"),
                    element("div", *map(make_card, famous), class_="cards"),
                    element("p", element("a", f"All {len(models):,} models", href="models/")),
                ),
            )
        ),
        preview=f"models/{first.place}/preview.png" if preview else "",
    )


def make_search() -> Html:
    """A field that finds models; without scripts it opens the table of all models."""
    field = element(
        "input", type="search", id="search", name="q", autocomplete="off", placeholder="DeepSeek-V3, Qwen3 8B, GPT-2 …"
    )
    label = element("label", "Find a model", for_="search")
    found = element("ul", id="found", hidden=True)
    button = element("button", "Find")
    return element("form", label, field, button, found, action="models/", class_="search", role="search")


def make_ways(model: ListedModel) -> Html:
    """Links into the three things that people come for."""
    id = quote(model.id, safe="")
    ways = [
        (f"models/{model.place}/", "How big, and why?", "Total and active parameters, and the formulas behind them."),
        (f"explore/#fit/{id}", "Does it fit?", "Weights, KV cache and overhead on your GPUs."),
        (f"explore/#inside/{id}", "What happens inside?", "Each step of the forward pass, with shapes and weights."),
    ]
    links = (element("a", element("b", name), element("span", text), href=href) for href, name, text in ways)
    return element("nav", *links, class_="ways", aria_label="What you can find out")


def make_card(model: ListedModel) -> Html:
    map = element(
        "img", src=f"models/{model.place}/map.svg", alt=describe_map(model), width=MAP_SIZE[0], height=MAP_SIZE[1],
        loading="lazy",
    )  # fmt: skip
    active = [" · ", make_number(model.active), " active"] if model.active != model.total else []
    text = element("p", element("b", model.name), " ", make_number(model.total), *active)
    return element("a", map, text, href=f"models/{model.place}/", class_="card")
