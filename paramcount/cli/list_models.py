"""paramcount list [FAMILY]..."""

from __future__ import annotations

import click

from paramcount.cli.options import Output, emit, estimates_option, models_argument, output_options
from paramcount.output.tables import Table

TERMINAL_COLUMNS = "id,total,released,publisher"
FILE_COLUMNS = "id,total,active,family,publisher,released,hf"


@click.command("list", epilog="Example: paramcount list gpt deepseek")
@models_argument(required=False, metavar="[FAMILY]...")
@estimates_option
@output_options
def command(names: tuple[str, ...], estimates: bool, output: Output) -> None:
    """List the models in the zoo or in some families: id, total, release date, publisher.

    CSV, JSON and the other file formats also include active parameters, family and Hugging Face id.
    """
    from paramcount import zoo
    from paramcount.loading import select_models
    from paramcount.views.compare import build_comparison_table, make_rows

    rows = make_rows(select_models(names or list(zoo.list_families()), estimates=estimates))
    families = list(dict.fromkeys(row["family"] for row in rows))
    rows.sort(key=lambda row: (families.index(row["family"]), row["total"] is None, row["total"]))

    def make_table(format: str) -> Table:
        columns = TERMINAL_COLUMNS if format == "table" else FILE_COLUMNS
        return build_comparison_table(rows, columns=columns, format=format)._replace(wraps=True, drops=True)

    emit(make_table, output)
