"""paramcount flops MODEL"""

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
from paramcount.cli.quantities import parse_tokens


@click.command("flops", cls=Command, epilog="Example: paramcount flops gpt-oss-120b --context 8k")
@model_argument
@click.option("--context", metavar="N", help="Tokens per sequence; 8k means 8,192 (default: 8k, or the model's limit).")
@click.option("--source", metavar="N", help="Encoder input length (default: the context).")
@set_option
@download_option
@output_options
def command(
    name: str,
    context: str | None,
    source: str | None,
    changes: tuple[str, ...],
    download: bool,
    output: Output,
) -> None:
    """Show the FLOPs of a forward pass: per decoded token and per prompt, by component.

    Matrix products count 2 FLOPs per multiply-add. The usual estimates, 2N and 6N, are shown beside the counts."""
    from paramcount.costs.flops import measure_flops
    from paramcount.costs.render_flops import build_flops_table

    model = load_model(name, changes, download)
    flops = measure_flops(
        model,
        context=None if context is None else parse_tokens(context, where="--context"),
        source=None if source is None else parse_tokens(source, where="--source"),
    )
    messages = collect_messages([name], [model], flops)
    emit(lambda format: add_changes(build_flops_table(flops), model), output, messages)
