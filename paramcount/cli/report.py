"""paramcount report MODEL..."""

from __future__ import annotations

from paramcount.cli.options import (
    CommandRequest,
    define_command,
    estimates_option,
    is_directory,
    make_models_argument,
    open_in_browser,
    option,
    print_messages,
    write_named,
)
from paramcount.errors import ParamcountError
from paramcount.output.files import check_is_html


@define_command("report", "gpt2-small llama-3.1-8b -o report.html", make_models_argument(), prints_table=False)
@option("-o,--output FILE", "Write to FILE.html or into a directory (default: MODEL.html).")
@option("--open", "Open the page in the browser.", dest="open_page")
@estimates_option
def command(request: CommandRequest, output: str | None, open_page: bool, estimates: bool) -> None:
    """Write an HTML page about one or more models: counts, formulas, forward pass, drawing, sources.

    The page runs no script and loads nothing from the network. Needs the [plot] extra.
    """
    from paramcount.drawing.figures import silence_matplotlib
    from paramcount.drawing.report import render_page

    if open_page and output == "-":
        raise ParamcountError("--open requires a file", expected="-o FILE.html")
    if output is not None and output != "-" and not is_directory(output):
        check_is_html(output)
    models = request.select(estimates=estimates)
    print_messages(request.collect_messages(models))
    silence_matplotlib()
    path = write_named(output, models, ".html", render_page(models))
    if open_page:
        open_in_browser(path)
