"""Checks of a zoo entry: its count against the reference implementation and every published figure."""

from __future__ import annotations

from typing import NamedTuple

from paramcount.counting.count import Count
from paramcount.errors import join_words
from paramcount.output.numbers import match_figure, parse_figure
from paramcount.zoo import Model


class Check(NamedTuple):
    """One comparison. `ok` is None if nothing could be compared."""

    what: str  # "reference", or what a published figure counts
    expected: int
    found: int | None
    verdict: str  # exact, rounded, truncated, differs, corrected (by the publisher), not checkable
    source: str
    by: str = ""  # the place in the entry: `checked`, or the id of a source
    published: str | None = None  # the figure as published, if it is not an integer

    @property
    def ok(self) -> bool | None:
        return None if self.verdict in ("not checkable", "corrected") else self.verdict != "differs"

    @property
    def text(self) -> str:
        """The expected number for a table: as published, else with grouped digits."""
        return self.published or f"{self.expected:,}"


def run_checks(model: Model, count: Count) -> list[Check]:
    """The comparisons for an entry, the reference first."""
    checks = []
    if not isinstance(model.checked, str):
        # The reference also counts what no forward pass reads.
        whole = count.reference_total + sum(count.unreachable.values())
        verdict = "exact" if model.checked.total == whole else "differs"
        checks.append(Check("reference", model.checked.total, whole, verdict, model.checked.reference, "checked"))
    refs = {source.id: source.ref for source in model.sources}
    for figure in model.published:
        text = None if isinstance(figure.value, int) else figure.value
        published = parse_figure(figure.value)
        value = None if figure.what == "unspecified" else getattr(count, figure.what)
        verdict = "not checkable" if value is None else match_figure(value, published) or "differs"
        if verdict == "differs" and figure.corrected:
            verdict = "corrected"
        source = refs[figure.source]
        checks.append(Check(figure.what, published.value, value, verdict, source, figure.source, text))
    return checks


def summarize_checks(model: Model, count: Count) -> str:
    """The results of all comparisons for the headline; for a what-if, the changes."""
    if model.original is not None:
        from paramcount.zoo.what_if import format_changes

        return format_changes(model)
    if model.reading.origin:
        whole = model.reading.scope == "model" or not model.reading.head
        return f"as built by {model.reading.reference if whole else model.sizes.reference}"
    released = describe_release_difference(count)
    matches: list[str] = []
    wrong_references: list[str] = []
    wrong_figures: list[str] = []
    totals: list[Check] = []
    for check in run_checks(model, count):
        if check.what == "reference":
            name = "reference implementation" if check.source.startswith("transformers") else "published modeling code"
            if not check.ok:
                wrong_references.append(name)
            elif not released:
                matches.append(name)
        elif check.ok is False:
            wrong_figures.append(f"{check.what} {check.text}".removeprefix("total "))
        elif check.ok and check.what in ("total", "checkpoint"):
            totals.append(check)
    if any(check.verdict == "exact" for check in totals):
        matches.append("published total")
    elif totals:
        matches.append(f"published {totals[0].text}")
    phrases = ["your own entry"] if model.is_own else []
    phrases += ["unverified"] if isinstance(model.checked, str) else []
    phrases += [f"matches {' and '.join(matches)}"] if matches else ["as released"] if released else []
    phrases += [f"differs from {name}" for name in wrong_references]
    phrases += [f"differs from published {', '.join(wrong_figures)}"] if wrong_figures else []
    return "; ".join([", ".join(phrases), *([released] if released else [])])


def describe_release_difference(count: Count) -> str:
    """How many parameters the reference builds, and which tensors it does not build; "" if the release has as many."""
    if count.reference_total == count.total:
        return ""
    names = join_words([name.removesuffix(".weight") for name in count.released_tensors], "and")
    return f"the reference implementation ties {names} and has {count.reference_total:,}"
