"""paramcount why MODEL [NUMBER] [MODEL [NUMBER]]..."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

import click

from paramcount.changing import recorded, said
from paramcount.cli.options import Output, download_option, emit, load_changed, models_argument, output_options, remark, remark_on, set_option
from paramcount.counting import SCHEMA_VERSION, counted
from paramcount.errors import ParamcountError, quoted
from paramcount.explaining.published import Account, Why, explained
from paramcount.figures import parse
from paramcount.names import PATH_ENDS
from paramcount.tables import Column, Table
from paramcount.zoo import Model

FIGURE_LIKE = re.compile(r"\s*[~≈+]?\s*\d[^/]*")  # no name of a model begins so
MOST_SHOWN = 5  # explanations of one figure, none of them claimed
WHAT = {  # what a source counts, where its word says it shortly
    "active_without_input_table": "active without the input table",
    "active_non_embedding": "active without the tables",
    "non_embedding": "total without the tables",
    "checkpoint": "what the released files hold",
}


@click.command("why", epilog="Example: paramcount why gpt-oss-20b 3.6B")
@models_argument(metavar="MODEL [NUMBER]...")
@set_option
@download_option
@output_options
def command(names: tuple[str, ...], changes: tuple[str, ...], download: bool, output: Output) -> None:
    """Why somebody else says a different number: a published figure as a count and named causes with nothing left over.

    NUMBER is met by rounding or cutting off where it is short (3.6B, ~1.04T) and exactly where it is whole (137022720). A model without
    one: every figure that its entry lists as published. Exit code 1 where a figure is not reproducible.
    """
    asked = words(names)
    remark_on(name for name, _ in asked)
    models = [load_changed(name, changes, download) for name, _ in asked]
    answers = [explained(model, numbers) for model, (_, numbers) in zip(models, asked)]
    for model in models:
        for text in model.reading.remarks:
            remark(f"{model.id}: {text}")
    alone = len(asked) == 1 and len(asked[0][1]) == 1
    emit(lambda chosen: detail(models[0], answers[0][0]) if alone and chosen not in ("csv", "json") else table(models, answers), output)
    sys.exit(not all(why.ok for found in answers for why in found))


def words(names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Each model with the figures that stand behind it.

    Raises: ParamcountError for a figure before any model, and for what looks like a figure and is none.
    """
    asked: list[tuple[str, list[str]]] = []
    for word in names:
        if not FIGURE_LIKE.fullmatch(word) or word.lower().endswith(PATH_ENDS):
            asked.append((word, []))
            continue
        parse(word)
        if not asked:
            raise ParamcountError(f"{quoted(word)} stands before any model", accepted="MODEL NUMBER")
        asked[-1][1].append(word)
    return asked


def detail(model: Model, why: Why) -> Table:
    """One figure: the sum that it is, each term with its arithmetic; or what else can be said of it."""
    name, parameters, arithmetic = Column("name", "name", right=False), Column("parameters", "parameters"), Column("arithmetic", "arithmetic", right=False)
    above, below = [f"{printed(why.published)}: {phrase(why)}", *said(model)], notes(why)
    if why.verdict == "not reproducible":
        rows: list[list[Any]] = [["published", why.value], [counted_as(why), why.value - why.left_over]]
        return Table([name, parameters], rows, None, above, below, headings=False)
    if why.verdict == "several":
        above[0] = f"{printed(why.published)}: {len(why.accounts)} explanations fit equally well, none is claimed"
        rows = [[account.value, equation(account)] for account in why.accounts]
        return Table([parameters, name], rows, None, above, below, headings=False, wraps=True)
    (account,) = why.accounts
    above[0] = " = ".join(dict.fromkeys((printed(why.published), *([f"{account.value:,}"] if account.causes else []), equation(account))))
    rows = [[account.base, f"{account.count:,}", ""]]
    for cause in account.causes:
        alone = len(cause.items) == 1
        rows.append([cause.name, signed(cause.units), cause.items[0].arithmetic if alone else ""])
        rows += [[f"  {item.name}", signed(item.units), item.arithmetic] for item in cause.items if not alone]
    return Table([name, parameters, arithmetic], rows, None, above, below, headings=False, wraps=True)


def signed(n: int) -> str:
    return f"{'−' if n < 0 else '+'}{abs(n):,}"


def table(models: Sequence[Model], answers: Sequence[Sequence[Why]]) -> Table:
    """A row for each figure; of one model alone also where it was published."""
    one = models[0] if len(models) == 1 else None
    ids = {source.ref: source.id for source in one.sources} if one else {}
    rows = [
        [why.id, why.published, why.what, why.true, value(why), why.left_over, why.verdict, why.source, ids.get(str(why.source), ""), phrase(why)]
        for found in answers
        for why in found
    ]
    columns = [
        Column("model", "model", right=False, only="csv" if one else ""),
        Column("published", "published", show=printed),
        Column("counts", "counts", right=False, only="csv"),
        Column("true", "true"),
        Column("value", "value", only="csv"),
        Column("left_over", "left over", only="csv"),
        Column("verdict", "verdict", right=False, only="csv"),
        Column("source", "source", right=False, only="csv"),
        Column("by", "source", right=False, only="people"),
        Column("why", "why", right=False),
    ]
    used = [i for i, column in enumerate(columns) if column.name != "by" or any(row[i] for row in rows)]
    above = [f"{one.name}   {counted(one).total:,} parameters"] if one else []
    above += [f"{'' if one else f'{model.id}: '}{line}" for model in models for line in said(model)]
    below = [f"{id}: {ref}" for id, ref in dict.fromkeys((row[8], row[7]) for row in rows) if id]
    below += [f"{model.id}: its entry lists no published figure" for model, found in zip(models, answers) if not found]
    data = {"schema_version": SCHEMA_VERSION, "figures": [why.to_dict() | recorded(model) for model, found in zip(models, answers) for why in found]}
    return Table([columns[i] for i in used], [[row[i] for i in used] for row in rows], data, above, below, wraps=True)


def value(why: Why) -> int | None:
    """The one sum that a figure is."""
    return why.accounts[0].value if len(why.accounts) == 1 else None


def equation(account: Account) -> str:
    return f"{account.base} {account.count:,} {account.terms}".rstrip()


def phrase(why: Why) -> str:
    """The answer in a few words, the count itself left out."""
    if why.verdict == "not reproducible":
        left = abs(why.left_over)
        return f"Not reproducible, {f'{left:,}' if why.step == 1 else rough(left)} left over"
    found = [f"{account.base} {account.terms}".rstrip() for account in why.accounts]
    if why.verdict == "several":
        more = f"; or {len(found) - MOST_SHOWN} others" if len(found) > MOST_SHOWN else ""
        return f"several fit, none is claimed: {'; or '.join(found[:MOST_SHOWN])}{more}"
    return f"{found[0]}, {why.verdict}{f'; or {why.plainer.base}, truncated' if why.plainer else ''}"


def counted_as(why: Why) -> str:
    """The name of the count that a figure that nothing explains was held against."""
    return why.base if why.value - why.left_over == why.true else WHAT.get(str(why.what), str(why.what))


def rough(n: int) -> str:
    """A number in two digits, or in three before the point.

    >>> rough(7_439_808), rough(852_282_624), rough(999_700_000), rough(3416)
    ('7.4 M', '852 M', '1.0 B', '3.4 K')
    """
    for unit, size in (("T", 10**12), ("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if n >= size - size // 2000:
            tenths = (20 * n + size) // (2 * size)
            return f"{tenths // 10}.{tenths % 10} {unit}" if tenths < 100 else f"{(2 * n + size) // (2 * size)} {unit}"
    return str(n)


def printed(figure: str) -> str:
    """A figure as people write it, digits in groups, the unit apart.

    >>> printed("~1.04T"), printed("137022720")
    ('1.04 T', '137,022,720')
    """
    text = figure.strip("~≈ ").upper()
    return f"{int(text):,}" if text.isdecimal() else re.sub(r"\s*([KMBGT])$", r" \1", text)


def notes(why: Why) -> list[str]:
    """How the sum becomes the figure, what else would, and what the source says."""
    lines = [why.verdict] if len(why.accounts) == 1 else []
    if why.plainer:
        lines.append(f"cut off instead of rounded, {equation(why.plainer)} is {printed(why.published)} too")
    if why.what:
        words = "does not say what it counts" if why.what == "unspecified" else f"counts {WHAT.get(why.what, why.what)}"
        lines.append(f"the source {words}: {why.source}")
    return lines
