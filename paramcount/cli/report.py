"""paramcount report MODEL..."""

from __future__ import annotations

import click

from paramcount.cli.options import File, changed, collect_messages, download_option, is_folder, models_argument, print_messages, set_option, write_named


@click.command("report", epilog="Example: paramcount report gpt2-small llama-3.1-8b -o report.html")
@models_argument()
@click.option("-o", "--output", "output", metavar="FILE", type=File(), help="Write to FILE.html or into a directory; default: MODEL.html here.")
@click.option("--estimates", is_flag=True, help="With models of which there are only claims.")
@set_option
@download_option
def command(names: tuple[str, ...], output: str | None, estimates: bool, changes: tuple[str, ...], download: bool) -> None:
    """One HTML page on one or several models: numbers, formulas, the forward pass in shapes, a block to scale, sources.

    It needs no network and runs no script. Needs the [plot] extra.
    """
    from paramcount.cli.compare import quiet_plots
    from paramcount.drawing.report import check_ending, render_page
    from paramcount.zoo.names import select_models

    if output is not None and output != "-" and not is_folder(output):
        check_ending(output)
    models = [changed(model, changes) for model in select_models(names, estimates=estimates, download=download)]
    print_messages(collect_messages(names, models, with_ids=True))
    quiet_plots()
    write_named(output, models, ".html", render_page(models))
