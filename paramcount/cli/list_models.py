"""paramcount list [FAMILY...]"""

from __future__ import annotations

import click

from paramcount.cli.options import Output, emit, models_argument, output_options

PEOPLE = "id,total,released,publisher"
FULL = "id,total,active,family,publisher,released,hf"


@click.command("list", epilog="Example: paramcount list gpt deepseek")
@models_argument(required=False, metavar="[FAMILY]...")
@click.option("--estimates", is_flag=True, help="With models of which there are only claims, marked ~.")
@output_options
def command(names: tuple[str, ...], estimates: bool, output: Output) -> None:
    """The models of the zoo, or of some families: id, total, date, publisher; in files the Hugging Face id too."""
    from paramcount import zoo
    from paramcount.views.compare import rows_of, table
    from paramcount.zoo.names import select_models

    rows = rows_of(select_models(names or list(zoo.list_families()), estimates=estimates))
    families = list(dict.fromkeys(row["family"] for row in rows))
    rows.sort(key=lambda row: (families.index(row["family"]), row["total"] is None, row["total"]))
    emit(lambda chosen: table(rows, columns=PEOPLE if chosen == "table" else FULL, format=chosen)._replace(wraps=True, drops=True), output)
