"""paramcount diff A B"""

from __future__ import annotations

from typing import Any

import click

from paramcount.cli.options import Output, changed, collect_messages, download_option, emit, models_argument, output_options, set_option
from paramcount.counting.count import SCHEMA_VERSION
from paramcount.errors import ParamcountError
from paramcount.output.tables import Column, Table
from paramcount.sizes.values import format_size
from paramcount.views.compare import signed_or_dash
from paramcount.views.diff import ComponentDifference, Difference, SizeDifference, diff_models
from paramcount.zoo import Model
from paramcount.zoo.names import load
from paramcount.zoo.what_if import changes_to_dict, describe_changes, format_sum

LONGEST = 160  # characters of arithmetic: some three lines of a terminal
COLUMNS = (
    Column("kind", "kind", right=False, only="csv"),
    Column("name", "name", right=False),
    Column("a", "a", only="csv"),
    Column("b", "b", only="csv"),
    Column("difference", "difference", show=lambda value: "" if value is None else signed_or_dash(value)),
    Column("active_difference", "active difference", only="csv"),
    Column("how", "how", right=False, only="people", style="dim"),
)


@click.command("diff", epilog="Example: paramcount diff llama-2-7b llama-3.1-8b")
@models_argument(metavar="A [B]")
@set_option
@download_option
@output_options
def command(names: tuple[str, ...], changes: tuple[str, ...], download: bool, output: Output) -> None:
    """What differs between two models: their sizes, and component by component where the difference in parameters comes from.

    Differences are B less A, the largest first, and sum to that of the total. One model with --set is compared with itself as it is;
    of two both are changed. A and B are given as to show.
    """
    if len(names) > 2 or (len(names) == 1 and not changes):
        raise ParamcountError(f"{len(names)} model{'s' * (len(names) > 1)} to compare", expected="two, or one with --set SIZE=VALUE")
    models = [load(name, download=download) for name in names]
    after = [changed(model, changes) for model in models]
    emit(lambda chosen: table((models if len(models) == 1 else after)[0], after[-1]), output, collect_messages(names, after, with_ids=True))


def table(a: Model, b: Model) -> Table:
    """The sizes, then the components, then the total that these sum to."""
    found = diff_models(a, b)
    rows = [*map(size_row, found.sizes), *map(component_row, found.components)]
    rows.append(["total", "total", found.total_a, found.total_b, found.difference, found.active_difference, f"{found.total_b:,} − {found.total_a:,}"])
    if b.original is a:
        above, changes = [f"{a.name}   {describe_changes(b)[0]}"], changes_to_dict(b)
    else:
        above = [
            f"{a.name} → {b.name}   {format_sum(found.total_a, found.total_b)}",
            *(f"{model.name}: {line}" for model in (a, b) for line in describe_changes(model)),
        ]
        changes = {f"{name}_{side}": value for side, model in (("a", a), ("b", b)) for name, value in changes_to_dict(model).items()}
    data = {"schema_version": SCHEMA_VERSION, **found.to_dict(), **changes}
    return Table(COLUMNS, rows, data, above=above, below=beside(found), headings=False, wraps=True, bold=("total",))


def size_row(size: SizeDifference) -> list[Any]:
    people = ["–" if size.only == "b" else format_size(size.a), "–" if size.only == "a" else format_size(size.b)]
    plain = [None if text == "–" else value if type(value) in (int, bool, str) else text for value, text in zip((size.a, size.b), people)]
    return ["size", size.name, *plain, None, None, " → ".join(people)]


def component_row(found: ComponentDifference) -> list[Any]:
    return ["component", found.component, found.a, found.b, found.difference, found.active_difference, how(found)]


def how(found: ComponentDifference) -> str:
    """One side's arithmetic less the other's; where that is too long or no arithmetic, the one's value less the other's."""
    b, a = (f"0 ({text})" if text.startswith("tied") else text or "0" for text in (found.arithmetic_b, found.arithmetic_a))
    text = f"{b} − {bracketed(a)}"
    return text if len(text) <= LONGEST and " tensors" not in text else f"{found.b:,} − {found.a:,}"


def bracketed(arithmetic: str) -> str:
    """A sum in brackets, a product as it is."""
    depth = 0
    for piece in arithmetic.split(" "):
        if piece == "+" and not depth:
            return f"({arithmetic})"
        depth += piece.count("(") - piece.count(")")
    return arithmetic


def beside(found: Difference) -> list[str]:
    """What is to be said below the table: that nothing differs, what is active, what stands beside the total."""
    lines = []
    if not found.components:
        lines.append("no parameter differs" if found.sizes else "nothing differs")
    others = [c for c in found.components if c.active_difference != c.difference]
    if others:
        as_above = ", all else as above" if any(c.difference for c in found.components if c not in others) else ""
        pieces = ", ".join(f"{c.component} {signed_or_dash(c.active_difference)}" for c in others)
        lines.append(f"active {format_sum(found.active_a, found.active_b)}: {pieces}{as_above}")
    return lines + [f"beside the total: {name.replace('mtp', 'MTP')} {format_sum(a, b)}" for name, a, b, _ in found.beside]
