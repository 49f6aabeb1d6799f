"""paramcount compare MODEL..."""

from __future__ import annotations

import click

from paramcount.cli.options import download_option, emit, models_argument, output_options, picking_options, remark, remark_on


@click.command("compare", epilog="Example: paramcount compare gpt2-small llama-3.1-8b deepseek-v3")
@models_argument()
@picking_options
@click.option("--transpose", is_flag=True, help="Models as columns: for two or three side by side.")
@click.option("--estimates", is_flag=True, help="With models of which there are only claims, marked ~.")
@download_option
@output_options
def command(
    names: tuple[str, ...],
    columns: str | None,
    sort: str | None,
    transpose: bool,
    estimates: bool,
    download: bool,
    format: str | None,
    flags: tuple[str, ...],
    output: str | None,
) -> None:
    """Models side by side: names, families, wildcards ('qwen3-*'), Hugging Face ids, or paths of config.json and YAML files."""
    from paramcount.comparing import rows_of, table
    from paramcount.names import select

    remark_on(names)
    models = select(names, estimates=estimates, download=download)
    for model in models:
        for text in model.reading.remarks if not model.estimate else ():
            remark(f"{model.id}: {text}")
    rows = rows_of(models)
    emit(lambda chosen: table(rows, columns=columns, sort=sort, transpose=transpose, full=chosen in ("csv", "json")), format, flags, output)
