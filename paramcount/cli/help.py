"""paramcount help [COMMAND]"""

from __future__ import annotations

import click

from paramcount.cli.commands import COMMANDS, Command
from paramcount.errors import ParamcountError, find_nearest, quote


@click.command("help", cls=Command, epilog="Example: paramcount help show")
@click.argument("name", required=False, metavar="[COMMAND]")
@click.pass_context
def command(context: click.Context, name: str | None) -> None:
    """Show help for paramcount or for one command."""
    parent = context.parent
    if parent is None or not isinstance(parent.command, click.Group):
        return
    if name is None:
        click.echo(parent.get_help())
        return
    named_command = parent.command.get_command(parent, name)
    if named_command is None:
        expected = "a command from `paramcount help`"
        raise ParamcountError(f"unknown command {quote(name)}", expected=expected, nearest=find_nearest(name, COMMANDS))
    click.echo(click.Context(named_command, info_name=name, parent=parent).get_help())
