"""paramcount report MODEL..."""

from __future__ import annotations

import click

from paramcount.cli.commands import Command
from paramcount.cli.options import (
    FilePath,
    apply_changes,
    collect_messages,
    download_option,
    estimates_option,
    is_directory,
    models_argument,
    open_in_browser,
    print_messages,
    set_option,
    write_named,
)
from paramcount.errors import ParamcountError
from paramcount.output.files import check_is_html


@click.command("report", cls=Command, epilog="Example: paramcount report gpt2-small llama-3.1-8b -o report.html")
@models_argument()
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=FilePath(),
    help="Write to FILE.html or into a directory (default: MODEL.html).",
)
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
@estimates_option
@set_option
@download_option
def command(
    names: tuple[str, ...],
    output: str | None,
    open_page: bool,
    estimates: bool,
    changes: tuple[str, ...],
    download: bool,
) -> None:
    """Write an HTML page about one or more models: counts, formulas, forward pass, drawing, sources.

    The page runs no script and loads nothing from the network. Needs the [plot] extra.
    """
    from paramcount.cli.compare import silence_matplotlib
    from paramcount.drawing.report import render_page
    from paramcount.loading import select_models

    if open_page and output == "-":
        raise ParamcountError("--open requires a file", expected="-o FILE.html")
    if output is not None and output != "-" and not is_directory(output):
        check_is_html(output)
    models = [apply_changes(model, changes) for model in select_models(names, estimates=estimates, download=download)]
    print_messages(collect_messages(names, models, with_ids=True))
    silence_matplotlib()
    path = write_named(output, models, ".html", render_page(models))
    if open_page:
        open_in_browser(path)
