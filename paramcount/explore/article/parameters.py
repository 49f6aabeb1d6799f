"""Where the parameters are: the bar, the formulas, the experts, and the published figures."""

from __future__ import annotations

from collections.abc import Iterator

from paramcount.counting.count import Count
from paramcount.drawing.colours import COLOURS
from paramcount.drawing.report import list_published
from paramcount.explaining.explanation import Component, ExpertGroup, Explanation, Line
from paramcount.explaining.render_text import describe_experts, format_active_sum, list_expert_sums, list_labels
from paramcount.explore.article.elements import Content, Html, element, join, make_command, make_section, make_table
from paramcount.output.numbers import describe_verdict, format_share
from paramcount.views.model import describe_count
from paramcount.zoo import Model

BAR = 1000  # units of the width of the bar


def render_parameters(model: Model, count: Count, explanation: Explanation) -> Html:
    rows = [row for component in explanation.components for row in list_rows(component, count)]
    total = [element("b", "total"), element("b", count.total), "", ""]
    table = make_table(["component", "parameters", "share", "why"], [*rows, total], numbers=(1, 2))
    lines = [element("li", line) for line in describe_count(count)]
    commands = [make_command("show", model.id), make_command("explain", model.id), make_command("map", model.id)]
    return make_section("Where the parameters are", commands, draw_bar(count), table, element("ul", *lines))


def list_rows(component: Component, count: Count) -> Iterator[list[Content]]:
    """The rows of a component: its sum, with its formula; or the sum, and a row for each of several formulas."""
    colour = COLOURS[component.name]
    swatch = element(
        "svg", Html(f'<rect width="10" height="10" rx="2" fill="{colour}"/>'), class_="swatch", viewBox="0 0 10 10",
        aria_hidden="true",
    )  # fmt: skip
    share = format_share(component.value, count.total)
    name = join((swatch, component.name))
    if len(component.lines) == 1:
        yield [name, component.value, share, render_formula(component.lines[0], component)]
        return
    yield [name, component.value, share, ""]
    for line in component.lines:
        label = ", ".join(list_labels(line, component.lines, component.name)) or line.of
        yield [element("small", label), element("small", line.value), "", render_formula(line, component)]


def render_formula(line: Line, component: Component) -> Html:
    if not line.formula:
        return element("span", line.note)
    layers = f" ({line.layers})" if len(component.lines) == 1 and line.layers else ""
    return join((element("code", line.formula), element("code", f"= {line.numbers}"), layers))


def draw_bar(count: Count) -> Html:
    """All components to scale."""
    parts = {name: n for name, n in count.components.items() if n}
    left, rects = 0, []
    for name, n in parts.items():
        right = left + n
        x, width = left * BAR / count.total, n * BAR / count.total
        title = element("title", f"{name} {n:,}")
        rects.append(Html(f'<rect x="{x:.2f}" width="{width:.2f}" height="24" fill="{COLOURS[name]}">{title}</rect>'))
        left = right
    label = ", ".join(f"{name} {format_share(n, count.total)}" for name, n in parts.items())
    return element(
        "svg", *rects, class_="parts", viewBox=f"0 0 {BAR} 24", preserveAspectRatio="none", role="img", aria_label=label
    )


def render_experts(model: Model, explanation: Explanation) -> Html:
    if not explanation.expert_groups:
        return Html("")
    tables = [render_group(group) for group in explanation.expert_groups]
    return make_section("Experts", [make_command("explain", model.id)], *tables, render_active(explanation))


def render_group(group: ExpertGroup) -> Html:
    rows = [[label, terms, n] for label, terms, n in list_expert_sums(group)]
    description = describe_experts(group)
    return join((element("p", description), make_table(["", "why", "parameters"], rows, numbers=(2,))))


def render_active(explanation: Explanation) -> Html:
    return element("p", f"active = {format_active_sum(explanation)} = ", element("b", explanation.active))


def render_published(model: Model, count: Count) -> Html:
    """The published figures beside the computed ones, with the reason for each difference."""
    checks = list_published(model, count)
    if not checks:
        return Html("")
    rows = [
        [
            check.text,
            check.what,
            "" if check.found is None else check.found,
            join((describe_verdict(check.verdict), element("small", reason))),
            check.source,
        ]
        for check, reason in checks
    ]
    table = make_table(["published", "counts", "computed", "verdict", "source"], rows, numbers=(0, 2))
    return make_section("Published figures", [make_command("why", model.id)], table)
