"""paramcount report MODEL..."""

from __future__ import annotations

import click

from paramcount.cli.options import File, changed, collect_messages, download_option, models_argument, print_messages, set_option


@click.command("report", epilog="Example: paramcount report gpt2-small llama-3.1-8b -o report.html")
@models_argument()
@click.option("-o", "output", metavar="FILE", type=File(), help="Write to FILE.html.")
@click.option("--estimates", is_flag=True, help="With models of which there are only claims.")
@set_option
@download_option
def command(names: tuple[str, ...], output: str | None, estimates: bool, changes: tuple[str, ...], download: bool) -> None:
    """One HTML page on one or several models: numbers, formulas, the forward pass in shapes, a block to scale, sources.

    It needs no network and runs no script. Needs the [plot] extra.
    """
    from paramcount.cli.compare import quiet_plots
    from paramcount.drawing.reports import check_ending, page
    from paramcount.names import select
    from paramcount.tables import write_whole

    if output not in (None, "-"):
        check_ending(str(output))
    models = [changed(model, changes) for model in select(names, estimates=estimates, download=download)]
    print_messages(collect_messages(names, models, with_ids=True))
    quiet_plots()
    html = page(models)
    if output in (None, "-"):
        click.echo(html, nl=False)
    else:
        write_whole(str(output), html)
