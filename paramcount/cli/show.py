"""paramcount show MODEL"""

from __future__ import annotations

from collections.abc import Sequence

import click

from paramcount.cli.checkpoints import names_checkpoint, read_checkpoint
from paramcount.cli.options import Messages, Output, collect_messages, download_option, emit, load_changed, model_argument, noted, output_options, set_option
from paramcount.errors import ParamcountError
from paramcount.views.model import claims, table
from paramcount.zoo import count_model


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
    Of a checkpoint (a .safetensors or .gguf file, an index, a directory of shards, a saved header) it is what is stored, by component.
    """
    if by and keys:
        raise ParamcountError("--by and --keys at once", expected="one of them")
    if names_checkpoint(name):
        asked = {"--keys": keys, f"--by {by}": by not in (None, "tensor"), "--set": changes, "--estimates": estimates}
        show_checkpoint(name, [option for option, given in asked.items() if given], by, output)
        return
    model = load_changed(name, changes, download)
    if model.estimate and estimates:
        emit(lambda chosen: claims(model), output, collect_messages([name], [model]))
        return
    count = count_model(model)
    messages = collect_messages([name], [model])
    if by or keys:
        from paramcount.views import breakdown

        emit(lambda chosen: noted(breakdown.keys(model) if keys else breakdown.BY[str(by)](count), model), output, messages)
    else:
        emit(lambda chosen: noted(table(model, count), model), output, messages)


def show_checkpoint(path: str, refused: Sequence[str], by: str | None, output: Output) -> None:
    """What a checkpoint stores. `refused`: options that were given and ask for what no checkpoint says."""
    if refused:
        raise ParamcountError(f"{refused[0]} with a checkpoint", expected="--by tensor; a config.json or a model has the others")
    from paramcount.checkpoints import render_contents as telling_alone
    from paramcount.checkpoints.contents import summarize_checkpoint

    found = summarize_checkpoint(read_checkpoint(path))
    emit(
        lambda chosen: telling_alone.by_tensor(found, full=chosen in ("csv", "json")) if by else telling_alone.table(found),
        output,
        Messages(notes=found.remarks),
    )
