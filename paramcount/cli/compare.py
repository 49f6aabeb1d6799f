"""paramcount compare MODEL..."""

from __future__ import annotations

import click

from paramcount.cli.options import emit, models_argument, output_options, remark_on


@click.command("compare", epilog="Example: paramcount compare gpt2-small llama-3.1-8b deepseek-v3")
@models_argument()
@click.option("--columns", metavar="A,B,…", help="Pick columns, such as total,active,d_model.")
@click.option("--sort", metavar="COLUMN", help="Sort by a column; -COLUMN for the largest first.")
@click.option("--transpose", is_flag=True, help="Models as columns: for two or three side by side.")
@click.option("--estimates", is_flag=True, help="With models of which there are only claims, marked ~.")
@output_options
def command(
    names: tuple[str, ...],
    columns: str | None,
    sort: str | None,
    transpose: bool,
    estimates: bool,
    format: str | None,
    flags: tuple[str, ...],
    output: str | None,
) -> None:
    """Models side by side: names, families, wildcards ('qwen3-*') or paths of YAML files."""
    from paramcount.comparing import rows_of, table
    from paramcount.names import select

    remark_on(names)
    rows = rows_of(select(names, estimates=estimates))
    emit(lambda chosen: table(rows, columns=columns, sort=sort, transpose=transpose, full=chosen in ("csv", "json")), format, flags, output)
