"""paramcount schema [COMMAND]"""

from __future__ import annotations

import click

from paramcount.cli.commands import Command
from paramcount.schemas import ENTRY, list_schemas, read_schema_text


@click.command("schema", cls=Command, epilog="Example: paramcount schema show")
@click.argument("name", required=False, metavar="[COMMAND]")
def command(name: str | None) -> None:
    """Print the JSON Schema of a command's --json output, or of a zoo entry (`paramcount schema entry`).

    Without COMMAND, list the schemas."""
    click.echo("\n".join([*list_schemas(), ENTRY]) if name is None else read_schema_text(name), nl=name is None)
