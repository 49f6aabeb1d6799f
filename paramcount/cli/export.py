"""paramcount export FILE"""

from __future__ import annotations

import sys

import click

from paramcount.cli.commands import Command
from paramcount.cli.options import FilePath, option
from paramcount.errors import make_printable
from paramcount.output.files import write_atomically


@click.command("export", cls=Command, epilog="Example: paramcount export zoo.sqlite")
@click.argument("path", metavar="FILE", type=FilePath())
@option("--table TABLE", "Write one table (default: models, or all if FILE can have them).")
def command(path: str, table: str | None) -> None:
    """Write the zoo to FILE: .sqlite, .parquet, .csv, .json, .jsonl or .xlsx.

    SQLite, JSON and Excel files have all tables of `paramcount sql --schema`, the others one. Parquet and Excel need
    the [export] extra.
    """
    from paramcount.database.export import export_zoo

    write_atomically(path, export_zoo(path, table), "FILE")
    click.echo(f"note: wrote {make_printable(path)}", sys.stderr)
