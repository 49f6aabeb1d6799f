"""paramcount draw MODEL"""

from __future__ import annotations

import click

from paramcount.cli.options import File, collect_messages, download_option, is_folder, load_changed, model_argument, print_messages, set_option, write_named


@click.command("draw", epilog="Example: paramcount draw gpt2-small -o gpt2.svg")
@model_argument
@click.option("-o", "--output", "output", metavar="FILE", type=File(), help="Write to FILE: .svg, .html or .png, or into a directory; default: MODEL.svg here.")
@click.option("--layer", type=int, metavar="N", help="One layer alone, counted from 0, of the decoder where there are several stacks.")
@click.option("--tokens", type=int, metavar="N", help="How many go in at once: 1,024, or as many as the model takes.")
@set_option
@download_option
def command(name: str, output: str | None, layer: int | None, tokens: int | None, changes: tuple[str, ...], download: bool) -> None:
    """A picture to scale: every matrix a rectangle, data blue, weights grey, in the order of the flow.

    Layers that are alike are drawn once. Edges of one colour are equally long: there two matrices meet in a product.
    """
    from paramcount.drawing.pictures import draw_model
    from paramcount.drawing.render import file_of, format_of

    format = "svg" if output in (None, "-") or is_folder(str(output)) else format_of(str(output))
    model = load_changed(name, changes, download)
    print_messages(collect_messages([name], [model]))
    write_named(output, [model], ".svg", file_of(draw_model(model, tokens=tokens, layer=layer), format))
