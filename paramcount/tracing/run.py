"""Sending tokens through a model, in shapes."""

from __future__ import annotations

from typing import Any

from paramcount.counting.sum_weights import list_flows
from paramcount.errors import ParamcountError, describe_value
from paramcount.tracing.trace import Trace
from paramcount.tracing.walk import Place, TraceOptions, Walk
from paramcount.zoo import Model

MOST = 10**9  # tokens at once: a context of a billion


def trace_model(model: Model, options: TraceOptions) -> Trace:
    """The trace of a model.

    Raises: ParamcountError for inputs that the model cannot take.
    """
    for name, value in options._asdict().items():
        least = 0 if name == "past" else 1
        if value is not None and (type(value) is not int or not least <= value <= MOST):
            raise ParamcountError(f"= {describe_value(value)}", where=name, expected=f"a whole number from {least} to {MOST:,}")
    rows = options.tokens if options.pad is None else options.pad
    if rows < options.tokens:
        raise ParamcountError(f"= {options.pad} is less than tokens = {options.tokens}", where="pad", expected=f"from {options.tokens}")
    if options.pad is not None and options.past is not None:
        raise ParamcountError("beside past: what is decoded is not padded", where="pad", expected="one of them")
    sizes = model.sizes
    reach = rows + (options.past or 0)
    n_positions = getattr(sizes, "n_positions", None)
    if type(n_positions) is int and reach > n_positions:
        found = f"{reach:,} tokens, but the position embedding has {n_positions:,} positions"
        raise ParamcountError(found, where=model.id, expected=f"at most {n_positions:,}")
    out, part = next(iter(list_flows(sizes, model.reading.head)))
    walk = Walk(out, options)
    if options.past is not None and not walk.cached and not walk.causal:
        raise ParamcountError("has no KV cache, because it reads all tokens at once", where=model.id, expected="a trace without past")
    walk.visit(out, Place(part=part))
    warnings = []
    if model.context_length is not None and reach > model.context_length:
        warnings.append(f"{reach:,} tokens exceed the published context length of {model.context_length:,}")
    warnings += [f"{what} is not described: every layer is traced with full attention" for what in model.reading.untraced]
    patterns: list[Any] = walk.patterns
    return Trace(
        id=model.id,
        name=model.name,
        tokens=options.tokens,
        pad=options.pad,
        batch=options.batch,
        past=options.past,
        source=options.source,
        steps=tuple(walk.steps),
        cache=tuple(walk.kept),
        pattern=None if None in patterns else sum(patterns),
        warnings=tuple(warnings),
    )
