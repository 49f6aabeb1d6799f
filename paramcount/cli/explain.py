"""paramcount explain MODEL"""

from __future__ import annotations

import click

from paramcount.cli.options import Output, collect_messages, download_option, emit, load_changed, model_argument, noted, output_options, set_option
from paramcount.errors import ParamcountError


@click.command("explain", epilog="Example: paramcount explain llama-3.1-8b")
@model_argument
@click.option("--tensors", is_flag=True, help="Every tensor: name, shape, repeats, count.")
@click.option("--layer", metavar="N", help="One layer: its index in the decoder, or after the name of a stack: model.encoder.layers.3.")
@click.option("--head", is_flag=True, help="One attention head, of that layer or the first that has any.")
@set_option
@download_option
@output_options
def command(
    name: str,
    tensors: bool,
    layer: str | None,
    head: bool,
    changes: tuple[str, ...],
    download: bool,
    output: Output,
) -> None:
    """Where the parameters come from: for each component the formula in named sizes, the same with this model's numbers, the value.

    The sizes come first, the total last; of a mixture of experts, how the active figure arises. --format latex gives aligned equations,
    --format markdown a section of a model card.
    """
    from paramcount.explaining import render_tables as telling
    from paramcount.explaining.explain import explain_model
    from paramcount.zoo import count_model

    if tensors and (layer is not None or head):
        raise ParamcountError(f"--tensors and --{'head' if head else 'layer'} at once", expected="one of them")
    model = load_changed(name, changes, download)
    messages = collect_messages([name], [model])
    if tensors:
        count = count_model(model)
        emit(lambda chosen: noted(telling.tensors(model.name, count), model), output, messages)
    else:
        found = explain_model(model, layer=layer, head=head)
        emit(lambda chosen: noted(telling.table(found), model), output, messages)
