"""Sending tokens through a model, in shapes."""

from __future__ import annotations

from typing import Any

from paramcount.errors import ParamcountError, shown
from paramcount.names import load
from paramcount.summing import flows
from paramcount.tracing.traces import Trace
from paramcount.tracing.walking import Asked, Place, Walk
from paramcount.zoo import Model

MOST = 10**9  # tokens at once: a context of a billion


def trace(
    spec: object, *, tokens: int | None = None, pad: int | None = None, batch: int | None = None, past: int | None = None, source: int | None = None
) -> Trace:
    """The life of a tensor: every operation of the forward pass in order, with the shapes that meet in it.

    `spec`: as for `paramcount.load`. `tokens`: how many go in at once, 5 unless given, 1 while decoding. `pad`: how many rows there are
    behind the embedding, the rest zeros. `batch`: texts at once, an axis in front. `past`: tokens before these, whose keys and values are in
    the cache: with it, one decoding step of `tokens`. `source`: tokens that an encoder reads beside; else its shapes say "source".

    Shapes: of every step, what goes in, the weight as it is multiplied [in, out] and as it is stored, what comes out.
    Raises: ParamcountError for what cannot be sent through this model.

    >>> from paramcount.tracing.sending import trace
    >>> [step.out for step in trace("gpt2-small", tokens=5).steps][-3:]
    [(5, 768), (768,), (50257,)]
    """
    usual = 5 if past is None else 1
    return traced(load(spec), Asked(usual if tokens is None else tokens, pad, batch, past, source))


def traced(model: Model, asked: Asked) -> Trace:
    """The trace of a loaded model."""
    for name, value in asked._asdict().items():
        least = 0 if name == "past" else 1
        if value is not None and (type(value) is not int or not least <= value <= MOST):
            raise ParamcountError(f"= {shown(value)}", where=name, accepted=f"a whole number from {least} to {MOST:,}")
    rows = asked.tokens if asked.pad is None else asked.pad
    if rows < asked.tokens:
        raise ParamcountError(f"= {asked.pad} is less than tokens = {asked.tokens}", where="pad", accepted=f"from {asked.tokens}")
    if asked.pad is not None and asked.past is not None:
        raise ParamcountError("beside past: what is decoded is not padded", where="pad", accepted="one of them")
    sizes = model.sizes
    reach = rows + (asked.past or 0)
    n_positions = getattr(sizes, "n_positions", None)
    if type(n_positions) is int and reach > n_positions:
        raise ParamcountError(
            f"{reach:,} tokens, but the position embedding has {n_positions:,} positions", where=model.id, accepted=f"at most {n_positions:,}"
        )
    out, part = next(iter(flows(sizes, model.reading.head)))
    walk = Walk(out, asked)
    if asked.past is not None and not walk.cached and not walk.causal:
        raise ParamcountError("has no KV cache, because it reads all tokens at once", where=model.id, accepted="a trace without past")
    walk.visit(out, Place(part=part))
    warnings = []
    if model.context_length is not None and reach > model.context_length:
        warnings.append(f"{reach:,} tokens exceed the published context length of {model.context_length:,}")
    warnings += [f"{what} is not described: every layer is traced with full attention" for what in model.reading.untraced]
    patterns: list[Any] = walk.patterns
    return Trace(
        id=model.id,
        name=model.name,
        tokens=asked.tokens,
        pad=asked.pad,
        batch=asked.batch,
        past=asked.past,
        source=asked.source,
        steps=tuple(walk.steps),
        cache=tuple(walk.kept),
        pattern=None if None in patterns else sum(patterns),
        warnings=tuple(warnings),
    )
