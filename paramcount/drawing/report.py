"""Renders a report on models as one self-contained HTML page without scripts."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from paramcount.counting.count import Count
from paramcount.errors import ParamcountError, make_extra_error, make_printable
from paramcount.explaining.explain import explain_model
from paramcount.explaining.explanation import Explanation
from paramcount.explaining.render_text import describe_experts, format_active_sum, list_expert_sums, list_labels
from paramcount.explaining.why import Why, describe_difference, explain_figures, render_equation
from paramcount.output.numbers import describe_verdict, format_count
from paramcount.output.tables import Table, format_cells
from paramcount.tracing.render import describe_scope, describe_step, list_footnotes
from paramcount.tracing.run import choose_length, trace_model
from paramcount.tracing.shapes import TraceOptions
from paramcount.tracing.trace import Scope, Step, Trace
from paramcount.version import __version__
from paramcount.views.compare import Row, build_comparison_table, make_rows, select_columns
from paramcount.views.model import build_model_table, describe_count
from paramcount.zoo import Model, count_model
from paramcount.zoo.checks import Check, run_checks, summarize_checks
from paramcount.zoo.what_if import describe_changes

if TYPE_CHECKING:
    from markupsafe import Markup

TEMPLATE = Path(__file__).with_name("report.html.jinja")
TOKENS = 5  # in each trace
FAR_APART = 30  # ratio of the largest to the smallest total above which bars use a log scale
COMPARED = (  # columns of the table of all models, which fits a page; the bars have the components
    "id", "total", "active", "bytes_fp32", "bytes_bf16", "n_layers", "d_model", "n_heads", "n_kv_heads", "d_head",
    "d_ff", "n_routed_experts", "n_active_experts", "d_expert", "vocab_size", "context_length",
)  # fmt: skip
MAX_MODELS = 200  # in one report
LONGEST = 4000  # characters of one text
BARS_LABEL = "Bar chart: total and active parameters of each model by component; the table lists the same numbers"


class Stretch(NamedTuple):
    """Consecutive steps of a trace in the same layers or experts."""

    headings: tuple[tuple[int, str, str], ...]  # of the blocks that begin here: (depth, number and kind, module)
    depth: int
    steps: tuple[tuple[Step, str], ...]  # with their shapes as text


@dataclass(frozen=True)
class Chapter:
    """The section of the page about one model."""

    anchor: str
    model: Model
    count: Count | None  # None for an estimate
    headline: str = ""
    proof: str = ""
    changes: Sequence[str] = ()
    overview: Table | None = None
    footnotes: Sequence[str] = ()
    drawing: Markup | None = None
    drawing_error: str = ""  # why there is no drawing
    explanation: Explanation | None = None
    trace: Trace | None = None
    trace_error: str = ""  # why there is no trace
    published: Sequence[tuple[Check, str]] = ()  # with an explanation of the difference


def render_page(models: Sequence[Model]) -> str:
    """The report on loaded models as HTML."""
    if not models:
        raise ParamcountError("no models to report on", expected="at least one")
    if len(models) > MAX_MODELS:
        raise ParamcountError(f"{len(models):,} models in one report", expected=f"at most {MAX_MODELS}")
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError:
        raise make_extra_error("a report", "plot") from None
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: _finalize(value, Markup),
    )
    environment.filters |= {
        "words": describe_verdict,
        "cells": format_cells,
        "label_cells": lambda text: Markup(label_cells(text)),  # noqa: S704 from the template, escaped there
        "inner": lambda text: _mark_inner(text, Markup),
        "stretches": split_trace,
        "footnotes": list_footnotes,
        "labels": list_labels,
        "expert_heading": describe_experts,
        "expert_sums": list_expert_sums,
        "active_sum": format_active_sum,
    }
    rows = make_rows(models) if len(models) > 1 else []
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    html: str = template.render(
        version=__version__,
        chapters=[make_chapter(model, f"m{i}", Markup) for i, model in enumerate(models, 1)],
        comparison=build_comparison_table(rows, columns=",".join(select_columns(rows, COMPARED))) if rows else None,
        bars=_draw_bars(rows, Markup) if any(not row["estimate"] for row in rows) else None,
    )
    return html


def label_cells(table: str) -> str:
    """The HTML of a table with the heading of its column at each cell: narrow screens show it beside the value.

    >>> label_cells('<tr><th scope="col">a</th><th scope="col">b</th></tr><tr><th>1</th><td>2</td></tr>')
    '<tr><th scope="col">a</th><th scope="col">b</th></tr><tr><th>1</th><td data-label="b">2</td></tr>'
    """
    _, *headings = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)

    def label_row(row: re.Match[str]) -> str:
        rest = iter(headings)
        return re.sub("<td", lambda _: f'<td data-label="{next(rest)}"', row[0])

    return re.sub("<tr>.*?</tr>", label_row, table, flags=re.DOTALL)


def make_chapter(model: Model, anchor: str, safe: Callable[[str], Markup]) -> Chapter:
    """The section about one model. `safe` marks the drawing as trusted markup."""
    from paramcount.drawing.pictures import draw_model

    if model.estimate:
        return Chapter(anchor, model, None)
    count = count_model(model)
    unit = "parameters of the language model" if count.scope == "language_model" else "parameters"
    chapter = Chapter(
        anchor=anchor,
        model=model,
        count=count,
        headline=f"{unit} ({format_count(count.total)})",
        proof="" if model.original else summarize_checks(model, count),
        changes=describe_changes(model),
        overview=build_model_table(model, count),
        footnotes=describe_count(count),
        explanation=explain_model(model),
        published=list_published(model, count),
    )
    try:
        drawing = draw_model(model)
        svg = safe(drawing.svg(id=f"{anchor}-drawing"))
        chapter = replace(chapter, drawing=svg)
    except ParamcountError as error:
        chapter = replace(chapter, drawing_error=f"No drawing: {error}")
    try:
        return replace(chapter, trace=trace_model(model, TraceOptions(choose_length(model, TOKENS))))
    except ParamcountError as error:
        return replace(chapter, trace_error=f"No trace: {error}")


def list_published(model: Model, count: Count) -> list[tuple[Check, str]]:
    """The reference count and each published figure, with an explanation if it differs from the count."""
    answers = iter(explain_figures(model) if model.published else ())
    return [
        (check, "" if check.what == "reference" else describe_reason(next(answers)))
        for check in run_checks(model, count)
    ]


def describe_reason(why: Why) -> str:
    """Why a figure differs from the count; "" if it does not."""
    if not why.ok:
        return describe_difference(why)
    if all(not account.causes for account in why.accounts):
        return ""
    return " or ".join(f"{render_equation(account)} = {account.value:,}" for account in why.accounts)


def split_trace(steps: Sequence[Step]) -> Iterator[Stretch]:
    previous: tuple[Scope, ...] = ()
    for scopes, group in groupby(steps, key=lambda step: step.scopes):
        first = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(previous, scopes)))
        headings = tuple((depth, *describe_scope(scope)) for depth, scope in enumerate(scopes) if depth >= first)
        yield Stretch(headings, len(scopes), tuple((step, describe_step(step)) for step in group))
        previous = scopes


def _finalize(value: object, safe: type[Markup]) -> Markup | str:
    """A value as the template prints it: grouped digits, no control characters. Jinja escapes it afterwards."""
    if isinstance(value, safe):
        return value
    return f"{value:,}" if type(value) is int else make_printable(value, LONGEST)


def _mark_inner(text: str, safe: type[Markup]) -> Markup:
    marked = safe('<b class="inner">{}</b>')
    pieces = [
        marked.format(piece[1:-1]) if piece.startswith("‹") else piece
        for piece in re.split("(‹[^‹›]*›)", make_printable(text, LONGEST))
    ]
    return safe("").join(pieces)


def _draw_bars(rows: Sequence[Row], safe: Callable[[str], Markup]) -> Markup:
    """The bar chart of all models as an SVG element without namespaces and styles."""
    from paramcount.drawing.bars import Scale, plot_rows

    totals = [row["total"] for row in rows if not row["estimate"]]
    scale: Scale = "log" if max(totals) > FAR_APART * min(totals) else "linear"
    root = ET.fromstring(plot_rows(rows, scale=scale, paper=False))  # noqa: S314 our own SVG
    for element in list(root.iter()):
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in ("metadata", "style", "title"):
                parent.remove(child)
    root.attrib |= {"role": "img", "aria-label": BARS_LABEL}
    return safe(ET.tostring(root, encoding="unicode"))
