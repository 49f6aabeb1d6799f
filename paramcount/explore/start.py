"""The first view of the page as HTML: it is there before any script runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from paramcount.counting import Count
from paramcount.explore.article.elements import Html, element, join, make_number
from paramcount.explore.maps import draw_small_map
from paramcount.explore.rows import Row, sort_by_fame, sort_by_release
from paramcount.output.weight_names import name_group
from paramcount.zoo import Model, count_model

EXPLAINED = "llama-3.1-8b"  # the model of the large picture: few kinds of tensors, all of them large enough to see
CARDS, CHIPS = 5, 8
QUESTIONS = (
    (
        "model",
        "How big is it, and why?",
        "Total and active parameters with their formulas, beside the published figures.",
    ),
    ("fit", "Does it fit?", "Memory for weights and KV cache on your GPUs, for your context and users."),
    ("inside", "What happens inside?", "Each step of the forward pass with its shapes, weights and cost."),
)


def choose_examples(rows: Sequence[Row]) -> tuple[str, list[str]]:
    """(the model of the large picture, those of the small ones)."""
    ids = [row["id"] for row in sort_by_fame(rows)]
    first = EXPLAINED if EXPLAINED in ids else ids[0]
    return first, [id for id in ids if id != first][:CARDS]


def build_start(rows: Sequence[Row], examples: Mapping[str, Model]) -> Html:
    """The view: a search, what a parameter count is, famous models, and what the page answers.

    Args:
        examples: The models that `choose_examples` chose.
    """
    first, others = choose_examples(rows)
    number = f"{len(rows):,} language models" if len(rows) > 1 else "one language model"
    lead = f"Exact parameter counts of {number}, with their arithmetic, memory and what happens inside."
    search = Html('<input type="search" aria-label="Search models" placeholder="DeepSeek-V3, Qwen3 8B, llama …">')
    return element(
        "section",
        element("h1", "How big is a language model, and why?"),
        element("p", lead, class_="lead"),
        element("div", search, id="search"),
        explain_count(examples[first]),
        show_cards([examples[id] for id in others]),
        list_newest(rows),
        element("h2", "What do you want to know?"),
        element("ul", *(element("li", ask(*question, id=first)) for question in QUESTIONS), class_="questions"),
        id="start",
    )


def explain_count(model: Model) -> Html:
    """The large picture with its sum."""
    count = count_model(model)
    number = make_number(count.total)
    caption = element(
        "figcaption",
        *(link_model(model.id, model.name), " has ", number, " parameters: the numbers that are learned in training. "),
        "The area of each block is its share of them, and each cell in it is one layer. ",
        element("span", number, " = ", *list_terms(count), ".", class_="sum"),
    )
    return element("figure", draw_small_map(count, model.name, 150.0, has_labels=True), caption, class_="explained")


def list_terms(count: Count) -> list[Html | str]:
    """The components as a sum, the largest first."""
    components = sorted(((n, name) for name, n in count.components.items() if n), reverse=True)
    terms = [(make_number(n), f" {name_group(name)}", " + ") for n, name in components]
    return [text for term in terms for text in term][:-1]


def show_cards(models: Sequence[Model]) -> Html:
    """The small maps of some models, and what is dark in them."""
    if not models:
        return Html("")
    has_experts = any(count_model(model).active != count_model(model).total for model in models)
    dark = element("p", "Dark: the experts that one token uses.", class_="hint") if has_experts else ""
    return join((element("h2", "Famous models"), element("ul", *map(draw_card, models), class_="cards"), dark))


def draw_card(model: Model) -> Html:
    count = count_model(model)
    active = () if count.active == count.total else (", ", make_number(count.active), " active")
    picture = draw_small_map(count, model.name, 250.0)
    link = element("a", picture, element("b", model.name), href=f"#model/{write_id(model.id)}")
    return element("li", link, element("small", make_number(count.total), *active))


def list_newest(rows: Sequence[Row]) -> Html:
    newest = [row for row in sort_by_release(rows) if row["released"]][:CHIPS]
    if not newest:
        return Html("")
    chips = [
        element("li", link_model(row["id"], row["name"]), " ", element("small", row["released"])) for row in newest
    ]
    more = element("li", element("a", "all models", href="#browse"))
    return join((element("h2", "Newest", id="newest"), element("ul", *chips, more, class_="chips")))


def ask(view: str, question: str, answer: str, *, id: str) -> Html:
    return join((element("a", element("b", question), href=f"#{view}/{write_id(id)}"), " ", answer))


def link_model(id: str, name: str) -> Html:
    return element("a", name, href=f"#model/{write_id(id)}")


def write_id(id: str) -> str:
    """An id in an address, as state.js writes it."""
    return quote(id, safe="/")
