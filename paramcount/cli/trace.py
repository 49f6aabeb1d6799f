"""paramcount trace MODEL"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from paramcount.cli.options import File, Output, collect_messages, download_option, emit, load_changed, model_argument, noted, output_options, set_option
from paramcount.errors import ParamcountError

if TYPE_CHECKING:
    from paramcount.gpt2.generation import Run
    from paramcount.output.tables import Table
    from paramcount.zoo import Model


@click.command("trace", epilog="Example: paramcount trace gpt2-small --tokens 5 --pad 1024")
@model_argument
@click.option("--tokens", type=int, metavar="N", help="How many go in at once: 5, or 1 while decoding.")
@click.option("--pad", type=int, metavar="N", help="Rows behind the embedding, the rest zeros.")
@click.option("--batch", type=int, metavar="N", help="Texts at once.")
@click.option("--decode", is_flag=True, help="The next token after --past others, which are in the cache.")
@click.option("--past", type=int, metavar="N", help="Tokens in the cache.")
@click.option("--source", type=int, metavar="N", help="Tokens that an encoder reads beside.")
@click.option("--full", is_flag=True, help="Every layer by itself instead of equal ones folded.")
@click.option("--weights", metavar="FILE", type=File(), help="Of a GPT-2: run these weights (.safetensors) on --text.")
@click.option("--text", metavar="TEXT", help="What goes through the weights.")
@click.option("--tokenizer", metavar="FILE", type=File(), help="tokenizer.json, if not beside the weights; needs the [tokenizers] extra.")
@click.option("--top", type=int, default=5, metavar="N", help="How many of the likeliest next words.")
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
    """The life of a tensor: every operation in order, with the shapes that meet in it.

    Widths that must be equal in a product are marked alike: [5, ‹768›] · [‹768›, 64] = [5, 64]. Equal layers are folded.
    """
    from paramcount.tracing.render import build_table, with_every_layer
    from paramcount.tracing.run import trace_model
    from paramcount.tracing.walk import TraceOptions

    if decode != (past is not None):
        raise ParamcountError("stands alone", where="--decode" if decode else "--past", expected="--decode --past N, or neither")
    model = load_changed(name, changes, download)
    real = run_real(model, weights, text, tokenizer, top, [tokens, pad, batch, past, source]) if weights or text else None
    n_tokens = len(real.ids) if real else (5 if past is None else 1) if tokens is None else tokens
    found = trace_model(model, TraceOptions(n_tokens, pad, batch, past, source))
    told = noted(build_table(with_every_layer(found) if full else found), model)
    emit(lambda chosen: with_words(told, real) if real else told, output, collect_messages([name], [model], found))


def run_real(model: Model, weights: str | None, text: str | None, tokenizer: str | None, top: int, shape_options: Sequence[int | None]) -> Run:
    """What real weights make of a real text."""
    if not weights or text is None:
        raise ParamcountError("stands alone", where="--weights" if weights else "--text", expected="--weights FILE --text TEXT")
    if model.architecture != "gpt2":
        raise ParamcountError(f"of {model.architecture}", where="--weights", expected="a model of architecture gpt2, whose forward pass is written in NumPy")
    if model.original is not None:
        raise ParamcountError("beside --weights: they have the sizes they have", where="--set", expected="one of them")
    if any(option is not None for option in shape_options):
        raise ParamcountError("beside a shape option: the text says how many tokens there are", where="--text", expected="one of them")
    from paramcount.formats.files import expand_home
    from paramcount.gpt2.generation import predict_next

    return predict_next(model.sizes, expand_home(weights), text, expand_home(tokenizer) if tokenizer else None, top=top, config=model.reading.unread)


def with_words(trace: Table, real: Run) -> Table:
    """The trace with its tokens above and the next words below."""
    from paramcount.gpt2 import generation as gpt2_text

    return trace._replace(
        above=[*trace.above, gpt2_text.format_tokens(real)],
        below=[*trace.below, "what comes next, likeliest first:", *map(gpt2_text.format_next_word, real.next_words), *real.notes],
        data=trace.data | {"run": gpt2_text.run_to_dict(real)},
    )
