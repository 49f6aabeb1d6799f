"""paramcount list [FAMILY...]"""

from __future__ import annotations

import click

from paramcount.cli.options import emit, names, output_options


@click.command("list", epilog="Example: paramcount list gpt deepseek")
@names(required=False, metavar="[FAMILY]...")
@click.option("--estimates", is_flag=True, help="With models of which there are only claims, marked ~.")
@output_options
def command(names: tuple[str, ...], estimates: bool, format: str | None, flags: tuple[str, ...], output: str | None) -> None:
    """The models of the zoo, or of some families: id, total, family, Hugging Face id."""
    from paramcount import zoo
    from paramcount.comparing import rows_of, table
    from paramcount.names import select

    rows = rows_of(select(names or list(zoo.families()), estimates=estimates))
    families = list(dict.fromkeys(row["family"] for row in rows))
    rows.sort(key=lambda row: (families.index(row["family"]), row["total"] is None, row["total"]))
    emit(lambda chosen: table(rows, columns="id,total,family,hf"), format, flags, output)
