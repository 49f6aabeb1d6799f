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
    if name is None:
        click.echo("\n".join([*list_schemas(), ENTRY]))
    elif name == ENTRY:
        from paramcount.zoo.json_schema import format_entry_schema

        click.echo(format_entry_schema(), nl=False)
    else:
        click.echo(read_schema_text(name), nl=False)
