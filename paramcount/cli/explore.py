"""paramcount explore [MODEL...]"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from paramcount.cli.commands import Command
from paramcount.cli.options import (
    FilePath,
    apply_changes,
    collect_messages,
    download_option,
    models_argument,
    open_in_browser,
    print_messages,
    set_option,
)
from paramcount.errors import ParamcountError, make_printable
from paramcount.output.files import check_is_html, write_atomically


@click.command("explore", cls=Command, epilog="Example: paramcount explore llama-3.1-8b qwen3-8b -o models.html")
@models_argument(required=False, metavar="[MODEL]...")
@click.option("-o", "--output", metavar="FILE", type=FilePath(), help="Write to FILE.html instead of a temporary file.")
@click.option(
    "--open/--no-open", "opens", default=None, help="Open the page in a browser (default: unless -o is given)."
)
@set_option
@download_option
def command(
    names: tuple[str, ...], output: str | None, opens: bool | None, changes: tuple[str, ...], download: bool
) -> None:
    """Write an HTML page to browse, compare and change models and to see inside them.

    Without a MODEL the page has the whole zoo. It is one file that loads nothing from the network.
    """
    from paramcount.explore import build_page, build_zoo_page
    from paramcount.loading import select_models

    if output is not None and output != "-":
        check_is_html(output)
    if changes and not names:
        raise ParamcountError("needs a MODEL", where="--set")
    if names:
        models = [apply_changes(model, changes) for model in select_models(names, download=download)]
        print_messages(collect_messages(names, models, with_ids=True))
        page = build_page(models)
    else:
        page = build_zoo_page()
    if output == "-":
        click.echo(page, nl=False)
        return
    path = output or str(Path(tempfile.mkdtemp(prefix="paramcount-")) / "explore.html")
    write_atomically(path, page)
    click.echo(f"note: wrote {make_printable(path)}", sys.stderr)
    if opens or (opens is None and output is None):
        open_in_browser(path)
