"""Where the facts of a model come from."""

from __future__ import annotations

from paramcount.counting.count import Count
from paramcount.explore.article.elements import (
    Html,
    element,
    escape_content,
    join,
    make_command,
    make_list,
    make_section,
)
from paramcount.zoo import Model
from paramcount.zoo.citations import cite_model, render_bibtex
from paramcount.zoo.links import split_links


def render_notes(model: Model, count: Count) -> Html:
    notes = [*model.notes, *count.notes, *count.warnings]
    return make_section("Notes", [], make_list(notes)) if notes else Html("")


def render_sources(model: Model, count: Count) -> Html:
    items = [join((render_reference(source.ref), f" (accessed {source.accessed})")) for source in model.sources]
    links = [make_link(f"https://huggingface.co/{model.hf}", f"{model.hf} on Hugging Face")] if model.hf else []
    if not items and not links:
        return Html("")
    lines = render_bibtex(cite_model(model, count)[:1]).strip().splitlines()
    citation = element("pre", Html("\n".join(map(escape_content, lines))), tabindex=0)
    return make_section("Sources", [make_command("cite", model.id)], make_list([*links, *items]), citation)


def render_reference(ref: str) -> Html:
    """A reference with its repositories and addresses as links."""
    return join(make_link(url, text) if url else text for text, url in split_links(ref))


def make_link(url: str, text: str) -> Html:
    return element("a", text, href=url, rel="noopener")
