"""paramcount explain MODEL"""

from __future__ import annotations

import click

from paramcount.cli.commands import Command
from paramcount.cli.options import (
    Output,
    add_changes,
    collect_messages,
    download_option,
    emit,
    load_model,
    model_argument,
    output_options,
    set_option,
)
from paramcount.errors import ParamcountError


@click.command("explain", cls=Command, epilog="Example: paramcount explain llama-3.1-8b")
@model_argument
@click.option("--tensors", is_flag=True, help="List every tensor: name, shape, repeats, count.")
@click.option(
    "--layer",
    metavar="N",
    help="Explain one layer: its index in the decoder, or stack and index, such as encoder.layers.3.",
)
@click.option("--head", is_flag=True, help="Explain one attention head (in --layer, or in the first attention layer).")
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
    """Explain where the parameters come from: each component as a formula, with numbers, and its value.

    The sizes come first, the total last. For a mixture of experts, the active parameters are explained too. --format
    latex writes aligned equations; --format markdown writes a section for a model card."""
    from paramcount.explaining.explain import explain_model
    from paramcount.explaining.render_tables import build_explanation_table, build_tensor_table
    from paramcount.zoo import count_model

    if tensors and (layer is not None or head):
        raise ParamcountError(f"--tensors cannot be combined with --{'head' if head else 'layer'}")
    model = load_model(name, changes, download)
    messages = collect_messages([name], [model])
    if tensors:
        count = count_model(model)
        emit(lambda format: add_changes(build_tensor_table(model.name, count), model), output, messages)
    else:
        explanation = explain_model(model, layer=layer, head=head)
        emit(lambda format: add_changes(build_explanation_table(explanation), model), output, messages)
