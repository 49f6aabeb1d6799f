"""paramcount show MODEL"""

from __future__ import annotations

import click

from paramcount.cli.options import Output, download_option, emit, load_changed, model_argument, noted, output_options, remark, remark_on, set_option
from paramcount.counting import counted
from paramcount.errors import ParamcountError
from paramcount.overview import claims, table


@click.command("show", epilog="Example: paramcount show gpt2-small")
@model_argument
@click.option("--estimates", is_flag=True, help="Of an estimate, show the claims.")
@click.option("--by", type=click.Choice(["layer", "part", "tensor"]), help="A row for each run of equal layers, each part or each tensor.")
@click.option("--keys", is_flag=True, help="Of a config.json: which keys were read, filled in or left unread.")
@set_option
@download_option
@output_options
def command(
    name: str,
    estimates: bool,
    by: str | None,
    keys: bool,
    changes: tuple[str, ...],
    download: bool,
    output: Output,
) -> None:
    """One model: its total with the proof, a row per component with the arithmetic.

    MODEL is a name, a Hugging Face id, the path of a config.json, of a directory with one or of a YAML file, or - for standard input.
    """
    if by and keys:
        raise ParamcountError("--by and --keys at once", accepted="one of them")
    remark_on([name])
    model = load_changed(name, changes, download)
    if model.estimate and estimates:
        emit(lambda chosen: claims(model), output)
        return
    count = counted(model)
    for text in count.remarks:
        remark(text)
    if by or keys:
        from paramcount import breakdown

        emit(lambda chosen: noted(breakdown.keys(model) if keys else breakdown.BY[str(by)](count), model), output)
    else:
        emit(lambda chosen: noted(table(model, count), model), output)
