"""paramcount verify MODEL"""

from __future__ import annotations

import sys

import click

from paramcount.checking import Check, checks
from paramcount.cli.options import emit, model_argument, output_options, remark_on
from paramcount.counting import SCHEMA_VERSION, counted
from paramcount.names import load
from paramcount.tables import Column, Table


@click.command("verify", epilog="Example: paramcount verify gpt2-small")
@model_argument
@output_options
def command(name: str, format: str | None, flags: tuple[str, ...], output: str | None) -> None:
    """An entry's count against the reference's and every published figure. Exit code 1 where one does not match."""
    remark_on([name])
    model = load(name)
    count = counted(model)
    made = checks(model, count)
    if model.architecture == "gpt2":
        from paramcount.gpt2_checks import forward_checks

        made += forward_checks(model.sizes, count)
    emit(lambda chosen: table(f"{model.name}   {count.total:,} parameters", made), format, flags, output)
    sys.exit(any(check.ok is False for check in made))


def table(title: str, made: list[Check]) -> Table:
    rows = [[check.what, check.expected, check.found, check.verdict, check.source, check.by or check.source] for check in made]
    columns = [
        Column("what", "what", right=False, show=lambda what: what.replace("_without_input_table", " − input table")),
        Column("expected", "expected"),
        Column("found", "found"),
        Column("verdict", "verdict", right=False),
        Column("source", "source", right=False, only="csv"),
        Column("by", "source", right=False, only="people"),
    ]
    data = {"schema_version": SCHEMA_VERSION, "checks": [check._asdict() | {"ok": check.ok} for check in made]}
    below = [f"{by}: {source}" for by, source in dict.fromkeys((check.by, check.source) for check in made) if by]
    below = below if made else ["unverified: there is nothing to compare with"]
    return Table(columns, rows, data, above=[title], below=below, wraps=True)
