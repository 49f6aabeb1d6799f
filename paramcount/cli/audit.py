"""paramcount audit TABLE..."""

from __future__ import annotations

import sys

import click

from paramcount.cli.options import CommandRequest, FilePath, define_command, option


@define_command("audit", "claims.csv")
@click.argument("paths", nargs=-1, required=True, metavar="TABLE...", type=FilePath())
@option("--strict", "Also exit with code 1 for unlikely claims.")
def command(request: CommandRequest, paths: tuple[str, ...], strict: bool) -> None:
    """Check tables of claims about models, cell by cell: right, rounded, wrong or not checkable.

    TABLE is a CSV or Markdown file, or - for standard input. It needs a column "model"; columns such as params, layers,
    d_model, heads, KV heads, experts, context length or FP16 size are checked. For models outside the zoo, paramcount
    checks whether the claims of a row contradict each other. The exit code is 1 if a claim is wrong."""
    from paramcount.auditing.audit import audit_tables, read_tables
    from paramcount.auditing.render import build_table

    audit = audit_tables([read_tables(path) for path in paths])
    request.emit(lambda format: build_table(audit, format))
    sys.exit(not audit.ok or (strict and audit.unlikely))
