"""paramcount add CONFIG --id ID"""

from __future__ import annotations

from pathlib import Path

import click

from paramcount.cli.commands import Command
from paramcount.cli.options import DOWNLOAD, CommandRequest, FilePath, option, print_messages
from paramcount.errors import make_printable


@click.command("add", cls=Command, epilog="Example: paramcount add ./config.json --id my-model")
@click.argument("config", metavar="CONFIG", type=FilePath())
@option("--id TEXT", "Name the entry: lower-case letters, digits, dots and hyphens.", required=True)
@option("--name TEXT", "Set the display name; by default the id.", default="")
@option("--family TEXT", "Put the entry into this family.", default="own", show_default=True)
@option("--publisher TEXT", "Say who published the model.")
@option("--hf TEXT", "Set the Hugging Face id.")
@option("--source TEXT", "Cite where the config.json comes from; by default CONFIG.")
@option("--into DIR", "Write into DIR, such as configs/ of a checkout.")
@option("--replace", "Overwrite an entry that you added before.")
def command(
    config: str,
    id: str,
    name: str,
    family: str,
    publisher: str | None,
    hf: str | None,
    source: str | None,
    into: str | None,
    replace: bool,
    download: bool,
) -> None:
    """Add a model to your own zoo; every command then knows it by its id.

    CONFIG is the path of a config.json or of a directory with one, or a Hugging Face id in the local cache. The entry
    is one YAML file in the directory PARAMCOUNT_CONFIGS, by default in your user data directory. It is marked as your
    own and unverified, and it cannot have the id of a built-in model."""
    from paramcount.loading import load
    from paramcount.zoo import count_model
    from paramcount.zoo.adding import make_entry, write_entry
    from paramcount.zoo.catalog import get_user_folder
    from paramcount.zoo.names import is_file_name

    model = load(config, download=download)
    total = count_model(model).total
    hf = hf or (None if is_file_name(config) else config)
    entry = make_entry(model, id, source=source or config, name=name, family=family, publisher=publisher, hf=hf)
    path = write_entry(entry, Path(into).expanduser() if into else get_user_folder(), replace=replace)
    print_messages(CommandRequest(config).collect_messages([model]))
    click.echo(f"Wrote {make_printable(path)}: {entry.architecture}, {total:,} parameters, unverified.")


command.params.append(DOWNLOAD)
