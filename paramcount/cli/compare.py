"""paramcount compare MODEL..."""

from __future__ import annotations

from typing import Literal

from paramcount.cli.options import (
    Choice,
    CommandRequest,
    column_options,
    define_command,
    estimates_option,
    make_models_argument,
    option,
)
from paramcount.cli.paper import PaperOptions, paper_options
from paramcount.errors import ParamcountError
from paramcount.output.files import write_atomically
from paramcount.output.tables import Table


@define_command("compare", "gpt2-small llama-3.1-8b deepseek-v3", make_models_argument())
@column_options
@option("--plot FILE", "Also plot the components to FILE.svg, .png or .pdf (needs the [plot] extra).")
@option("--scale", "Select the scale of the plot (default: linear).", type=Choice(["linear", "log"]))
@option("--transpose", "Show models as columns.")
@option("--share", "Show the components as percentages of the total.")
@paper_options
@estimates_option
def command(
    request: CommandRequest,
    columns: str | None,
    sort: str | None,
    plot: str | None,
    scale: Literal["linear", "log"] | None,
    transpose: bool,
    share: bool,
    paper: PaperOptions,
    estimates: bool,
) -> None:
    """Compare models side by side.

    MODEL is a name, a family, a wildcard ('qwen3-*'), a Hugging Face id, or the path of a config.json or YAML file.
    """
    from paramcount.views.compare import add_fields, build_comparison_table, list_shares, make_named_rows, sort_rows

    if scale and plot is None:
        raise ParamcountError("--scale requires --plot")
    if plot is not None:
        from paramcount.drawing.bars import plot_rows
        from paramcount.drawing.figures import check_plot

        plot_format = check_plot(plot)  # report a wrong extension before any file is read
    paper.check(request)
    models = request.select(estimates=estimates)
    rows = make_named_rows(models)
    if columns is not None or sort is not None:
        from paramcount.database.fields import select_fields

        columns, sort, further = select_fields(models, columns, sort)
        rows = add_fields(rows, models, further)
    if share:
        columns, sort, further = list_shares(rows, columns, sort)
        rows = add_fields(rows, models, further)

    def make_table(format: str) -> Table:
        result = build_comparison_table(
            rows, columns=columns, sort=sort, transpose=transpose, format=format, wording=paper.wording
        )
        if plot is not None:
            content = plot_rows(sort_rows(rows, sort), format=plot_format, scale=scale or "linear")
            write_atomically(plot, content, "--plot")
        return paper.name_table(result)

    request.emit(make_table, request.collect_messages(models))
