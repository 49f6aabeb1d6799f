"""Where the parameters are: the bar, the formulas, the experts, and the published figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paramcount.counting.count import Count
from paramcount.drawing.report import list_published
from paramcount.explaining.explanation import Component, ExpertGroup, Explanation, Line
from paramcount.explaining.render_text import describe_experts, format_active_sum, list_expert_sums, list_labels
from paramcount.explaining.why import COUNT_PHRASES
from paramcount.explore.article.elements import Content, Html, element, join, make_command, make_section, make_table
from paramcount.explore.article.sources import render_reference
from paramcount.output.numbers import describe_verdict, format_share
from paramcount.views.model import describe_count
from paramcount.zoo import Model
from paramcount.zoo.checks import Check

BAR = 1000  # units of the width of the bar
THINNEST = 0.1  # units of a component that is drawn


def render_parameters(model: Model, count: Count, explanation: Explanation) -> Html:
    rows = [row for component in explanation.components for row in list_rows(component, count)]
    total = [element("b", "total"), element("b", count.total), "", ""]
    table = make_table(["component", "parameters", "share", "why"], [*rows, total], numbers=(1, 2), class_="why")
    lines = [element("li", line) for line in describe_count(count)]
    commands = [make_command("show", model.id), make_command("explain", model.id), make_command("map", model.id)]
    return make_section("Where the parameters are", commands, draw_bar(count.components), table, element("ul", *lines))


def list_rows(component: Component, count: Count) -> Iterator[list[Content]]:
    """The rows of a component: its sum, with its formula; or the sum, and a row for each of several formulas."""
    rect = element("rect", width=10, height=10, rx=2, fill=f"var(--c-{component.name})")
    swatch = element("svg", rect, class_="swatch", viewBox="0 0 10 10", aria_hidden="true")
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
    is_new = len(component.lines) == 1 and line.layers and line.layers not in line.formula
    layers = f" ({line.layers})" if is_new else ""
    return join((element("code", line.formula), element("code", f"= {line.numbers}"), layers))


def draw_bar(components: Mapping[str, int]) -> Html:
    parts, total = {name: n for name, n in components.items() if n}, sum(components.values())
    left, rects = 0, []
    for name, n in parts.items():
        x, width = left * BAR / total, n * BAR / total
        left += n
        if width >= THINNEST:
            rects.append(element("rect", x=round(x), width=max(1, round(width)), height=24, fill=f"var(--c-{name})"))
    largest = max(parts, key=lambda name: parts[name], default="")
    label = f"{largest} {format_share(parts[largest], total)}, the rest in the table" if parts else "no parameters"
    return element(
        "svg", *rects, class_="parts", viewBox=f"0 0 {BAR} 24", preserveAspectRatio="none", role="img", aria_label=label
    )


def render_experts(model: Model, explanation: Explanation) -> Html:
    if not explanation.expert_groups:
        return Html("")
    tables = [render_group(group) for group in explanation.expert_groups]
    active = element("p", f"active = {format_active_sum(explanation)} = ", element("b", explanation.active))
    return make_section("Experts", [make_command("explain", model.id)], *tables, active)


def render_group(group: ExpertGroup) -> Html:
    rows = [[label, terms, n] for label, terms, n in list_expert_sums(group)]
    description = describe_experts(group)
    return join(
        (element("p", description), make_table(["experts", "why", "parameters"], rows, numbers=(2,), class_="why"))
    )


def describe_check(check: Check, reason: str) -> str:
    """The verdict, and the reason for a difference: "matches when rounded: total … plus buffers …"."""
    verdict = describe_verdict(check.verdict)
    return f"{verdict}: {reason}" if reason else verdict


def render_published(model: Model, count: Count) -> Html:
    """The published figures beside the computed ones, with the reason for each difference."""
    checks = list_published(model, count)
    if not checks:
        return Html("")
    rows = [
        [
            check.text,
            COUNT_PHRASES.get(check.what, check.what),
            "" if check.found is None else check.found,
            join((describe_check(check, reason), element("small", render_reference(check.source)))),
        ]
        for check, reason in checks
    ]
    table = make_table(["published", "counts", "computed", "why"], rows, numbers=(0, 2), class_="why")
    return make_section("Published figures", [make_command("why", model.id)], table)
