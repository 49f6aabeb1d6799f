"""paramcount compare MODEL..."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from paramcount.cli.options import File, Output, changed, collect_messages, download_option, emit, models_argument, output_options, picking_options, set_option
from paramcount.errors import ParamcountError
from paramcount.output.tables import Table, write_atomically


@click.command("compare", epilog="Example: paramcount compare gpt2-small llama-3.1-8b deepseek-v3")
@models_argument()
@picking_options
@click.option("--plot", "plot", metavar="FILE", type=File(), help="Also bars of the components into FILE.svg, .png or .pdf; needs the [plot] extra.")
@click.option("--scale", type=click.Choice(["linear", "log"]), help="Of the plot: linear unless said.")
@click.option("--transpose", is_flag=True, help="Models as columns: for two or three side by side.")
@click.option("--estimates", is_flag=True, help="With models of which there are only claims, marked ~.")
@set_option
@download_option
@output_options
def command(
    names: tuple[str, ...],
    columns: str | None,
    sort: str | None,
    plot: str | None,
    scale: str | None,
    transpose: bool,
    estimates: bool,
    changes: tuple[str, ...],
    download: bool,
    output: Output,
) -> None:
    """Models side by side: names, families, wildcards ('qwen3-*'), Hugging Face ids, or paths of config.json and YAML files."""
    from paramcount.views.compare import in_order, rows_of, table
    from paramcount.zoo.names import select_models

    if scale and plot is None:
        raise ParamcountError("--scale without --plot", expected="both, or neither")
    if plot is not None:
        from paramcount.drawing.bars import format_of

        format_of(plot)  # refuses a wrong ending before anything is read
    models = [changed(model, changes) for model in select_models(names, estimates=estimates, download=download)]
    rows = rows_of(models)

    def made(chosen: str) -> Table:
        found = table(rows, columns=columns, sort=sort, transpose=transpose, format=chosen)
        if plot is not None:
            draw(in_order(rows, sort), plot, scale or "linear")
        return found

    emit(made, output, collect_messages(names, models, with_ids=True))


def draw(rows: Sequence[Mapping[str, Any]], path: str, scale: Any) -> None:
    """Write the plot, whole or not at all."""
    from paramcount.drawing.bars import format_of, plot_rows

    quiet_plots()
    write_atomically(path, plot_rows(rows, format=format_of(path), scale=scale), "--plot")


def quiet_plots() -> None:
    """No window and no style of the reader's is used: what is wrong with them is not told."""
    import logging
    import os

    os.environ["MPLBACKEND"] = "agg"
    logging.getLogger("matplotlib").setLevel(logging.CRITICAL)
