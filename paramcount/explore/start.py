"""The first view of the page as HTML: it is there before any script runs."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from paramcount.counting import Count
from paramcount.explore.maps import LABELS, draw_small_map, list_blocks
from paramcount.counting.tree import group_tensors
from paramcount.explore.rows import Row, sort_by_fame, sort_by_release
from paramcount.output.numbers import format_count
from paramcount.zoo import Model, count_model

EXPLAINED = "llama-3.1-8b"  # the model of the large picture: few kinds of tensors, all of them large enough to see
CARDS, CHIPS = 5, 8


def choose_examples(rows: Sequence[Row]) -> tuple[str, list[str]]:
    """(the model of the large picture, those of the small ones)."""
    ids = [row["id"] for row in sort_by_fame(rows)]
    first = EXPLAINED if EXPLAINED in ids else ids[0]
    return first, [id for id in ids if id != first or len(ids) == 1][:CARDS]


def build_start(rows: Sequence[Row], examples: Mapping[str, Model]) -> str:
    """The view: a search, what a parameter count is, famous models, and what the page answers.

    Args:
        examples: The models that `choose_examples` chose.
    """
    first, others = choose_examples(rows)
    number = f"{len(rows):,} language models" if len(rows) > 1 else "one language model"
    chips = [row for row in sort_by_release(rows) if row["released"]][:CHIPS]
    newest = "".join(f"<li>{link_model(row['id'], row['name'])} <small>{row['released'][:7]}</small></li>" for row in chips)
    return f"""<section id="start">
<h1>How big is a language model, and why?</h1>
<p class="lead">Exact parameter counts of {number}, each with its arithmetic, its memory and what happens inside.</p>
<div id="search"><input type="search" aria-label="Search models" placeholder="DeepSeek-V3, Qwen3 8B, llama …"></div>
{explain_count(examples[first])}
<h2>Famous models</h2>
<ul class="cards">{"".join(map(draw_card, (examples[id] for id in others)))}</ul>
{f'<p id="newest">Newest</p><ul class="chips" aria-labelledby="newest">{newest}<li><a href="#browse">all models</a></li></ul>' if newest else ""}
<h2>What do you want to know?</h2>
<ul class="questions">
<li><a href="#model/{write_id(others[0])}"><b>How big is it, and why?</b></a> Total and active parameters, each with its formula, beside what its publisher says.</li>
<li><a href="#fit/{write_id(first)}"><b>Does it fit?</b></a> Memory for weights and KV cache on your GPUs, for your context and users.</li>
<li><a href="#inside/{write_id(first)}"><b>What happens inside?</b></a> Each step of the forward pass with its shapes, weights and cost.</li>
</ul>
</section>"""


def explain_count(model: Model) -> str:
    """The large picture with its sum."""
    count = count_model(model)
    name = html.escape(model.name)
    return f"""<figure class="explained">
{draw_small_map(count, model.name, 150.0, has_labels=True)}
<figcaption>{link_model(model.id, model.name)} is {write_number(count.total)} numbers that training has set: its parameters.
The area of each block is its share of them; each cell is one of its layers. {write_sum(count)}</figcaption>
</figure>"""


def write_sum(count: Count) -> str:
    """The total as a sum of its components, the largest first."""
    components = sorted(((n, name) for name, n in count.components.items() if n), reverse=True)
    terms = " + ".join(f"{write_number(n)} {LABELS[name].lower().replace('lm head', 'LM head')}" for n, name in components)
    return f'<span class="sum">{write_number(count.total)} = {terms}.</span>'


def draw_card(model: Model) -> str:
    count = count_model(model)
    active = "" if count.active == count.total else f", {write_number(count.active)} active"
    return (
        f'<li><a href="#model/{write_id(model.id)}">{draw_small_map(count, model.name, 250.0)}'
        f"<b>{html.escape(model.name)}</b></a> <small>{write_number(count.total)}{active}</small></li>"
    )


def write_number(n: int) -> str:
    """A number as people say it, with all of its digits for those who point at it or copy it."""
    return f'<data value="{n}" title="{n:,}">{format_count(n)}</data>'


def link_model(id: str, name: str) -> str:
    return f'<a href="#model/{write_id(id)}">{html.escape(name)}</a>'


def write_id(id: str) -> str:
    """An id in an address, as state.js writes it."""
    return quote(id, safe="/")
