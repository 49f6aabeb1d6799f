"""BibTeX: a model with the count of its sizes, each of its sources with the figures that it states, and paramcount."""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from paramcount.counting.count import Count
from paramcount.output.latex_tables import escape_latex
from paramcount.output.tables import format_value
from paramcount.version import __version__
from paramcount.zoo.entries import Source
from paramcount.zoo.links import find_link, link_source
from paramcount.zoo.model import Model

TITLE = "exact parameter counts of language models"
AUTHOR = "The paramcount authors"
RELEASED = datetime.date(2026, 11, 21)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")  # macros of every style
KINDS = {  # {kind of a source: what it is called in a title}
    "config_json": "config.json",
    "mirror": "copy",
    "paper": "paper",
    "model_card": "model card",
    "reference_default": "defaults of the reference implementation",
    "safetensors_index": "index of the released files",
    "publisher": "publisher's page",
    "secondary": "secondary source",
}
FIGURES = {  # {what a published figure counts: its name in a note}
    "unspecified": "parameters",
    "checkpoint": "values in the released files",
    "active_without_input_embedding": "active without input embedding",
}


@dataclass(frozen=True)
class Citation:
    """An entry of a bibliography. The fields are plain text; `url` has no characters that BibTeX reads."""

    key: str
    fields: dict[str, str] = field(hash=False)

    def to_dict(self) -> dict[str, str]:
        return {"key": self.key, "type": "misc", **self.fields}


def cite_model(model: Model, count: Count | None = None) -> tuple[Citation, ...]:
    """The model itself, then its sources in the order of its entry. `count`: what paramcount counts for its sizes."""
    key = make_key(model.id)
    what = "its sizes are unpublished; the figures are third-party estimates" if model.estimate else ""
    if count is not None:
        active = "" if count.active == count.total else f", {count.active:,} of them active per token"
        what = f"{count.total:,} parameters{active}, as paramcount {__version__} counts its sizes"
    fields = {"author": model.publisher or "", "title": model.name, "note": what}
    if model.released:
        fields |= format_month(model.released)
        fields["note"] = "; ".join([f"released {model.released.isoformat()}", *([what] if what else [])])
    if model.hf:
        fields["url"] = link_source(f"HF {model.hf}") or ""
    return (make_citation(key, fields), *(cite_source(model, source) for source in model.sources))


def cite_source(model: Model, source: Source) -> Citation:
    """One source of a model: its address, the figures that it states, and when it was accessed."""
    link = find_link(source.ref)
    title = f"{model.name}: {KINDS[source.kind]}"
    fields = {"author": link.owner if link else "", "title": title, "note": describe_source(model, source)}
    if link:
        fields["url"] = link.url
    return make_citation(
        f"{make_key(model.id)}:{make_key(source.id)}", fields | {"urldate": source.accessed.isoformat()}
    )


def describe_source(model: Model, source: Source) -> str:
    """What a source is cited for, where it says so, and the date of access."""
    figures = [
        f"{format_value(figure.value)} {FIGURES.get(figure.what, figure.what).replace('_', ' ')}"
        for figure in model.published
        if figure.source == source.id
    ]
    figures += [f"{claim.value} {claim.what} (estimate)" for claim in model.claims if claim.source == source.id]
    stated = [f"states {', '.join(figures)}"] if figures else []
    return "; ".join([*stated, source.ref, f"accessed {source.accessed.isoformat()}"])


def cite_paramcount() -> Citation:
    """The entry of paramcount, as in CITATION.cff."""
    fields = {
        "author": AUTHOR,
        "title": f"paramcount: {TITLE}",
        **format_month(RELEASED),
        "version": __version__,
        "note": f"Version {__version__}",
    }
    return make_citation("paramcount", fields)


def format_month(day: datetime.date) -> dict[str, str]:
    return {"year": str(day.year), "month": MONTHS[day.month - 1]}


def make_citation(key: str, fields: dict[str, str]) -> Citation:
    return Citation(key, {name: text for name, text in fields.items() if text})


def make_key(name: str) -> str:
    """A name in the characters that BibTeX and biber accept in a key. A name that has others gets a checksum, so that
    two names never have the same key.

    >>> make_key("deepseek-v3"), make_key("a{b}")
    ('deepseek-v3', 'a-b-b8a4b706')
    """
    key = re.sub(r"[^A-Za-z0-9._+-]+", "-", name)
    return key if key == name else f"{key.strip('-')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}".lstrip("-")


def render_bibtex(citations: Iterable[Citation]) -> str:
    """The entries as a .bib file, each key once."""
    unique = {citation.key: citation for citation in citations}
    return "\n".join(map(render_citation, unique.values()))


def render_citation(citation: Citation) -> str:
    fields = "".join(f"  {name} = {format_field(name, text)},\n" for name, text in citation.fields.items())
    return f"@misc{{{citation.key},\n{fields}}}\n"


def format_field(name: str, text: str) -> str:
    """A field for BibTeX: a month as its macro, an address as it is, other text escaped. BibTeX counts escaped braces
    too, so they are named; a second pair keeps the names of organisations and the capitals of titles."""
    if name == "month":
        return text
    if name != "url":
        left, right = r"\textbraceleft{}", r"\textbraceright{}"
        text = escape_latex(text).replace(r"\{", left).replace(r"\}", right)
    return f"{{{{{text}}}}}" if name in ("author", "title") else f"{{{text}}}"
