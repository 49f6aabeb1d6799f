"""A report on one or several models: one HTML page that needs nothing beside it and runs nothing."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcount import __version__
from paramcount.counting.count import Count
from paramcount.errors import ParamcountError, make_printable
from paramcount.explaining.explain import explain_model
from paramcount.explaining.explanation import Explanation
from paramcount.explaining.render_text import active_sum, labels
from paramcount.explaining.render_text import heading as visit_heading
from paramcount.explaining.render_text import rows_of as visit_rows
from paramcount.explaining.why import Why, explain_figures
from paramcount.output.numbers import format_count
from paramcount.output.tables import Table, choose_by_extension, format_cells
from paramcount.tracing.render import describe_scope, describe_step, list_footnotes
from paramcount.tracing.run import trace_model
from paramcount.tracing.trace import Scope, Step, Trace
from paramcount.tracing.walk import TraceOptions
from paramcount.views.compare import rows_of
from paramcount.views.compare import table as comparison
from paramcount.views.model import beside
from paramcount.views.model import table as overview
from paramcount.zoo import Model, count_model
from paramcount.zoo.checks import Check, run_checks, summarize_checks
from paramcount.zoo.what_if import describe_changes

if TYPE_CHECKING:
    from markupsafe import Markup

TEMPLATE = Path(__file__).with_name("report.html.jinja")
ENDINGS = (".html", ".htm")
TOKENS = 5  # that go through each model
FAR_APART = 30  # between the largest and the smallest: bars of one page are then on a log scale
MOST = 200  # models in one report
LONGEST = 4000  # letters of one text


class Stretch(NamedTuple):
    """Steps of a trace that stand under the same repeats."""

    headings: tuple[tuple[int, str, str], ...]  # of the repeats that begin here: (how deep, how often, where)
    depth: int
    steps: tuple[tuple[Step, str], ...]  # each with what it does, in shapes


@dataclass(frozen=True)
class Chapter:
    """What the page says of one model."""

    anchor: str
    model: Model
    count: Count | None  # None of an estimate
    headline: str = ""
    proof: str = ""
    changes: Sequence[str] = ()
    overview: Table | None = None
    beside: Sequence[str] = ()
    drawing: Markup | None = None
    drawing_width: str = ""  # pixels, as CSS has them
    undrawn: str = ""  # why there is no drawing
    explanation: Explanation | None = None
    trace: Trace | None = None
    untraced: str = ""  # why there is no trace
    published: Sequence[tuple[Check, str]] = ()  # each with what else the figure counts


def check_ending(path: str) -> None:
    """Nothing where a file can hold a report.

    Raises: ParamcountError for any ending but .html.
    """
    choose_by_extension(path, dict.fromkeys(ENDINGS), "report")


def render_page(models: Sequence[Model]) -> str:
    """The report on loaded models."""
    if not models:
        raise ParamcountError("no models to report on", expected="at least one")
    if len(models) > MOST:
        raise ParamcountError(f"{len(models):,} models in one report", expected=f"at most {MOST}")
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError:
        raise ParamcountError("reports need the [plot] extra", expected="pip install 'paramcount[plot]'") from None
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=lambda value: _finalized(value, Markup)
    )
    environment.filters |= {"cells": format_cells, "inner": lambda text: _inner(text, Markup), "stretches": stretches, "footnotes": list_footnotes}
    environment.filters |= {"labels": labels, "visit_heading": visit_heading, "visit_rows": visit_rows, "active_sum": active_sum}
    rows = rows_of(models) if len(models) > 1 else []
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    html: str = template.render(
        version=__version__,
        chapters=[chapter(model, f"m{i}", Markup) for i, model in enumerate(models, 1)],
        comparison=comparison(rows) if rows else None,
        bars=_bars(rows, Markup) if any(not row["estimate"] for row in rows) else None,
    )
    return html


def chapter(model: Model, anchor: str, safe: Callable[[str], Markup]) -> Chapter:
    """What there is to say of a model. `safe`: marks our own drawing as markup."""
    from paramcount.drawing.pictures import draw_model

    if model.estimate:
        return Chapter(anchor, model, None)
    count = count_model(model)
    what = "parameters of the language model" if count.scope == "language_model" else "parameters"
    found = Chapter(
        anchor=anchor,
        model=model,
        count=count,
        headline=f"{what} ({format_count(count.total)})",
        proof="" if model.original else summarize_checks(model, count),
        changes=describe_changes(model),
        overview=overview(model, count),
        beside=beside(count),
        explanation=explain_model(model),
        published=publications(model, count),
    )
    try:
        drawing = draw_model(model)
        found = replace(found, drawing=safe(drawing.svg(id=f"{anchor}-drawing")), drawing_width=f"{drawing.width:.0f}")
    except ParamcountError as error:
        found = replace(found, undrawn=f"No drawing: {error}")
    try:
        n_positions = getattr(model.sizes, "n_positions", None)
        tokens = min(TOKENS, n_positions) if type(n_positions) is int else TOKENS
        return replace(found, trace=trace_model(model, TraceOptions(tokens)))
    except ParamcountError as error:
        return replace(found, untraced=f"No trace: {error}")


def publications(model: Model, count: Count) -> list[tuple[Check, str]]:
    """The reference's count and every published figure, each with the causes where it counts something else."""
    answers = iter(explain_figures(model) if model.published else ())
    return [(check, "" if check.what == "reference" else reason(next(answers))) for check in run_checks(model, count)]


def reason(why: Why) -> str:
    """What a figure counts, where it is not the count itself."""
    if not why.ok:
        return f"not reproducible, {f'{why.left_over:+,}'.replace('-', '−')} left over"
    if all(not account.causes for account in why.accounts):
        return ""
    return " or ".join(f"{account.base} {account.count:,} {account.terms} = {account.value:,}" for account in why.accounts)


def stretches(steps: Sequence[Step]) -> Iterator[Stretch]:
    """A trace cut where a stack of layers or an expert begins or ends."""
    standing: tuple[Scope, ...] = ()
    for under, inside in groupby(steps, key=lambda step: step.scopes):
        shared = sum(1 for _ in _shared(standing, under))
        headings = tuple((depth, *describe_scope(each)) for depth, each in enumerate(under) if depth >= shared)
        yield Stretch(headings, len(under), tuple((step, describe_step(step)) for step in inside))
        standing = under


def _shared(a: Sequence[Scope], b: Sequence[Scope]) -> Iterator[Scope]:
    for one, other in zip(a, b):
        if one != other:
            return
        yield one


def _finalized(value: Any, safe: type[Markup]) -> Any:
    """Whatever a template prints: digits grouped, no control characters. Escaping comes after it."""
    if isinstance(value, safe):
        return value
    return f"{value:,}" if type(value) is int else make_printable(value, LONGEST)


def _inner(text: str, safe: type[Markup]) -> Markup:
    """Shapes with the two widths that meet in a product marked alike: ‹768›."""
    marked = safe('<b class="inner">{}</b>')
    pieces = [marked.format(piece[1:-1]) if piece.startswith("‹") else piece for piece in re.split("(‹[^‹›]*›)", make_printable(text, LONGEST))]
    return safe("").join(pieces)


def _bars(rows: Sequence[dict[str, Any]], safe: Callable[[str], Markup]) -> Markup:
    """The bars of all models, as an element of the page: without the names and the style that a file of its own has."""
    from paramcount.drawing.bars import plot_rows

    totals = [row["total"] for row in rows if not row["estimate"]]
    root = ET.fromstring(plot_rows(rows, scale="log" if max(totals) > FAR_APART * min(totals) else "linear", paper=False))  # noqa: S314
    for element in list(root.iter()):
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in ("metadata", "style", "title"):
                parent.remove(child)
    root.attrib |= {"role": "img", "aria-label": "Bars: the components of each model, in total and active; the table has the same as numbers"}
    return safe(ET.tostring(root, encoding="unicode"))
