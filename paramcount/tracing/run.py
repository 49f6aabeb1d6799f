"""Checks the input of a forward pass and traces it."""

from __future__ import annotations

from paramcount.counting.sum_weights import list_flows
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow.positions import count_positions
from paramcount.tracing.shapes import TraceOptions, TracePlace, outputs_tokens
from paramcount.tracing.trace import Trace
from paramcount.tracing.walk import Walk
from paramcount.zoo import Model

MAX_TOKENS = 10**9


def choose_length(model: Model, most: int) -> int:
    """The length of a text to show: `most` tokens, or as many as the model takes."""
    out, _ = next(iter(list_flows(model.sizes, model.reading.head)))
    limits = [count_positions(out), model.context_length]
    return min([most, *(n for n in limits if n is not None and n > 0)])


def check_length(model: Model, tokens: int) -> list[str]:
    """Warnings about so many tokens: more than the model was published for.

    Raises: ParamcountError if its position embedding has fewer rows.
    """
    n_positions = count_positions(next(iter(list_flows(model.sizes, model.reading.head)))[0])
    if n_positions is not None and tokens > n_positions:
        problem = f"{tokens:,} tokens exceed the {n_positions:,} positions of the position embedding"
        raise ParamcountError(problem, where=model.id, expected=f"at most {n_positions:,}")
    limits = (getattr(model.sizes, "n_positions", None), model.context_length)
    limit = min((n for n in limits if type(n) is int), default=None)
    if limit is None or tokens <= limit:
        return []
    return [f"{tokens:,} tokens exceed the published context length of {limit:,}"]


def trace_model(model: Model, options: TraceOptions) -> Trace:
    """The forward pass of a model in shapes. Raises: ParamcountError for inputs that the model cannot process."""
    for name, value in options._asdict().items():
        least = 0 if name == "past" else 1
        if value is not None and (type(value) is not int or not least <= value <= MAX_TOKENS):
            expected = f"an integer from {least} to {MAX_TOKENS:,}"
            raise ParamcountError(f"= {describe_value(value)}", where=name, expected=expected)
    padded_length = options.tokens if options.pad is None else options.pad
    if padded_length < options.tokens:
        problem = f"= {options.pad} is less than the number of tokens, {options.tokens:,}"
        raise ParamcountError(problem, where="pad", expected=f"at least {options.tokens}")
    if options.pad is not None and options.past is not None:
        raise ParamcountError("pad cannot be combined with past, because decoding does not pad")
    sizes = model.sizes
    last_position = padded_length + (options.past or 0)
    out, part = next(iter(list_flows(sizes, model.reading.head)))
    warnings = check_length(model, last_position)
    walk = Walk(out, options)
    if options.past is not None and not walk.has_next_token:
        of = " of these tokens" if walk.has_encoder_input else ""
        problem = f"= {options.past}, but {model.id} is not autoregressive and has no KV cache{of}"
        raise ParamcountError(problem, where="past")
    if options.past is not None and not outputs_tokens(out):
        problem = f"= {options.past}, but {model.id} is not autoregressive: it outputs {out.shape[0]}"
        raise ParamcountError(problem, where="past")
    if options.source is not None and not walk.has_encoder_input:
        problem = f"= {options.source}, but {model.id} has no text encoder"
        raise ParamcountError(problem, where="source")
    walk.visit(out, TracePlace(part=part))
    counts = walk.score_counts
    return Trace(
        id=model.id,
        name=model.name,
        tokens=options.tokens,
        pad=options.pad,
        batch=options.batch,
        past=options.past,
        source=options.source,
        steps=tuple(walk.steps),
        cache=tuple(walk.cache),
        attention_scores=None if None in counts else sum(n for n in counts if n is not None),
        warnings=tuple(warnings),
    )


def decodes_tokens(model: Model) -> bool:
    """Whether the model outputs a token at a time after those of its cache."""
    out, _ = next(iter(list_flows(model.sizes, model.reading.head)))
    return outputs_tokens(out) and Walk(out, TraceOptions(1)).has_next_token


def has_encoder_input(model: Model) -> bool:
    """Whether the model reads a second text with an encoder; `source` is its length."""
    out, _ = next(iter(list_flows(model.sizes, model.reading.head)))
    return Walk(out, TraceOptions(1)).has_encoder_input
