"""paramcount help [COMMAND]"""

from __future__ import annotations

import click

from paramcount.cli.commands import COMMANDS
from paramcount.errors import ParamcountError, find_nearest, quote


@click.command("help", epilog="Example: paramcount help show")
@click.argument("name", required=False, metavar="[COMMAND]")
@click.pass_context
def command(context: click.Context, name: str | None) -> None:
    """Show help for paramcount or for one command."""
    outer = context.parent
    if outer is None or not isinstance(outer.command, click.Group):
        return
    if name is None:
        click.echo(outer.get_help())
        return
    found = outer.command.get_command(outer, name)
    if found is None:
        raise ParamcountError(f"unknown command {quote(name)}", expected="a command that `paramcount help` lists", nearest=find_nearest(name, COMMANDS))
    click.echo(click.Context(found, info_name=name, parent=outer).get_help())
