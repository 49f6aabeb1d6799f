"""--expect: whether the counts of a model are those that somebody expects, for tests in a repository."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from paramcount.counting import SCHEMA_VERSION, Count
from paramcount.counting.components import COMPONENTS
from paramcount.errors import ParamcountError, make_printable, quote
from paramcount.explaining.render_why import MAX_ITEMS, summarise
from paramcount.explaining.why import explain_figures, render_terms
from paramcount.output.numbers import describe_verdict, match_figure, parse_figure
from paramcount.output.tables import Column, Table
from paramcount.zoo import Model
from paramcount.zoo.aliases import find_column

COUNTS = (
    "total", "active", "non_embedding", "active_non_embedding", "active_without_input_embedding", "language_model",
    "reference_total", "buffers", "mtp", "checkpoint",
)  # fmt: skip
WHERE = "--expect"


class Expectation(NamedTuple):
    """An expected number of parameters and the one that the model has."""

    what: str  # total, active, … or a component
    expected: str  # as typed
    computed: int
    verdict: str  # exact, rounded, truncated or wrong
    why: str  # what else the expected number counts; "" if it matches
    alternatives: tuple[str, ...] = ()  # the explanations, if several fit equally well

    @property
    def ok(self) -> bool:
        return self.verdict != "wrong"

    @property
    def text(self) -> str:
        """The verdict in words; alternatives have lines of their own."""
        if not self.ok:
            n = len(self.alternatives)
            lines = [f"{n} explanations fit equally well:" if n else self.why, *self.alternatives[:MAX_ITEMS]]
            lines += [f"… and {n - MAX_ITEMS} more"] if n > MAX_ITEMS else []
            return f"{self.what} is {self.computed:,}, not {self.expected}; " + "\n  ".join(lines)
        verdict = describe_verdict(self.verdict)
        return f"{self.what} is {self.computed:,}" + (f": {self.expected}, {verdict}" if verdict != "exact" else "")


def check_expectation(model: Model, count: Count, text: str) -> Expectation:
    """A verdict on "4B", "total=4B" or "active=3,353,032,704".

    Raises: ParamcountError for an unknown count, for one that the model does not have, and for text that is no number.
    """
    before, has_name, after = text.rpartition("=")
    name = find_count(before.strip()) if has_name else "total"
    try:
        expected = parse_figure(after)
    except ParamcountError as error:
        raise error.add_location(WHERE) from None
    computed: int | None = count.components[name] if name in COMPONENTS else getattr(count, name)
    if computed is None:
        raise ParamcountError(f"{name} of {model.id} is unknown", where=WHERE, expected="total, active or a component")
    verdict, written = match_figure(computed, expected) or "wrong", make_printable(after.strip())
    if verdict != "wrong":
        return Expectation(name, written, computed, verdict, "")
    (why,) = explain_figures(model, (after,))
    text = f"{written} is {summarise(why)}" if len(why.accounts) == 1 else summarise(why)
    alternatives = [render_terms(account) for account in why.accounts] if len(why.accounts) > 1 else []
    return Expectation(name, written, computed, verdict, text, tuple(alternatives))


def find_count(name: str) -> str:
    """The count or component that a name refers to.

    Raises: ParamcountError for any other name.
    """
    names = (*COUNTS, *COMPONENTS)
    try:
        return find_column(name, names)
    except ParamcountError as error:
        raise error.replace(found=f"unknown count {quote(name)}", where=WHERE) from None


def build_expectation_table(model: Model, expectations: Iterable[Expectation]) -> Table:
    """A line per expectation; in other formats than text, a row."""
    expectations = list(expectations)
    columns = [
        Column("what", "count", right=False),
        Column("expected", "expected"),
        Column("computed", "computed"),
        Column("verdict", "verdict", right=False),
        Column("why", "why", right=False),
    ]
    rows = [expectation[: len(columns)] for expectation in expectations]
    lines = "".join(f"{model.name}: {expectation.text}\n" for expectation in expectations)
    data = {
        "schema_version": SCHEMA_VERSION,
        "id": model.id,
        "ok": all(expectation.ok for expectation in expectations),
        "expectations": [dict(zip(Expectation._fields, row, strict=False)) for row in rows],
    }
    return Table(columns, rows, data, texts={"table": lambda width, colour, shortens: lines})
