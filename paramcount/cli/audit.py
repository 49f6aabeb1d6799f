"""paramcount audit CLAIMS..."""

from __future__ import annotations

import sys

import click

from paramcount.cli.options import File, Output, emit, output_options


@click.command("audit", epilog="Example: paramcount audit claims.csv")
@click.argument("paths", nargs=-1, required=True, metavar="CLAIMS...", type=File())
@click.option("--strict", is_flag=True, help="Exit with code 1 also for claims that no zoo model resembles.")
@output_options
def command(paths: tuple[str, ...], strict: bool, output: Output) -> None:
    """Check tables of claims about models, cell by cell. Exit code 1 if a claim is wrong.

    CLAIMS is a CSV or Markdown file (-: standard input) with a column named model and others such as params, layers, d_model, heads, KV heads,
    experts, context length or FP16 size. Models that are not in the zoo are checked for claims that contradict each other.
    """
    from paramcount.auditing.audit import audit_tables, read_tables
    from paramcount.auditing.render import table

    found = audit_tables([read_tables(path) for path in paths])
    emit(lambda chosen: table(found, chosen), output)
    sys.exit(not found.ok or (strict and found.unlikely))
