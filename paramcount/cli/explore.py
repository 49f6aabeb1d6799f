"""paramcount explore [MODEL...]"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from paramcount.cli.options import (
    CommandRequest,
    define_command,
    make_models_argument,
    open_in_browser,
    option,
    print_messages,
)
from paramcount.errors import ParamcountError, make_printable
from paramcount.output.files import check_is_html, write_atomically


@define_command(
    "explore",
    "llama-3.1-8b qwen3-8b -o models.html",
    make_models_argument("[MODEL]...", required=False),
    prints_table=False,
)
@option("-o,--output FILE", "Write to FILE.html instead of a temporary file.")
@option("--site DIR", "Write a site for a web server into DIR, with a page per model.", type=str)
@option("--url TEXT", "Address of the site, for its sitemap and preview pictures.")
@option("--open/--no-open", "Open the page in a browser (default: unless -o is given).", dest="opens", default=None)
def command(request: CommandRequest, output: str | None, site: str | None, url: str | None, opens: bool | None) -> None:
    """Write an HTML page to browse, compare and change models and to see inside them.

    Without a MODEL the page has the whole zoo. It is one file that loads nothing from the network. --site writes a
    folder of pages instead, one per model and family, with this page among them; it needs paramcount[site].
    """
    if url is not None and site is None:
        raise ParamcountError("needs --site", where="--url")
    if site is not None:
        if output is not None:
            raise ParamcountError("--site cannot be combined with -o", expected="one of them")
        write_pages(request, site, url or "", opens=bool(opens))
        return
    from paramcount.explore import build_page, build_zoo_page

    if output is not None and output != "-":
        check_is_html(output)
    if request.changes and not request.names:
        raise ParamcountError("needs a MODEL", where="--set")
    if request.names:
        models = request.select()
        print_messages(request.collect_messages(models))
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


def write_pages(request: CommandRequest, directory: str, url: str, *, opens: bool) -> None:
    """Write a site about the named models, or the zoo."""
    from paramcount.cli.progress import progress_callback
    from paramcount.explore.site import write_site

    if request.changes and not request.names:
        raise ParamcountError("needs a MODEL", where="--set")
    models = request.select() if request.names else []
    print_messages(request.collect_messages(models))
    with progress_callback("writing pages") as report:
        notes = write_site(directory, models, url=url, report=report)
    for note in notes:
        click.echo(f"note: {note}", sys.stderr)
    click.echo(f"note: wrote {make_printable(directory)}", sys.stderr)
    if opens:
        open_in_browser(str(Path(directory) / "index.html"))
