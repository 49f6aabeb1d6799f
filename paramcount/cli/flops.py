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
from paramcount.cli.quantities import parse_tokens, parse_training_tokens
from paramcount.errors import ParamcountError


@click.command("flops", cls=Command, epilog="Example: paramcount flops gpt-oss-120b --context 8k --gpu H100")
@model_argument
@click.option("--context", metavar="N", help="Tokens per sequence; 8k means 8,192 (default: 8k, or the model's limit).")
@click.option("--source", metavar="N", help="Encoder input length (default: the context).")
@click.option("--train-tokens", metavar="N", help="Show the FLOPs of training on N tokens, such as 15T.")
@click.option("--gpu", metavar="[Nx]NAME", help="Show the least time on N GPUs, such as 8xH100.")
@click.option("--mfu", type=float, metavar="X", help="Assume this share of the peak in training (default: 0.4).")
@click.option("--batch", type=int, metavar="N", help="Decode N sequences at once; requires --gpu (default: 1).")
@click.option("--dtype", metavar="DTYPE", help="Store the weights as DTYPE; requires --gpu (default: as released).")
@click.option("--kv-dtype", metavar="DTYPE", help="Store the KV cache as DTYPE; requires --gpu (default: bf16).")
@set_option
@download_option
@output_options
def command(
    name: str,
    context: str | None,
    source: str | None,
    train_tokens: str | None,
    gpu: str | None,
    mfu: float | None,
    batch: int | None,
    dtype: str | None,
    kv_dtype: str | None,
    changes: tuple[str, ...],
    download: bool,
    output: Output,
) -> None:
    """Show the FLOPs of a forward pass: per decoded token and per prompt, by component.

    For a model that decodes no tokens, such as an encoder, the FLOPs are those of a pass over the whole context.

    Matrix products count 2 FLOPs per multiply-add. The usual estimates, 2N and 6N, are shown next to the counts. With
    --gpu, the times of a decoding step and of a prompt are lower bounds from the data sheet."""
    from paramcount.costs.flops import measure_flops
    from paramcount.costs.render_flops import build_flops_table

    if mfu is not None and (gpu is None or train_tokens is None):
        raise ParamcountError("--mfu requires --gpu and --train-tokens")
    for option, value in {"--batch": batch, "--dtype": dtype, "--kv-dtype": kv_dtype}.items():
        if value is not None and gpu is None:
            raise ParamcountError(f"{option} requires --gpu")
    model = load_model(name, changes, download)
    flops = measure_flops(
        model,
        context=None if context is None else parse_tokens(context, where="--context"),
        source=None if source is None else parse_tokens(source, where="--source"),
        train_tokens=None if train_tokens is None else parse_training_tokens(train_tokens, where="--train-tokens"),
        gpu=gpu,
        mfu=mfu,
        batch=batch,
        dtype=dtype,
        kv_dtype=kv_dtype,
    )
    messages = collect_messages([name], [model], flops)
    emit(lambda format: add_changes(build_flops_table(flops), model), output, messages)
