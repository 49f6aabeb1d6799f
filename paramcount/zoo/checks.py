"""Checks of a zoo entry: its count against the reference implementation and every published figure."""

from __future__ import annotations

from typing import NamedTuple

from paramcount.counting.count import Count
from paramcount.output.numbers import match_figure, parse_figure
from paramcount.zoo import Model


class Check(NamedTuple):
    """One comparison. `ok` is None if nothing could be compared."""

    what: str  # "reference", or what a published figure counts
    expected: int
    found: int | None
    verdict: str  # exact, rounded, truncated, differs, not checkable
    source: str
    by: str = ""  # where the entry says so: `checked`, or a source's id
    published: str | None = None  # the figure as printed, if it is not an integer

    @property
    def ok(self) -> bool | None:
        return None if self.verdict == "not checkable" else self.verdict != "differs"

    @property
    def text(self) -> str:
        """The expected number for a table: as published, else with grouped digits."""
        return self.published or f"{self.expected:,}"


def run_checks(model: Model, count: Count) -> list[Check]:
    """The comparisons for an entry, the reference first."""
    found = []
    if not isinstance(model.checked, str):
        verdict = "exact" if model.checked.total == count.total else "differs"
        found.append(Check("reference", model.checked.total, count.total, verdict, model.checked.reference, "checked"))
    refs = {source.id: source.ref for source in model.sources}
    for figure in model.published:
        printed = None if isinstance(figure.value, int) else figure.value
        value = _value(figure.what, model, count)
        said = parse_figure(figure.value)
        verdict = "not checkable" if value is None else match_figure(value, said) or "differs"
        found.append(Check(figure.what, said.value, value, verdict, refs[figure.source], figure.source, printed))
    return found


def _value(what: str, model: Model, count: Count) -> int | None:
    value: int | None = None if what == "unspecified" else getattr(count, what)
    return value


def summarize_checks(model: Model, count: Count) -> str:
    """The result of all comparisons in one phrase for the headline; for a what-if, the changes."""
    if model.original is not None:
        from paramcount.zoo.what_if import format_changes

        return format_changes(model)
    if model.reading.origin:
        whole = model.reading.scope == "model" or not model.reading.head
        return f"as built by {model.reading.reference if whole else model.sizes.reference}"
    matching: list[str] = []
    wrong: list[str] = []
    differing: list[str] = []
    totals: list[Check] = []
    for check in run_checks(model, count):
        if check.what == "reference":
            name = "reference implementation" if check.source.startswith("transformers") else "hand derivation"
            (matching if check.ok else wrong).append(name)
        elif check.ok is False:
            differing.append(f"{check.what} {check.text}".removeprefix("total "))
        elif check.ok and check.what in ("total", "checkpoint"):
            totals.append(check)
    if any(check.verdict == "exact" for check in totals):
        matching.append("published total")
    elif totals:
        matching.append(f"published {totals[0].text}")
    words = ["unverified"] if isinstance(model.checked, str) else []
    words += [f"matches {' and '.join(matching)}"] if matching else []
    words += [f"≠ {name}" for name in wrong]
    words += [f"≠ published {', '.join(differing)}"] if differing else []
    return ", ".join(words)
