"""The explanation of a published figure as a table, for the command line and for notebooks, and in a few words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from paramcount.explaining.why import (
    COUNT_PHRASES,
    Account,
    Why,
    describe_difference,
    name_base,
    render_equation,
    render_terms,
)
from paramcount.output.numbers import describe_verdict
from paramcount.output.tables import Column, Table

MAX_ITEMS = 5  # alternative explanations of one figure
Row = list[object]


def build_figure_table(why: Why, changes: Sequence[str] = ()) -> Table:
    """One figure as a sum, each term with its arithmetic; if there is no single explanation, the alternatives.

    Args:
        changes: Lines about the sizes that were changed.
    """
    name, parameters = Column("name", "name", right=False), Column("parameters", "parameters")
    published, below = format_figure(why.published), list_figure_notes(why)
    if why.verdict in ("not reproducible", "corrected"):
        above = [f"{published}: {summarise(why)}", *changes]
        rows: list[Row] = [["published", why.value], [name_base(why), why.value - why.left_over]]
        return Table([name, parameters], rows, None, above, below, headings=False)
    if why.verdict == "several":
        above = [f"{published}: {len(why.accounts)} explanations fit equally well", *changes]
        rows = [[account.value, render_equation(account)] for account in why.accounts]
        return Table([parameters, name], rows, None, above, below, headings=False, wraps=True)
    (account,) = why.accounts
    terms = [published, *([f"{account.value:,}"] if account.causes else []), render_equation(account)]
    return build_account_table(account, [" = ".join(dict.fromkeys(terms)), *changes], below)


def build_account_table(account: Account, above: list[str], below: list[str]) -> Table:
    """A row for the count and each cause, with its items."""
    columns = [
        Column("name", "name", right=False),
        Column("parameters", "parameters"),
        Column("arithmetic", "arithmetic", right=False, style="dim"),
    ]
    rows: list[Row] = [[account.base, f"{account.count:,}", ""]]
    for cause in account.causes:
        if len(cause.items) == 1:
            rows.append([cause.name, format_signed(cause.units), cause.items[0].arithmetic])
            continue
        rows.append([cause.name, format_signed(cause.units), ""])
        rows += [[f"  {item.name}", format_signed(item.units), item.arithmetic] for item in cause.items]
    return Table(columns, rows, None, above, below, headings=False, wraps=True)


def list_figure_notes(why: Why) -> list[str]:
    """Lines about the verdict, other sums that match the figure, and what the source counts."""
    lines = [describe_verdict(why.verdict)] if len(why.accounts) == 1 else []
    if why.plainer:
        lines.append(f"also matches when truncated: {render_equation(why.plainer)}")
    if why.rounded:
        lines.append(f"also matches when rounded: {render_equation(why.rounded)} = {why.rounded.value:,}")
    if why.what == "unspecified":
        lines.append(f"the source does not say what it counts: {why.source}")
    elif why.what and why.verdict == "corrected":
        lines.append(f"published in {why.source}")
    elif why.what:
        lines.append(f"the source counts {COUNT_PHRASES.get(why.what, why.what)}: {why.source}")
    if why.correction:
        lines.append(f"corrected in {why.correction}")
    return lines


def summarise(why: Why) -> str:
    """The answer in a few words, without the count itself."""
    if why.verdict == "not reproducible":
        return describe_difference(why)
    if why.verdict == "corrected":
        return (
            f"a published error, corrected by its publisher; {describe_difference(why).removeprefix('unexplained, ')}"
        )
    terms = [render_terms(account) for account in why.accounts]
    if why.verdict == "several":
        more = f"; or {len(terms) - MAX_ITEMS} others" if len(terms) > MAX_ITEMS else ""
        return f"{len(terms)} explanations fit equally well: {'; or '.join(terms[:MAX_ITEMS])}{more}"
    alternatives = [f"{terms[0]}, {describe_verdict(why.verdict)}"]
    if why.plainer:
        alternatives.append(f"{why.plainer.base}, {describe_verdict('truncated')}")
    if why.rounded:
        alternatives.append(f"{render_terms(why.rounded)}, {describe_verdict('rounded')}")
    return "; or ".join(alternatives)


def format_signed(n: int) -> str:
    return f"{'−' if n < 0 else '+'}{abs(n):,}"


def format_figure(figure: str) -> str:
    """A published figure with grouped digits and no space before the unit.

    >>> format_figure("~1.04 T"), format_figure("137022720")
    ('1.04T', '137,022,720')
    """
    text = figure.strip("~≈ ").upper()
    return f"{int(text):,}" if text.isdecimal() else re.sub(r"\s+([KMBGT])$", r"\1", text)
