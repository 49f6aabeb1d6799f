"""paramcount map MODEL"""

from __future__ import annotations

import click

from paramcount.cli.commands import Command
from paramcount.cli.options import (
    FilePath,
    collect_messages,
    download_option,
    is_directory,
    load_model,
    model_argument,
    print_messages,
    set_option,
    write_named,
)


@click.command("map", cls=Command, epilog="Example: paramcount map deepseek-v3 -o deepseek-v3.svg")
@model_argument
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=FilePath(),
    help="Write to FILE.svg or .png, or into a directory (default: MODEL.svg).",
)
@click.option("--social", is_flag=True, help="Draw the map for a link preview: 1200 × 630 pixels, larger text.")
@set_option
@download_option
def command(name: str, output: str | None, social: bool, changes: tuple[str, ...], download: bool) -> None:
    """Draw every tensor of a model as a rectangle, its area in proportion to its parameters.

    Tensors are grouped by part, layers and component. Each copy in a layer or an expert is a cell; the experts that
    are active for one token are dark.
    """
    from paramcount.drawing.map_svg import ENDINGS, render_map_file
    from paramcount.drawing.parameter_map import make_map
    from paramcount.output.files import choose_by_extension

    is_named = output is not None and output != "-" and not is_directory(output)
    format = choose_by_extension(output, ENDINGS) if output is not None and is_named else "svg"
    model = load_model(name, changes, download)
    print_messages(collect_messages([name], [model]))
    write_named(output, [model], ".svg", render_map_file(make_map(model, social=social), format))
