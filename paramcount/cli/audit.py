"""paramcount audit CLAIMS..."""

from __future__ import annotations

import sys

import click

from paramcount.cli.options import File, Output, emit, output_options


@click.command("audit", epilog="Example: paramcount audit claims.csv")
@click.argument("paths", nargs=-1, required=True, metavar="CLAIMS...", type=File())
@click.option("--strict", is_flag=True, help="Exit code 1 also for claims that are unlike every model of the zoo.")
@output_options
def command(paths: tuple[str, ...], strict: bool, output: Output) -> None:
    """Tables of claims about models, each cell right, rounded, wrong (true: …) or not checkable. Exit code 1 where one is wrong.

    CLAIMS is a CSV or Markdown file (-: standard input) with a column named model and others such as params, layers, d_model, heads, KV heads,
    experts, context length or FP16 size. Models that are not in the zoo are checked for claims that contradict each other.
    """
    from paramcount.auditing.audit import audited, tables
    from paramcount.auditing.render import table

    found = audited([tables(path) for path in paths])
    emit(lambda chosen: table(found, chosen), output)
    sys.exit(not found.ok or (strict and found.unlikely))
