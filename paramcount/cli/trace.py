"""paramcount trace MODEL"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import click

from paramcount.cli.commands import Command
from paramcount.cli.options import (
    FilePath,
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

if TYPE_CHECKING:
    from paramcount.gpt2.generation import Run, TextModelSizes
    from paramcount.output.tables import Table
    from paramcount.zoo import Model


@click.command("trace", cls=Command, epilog="Example: paramcount trace gpt2-small --tokens 5 --pad 1024")
@model_argument
@click.option("--tokens", type=int, metavar="N", help="Number of tokens (default: 5, or 1 with --decode).")
@click.option("--pad", type=int, metavar="N", help="Pad to N tokens.")
@click.option("--batch", type=int, metavar="N", help="Batch size.")
@click.option("--decode", is_flag=True, help="Decode the next token; requires --past.")
@click.option("--past", type=int, metavar="N", help="Number of tokens in the KV cache; requires --decode.")
@click.option("--source", type=int, metavar="N", help="Encoder input length.")
@click.option("--full", is_flag=True, help="Show every layer; by default, identical layers are shown once.")
@click.option("--weights", metavar="FILE", type=FilePath(), help="Run GPT-2 with the weights in FILE (.safetensors).")
@click.option("--text", metavar="TEXT", help="Input text for --weights.")
@click.option(
    "--tokenizer",
    metavar="FILE",
    type=FilePath(),
    help="Use this tokenizer.json; default: the one next to the weights (needs the [tokenizers] extra).",
)
@click.option(
    "--top",
    type=int,
    default=5,
    metavar="N",
    help="Number of most likely next tokens to show with --weights (default: 5).",
)
@set_option
@download_option
@output_options
def command(
    name: str,
    tokens: int | None,
    pad: int | None,
    batch: int | None,
    decode: bool,
    past: int | None,
    source: int | None,
    full: bool,
    weights: str | None,
    text: str | None,
    tokenizer: str | None,
    top: int,
    changes: tuple[str, ...],
    download: bool,
    output: Output,
) -> None:
    """Trace a forward pass: every operation in order, with the shapes of its inputs and output.

    Dimensions that must be equal in a product are marked: [5, ‹768›] · [‹768›, 64] = [5, 64].
    """
    from paramcount.tracing.render import build_table, with_every_layer
    from paramcount.tracing.run import trace_model
    from paramcount.tracing.walk import TraceOptions

    if past is not None and not decode:
        raise ParamcountError("--past requires --decode")
    if decode and past is None:
        raise ParamcountError("--decode requires --past N")
    model = load_model(name, changes, download)
    run = None
    if weights or text:
        options = {"--tokens": tokens, "--pad": pad, "--batch": batch, "--past": past, "--source": source}
        shape_options = [option for option, value in options.items() if value is not None]
        run = run_gpt2(model, weights, text, tokenizer, top, shape_options)
    if run:
        n_tokens = len(run.ids)
    elif tokens is not None:
        n_tokens = tokens
    else:
        n_tokens = 1 if decode else 5
    trace = trace_model(model, TraceOptions(n_tokens, pad, batch, past, source))
    result = add_changes(build_table(with_every_layer(trace) if full else trace), model)
    if run:
        result = add_predictions(result, run)
    emit(lambda format: result, output, collect_messages([name], [model], trace))


def run_gpt2(
    model: Model,
    weights: str | None,
    text: str | None,
    tokenizer: str | None,
    top: int,
    shape_options: Sequence[str],
) -> Run:
    """The forward pass of GPT-2 on a text. `shape_options`: options of the command line that set the shape, which the
    text already does."""
    if not weights:
        raise ParamcountError("--text requires --weights FILE")
    if text is None:
        raise ParamcountError("--weights requires --text TEXT")
    if model.architecture != "gpt2":
        problem = f"not available for the architecture {model.architecture}"
        raise ParamcountError(problem, where="--weights", expected="a model of the architecture gpt2")
    if model.original is not None:
        raise ParamcountError("--weights cannot be combined with --set, because the sizes of the weights are fixed")
    if shape_options:
        raise ParamcountError(f"--text cannot be combined with {shape_options[0]}, because the text sets the shape")
    from paramcount.formats.files import expand_home
    from paramcount.gpt2.generation import predict_next

    tokenizer_path = expand_home(tokenizer) if tokenizer else None
    sizes = cast("TextModelSizes", model.sizes)
    return predict_next(sizes, expand_home(weights), text, tokenizer_path, top=top, config=model.reading.unread)


def add_predictions(trace: Table, run: Run) -> Table:
    """The trace with the input tokens above it and the most likely next tokens below."""
    from paramcount.gpt2 import generation

    predictions = map(generation.format_next_word, run.next_words)
    return trace._replace(
        above=[*trace.above, generation.format_tokens(run)],
        below=[*trace.below, "most likely next tokens:", *predictions, *run.notes],
        data=trace.data | {"run": generation.run_to_dict(run)},
    )
