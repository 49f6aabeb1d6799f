"""The steps of a forward pass with polynomials in the sizes of a model, the context and the visible keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from paramcount.counting.sum_weights import STRUCTURE_ERRORS, list_flows
from paramcount.flow import Body, Cache, Data, Scored, Size, list_steps
from paramcount.flow.caches import list_cached
from paramcount.sizes import Sizes
from paramcount.symbolic.polynomials import decide_by, has_same_terms, make_symbols
from paramcount.tracing.shapes import TraceOptions, TracePlace, outputs_tokens
from paramcount.tracing.trace import Step
from paramcount.tracing.walk import Walk

CONTEXT = "context"  # tokens of the text, the decoded one included


class SymbolicFlow(NamedTuple):
    """The steps that decode one token, or read a whole text if nothing is cached. Shapes are polynomials."""

    steps: list[Step]
    windows: dict[str, Size]  # {name in the polynomials: most tokens}: the context, but at most so many
    decodes: bool  # whether they are those of one token


class SymbolicWalk(Walk):
    """A walk whose sizes and context are symbols."""

    def __init__(self, out: Data, options: TraceOptions) -> None:
        self.windows: dict[str, Size] = {}
        super().__init__(out, options)

    def count_visible_keys(self, cache: Cache) -> Any:
        trim = cache.mask.trim
        if trim is None:
            return make_symbols(CONTEXT)[0]
        name = next((name for name, n in self.windows.items() if has_same_terms(n, trim)), None)
        if name is None:
            name = f"{CONTEXT}{len(self.windows)}"
            self.windows[name] = trim
        return make_symbols(name)[0]

    def count_pairs(self, scored: Scored) -> tuple[Any, None]:
        q = scored.scores.inputs[0]
        n, m = self.count_rows(q), self.count_keys(scored.scores)
        heads = q.shape[1] if len(q.shape) == 3 else 1
        return (None if isinstance(n, str) or isinstance(m, str) else heads * n * m), None

    def count_blocks(self, data: Data) -> str:
        """A name: the number of whole blocks of a text is no polynomial."""
        return "blocks"

    def find_longest(self, lengths: Sequence[Any]) -> Any:
        """The context if one of them is that; the others are windows or single tokens."""
        context = make_symbols(CONTEXT)[0]
        symbols = [n for n in lengths if not isinstance(n, int)]
        return (
            context
            if any(type(n) is not str and has_same_terms(context, n) for n in symbols)
            else symbols[0]
            if symbols
            else max(lengths)
        )

    def count_visible_work(self, data: Data, *shapes: Any) -> None:
        """The page has none."""

    def find_last(self, bodies: Sequence[Body]) -> Body:
        return bodies[-1]

    def add_cached(self, data: Data, place: TracePlace) -> None:
        """What is kept is exported on its own."""


def derive_flow(sizes: Sizes, head: bool) -> SymbolicFlow | None:
    """The steps of sizes that are symbols; None if they branch on a size."""
    try:
        out, part = next(iter(list_flows(sizes, head)))
        with decide_by(None):  # a step reads alike whether sizes are equal or not
            options = choose_options(out, make_symbols(CONTEXT)[0])
            walk = SymbolicWalk(out, options)
            walk.visit(out, TracePlace(part=part))
    except STRUCTURE_ERRORS:
        return None
    return SymbolicFlow(walk.steps, walk.windows, options.past is not None)


def choose_options(out: Data, context: Any) -> TraceOptions:
    """One token after the others of a text with so many tokens, or the whole text if no token follows from a cache."""
    flow = [data for data, *_ in list_steps(out)]
    source = context if any("source" in data.shape for data in flow) else None
    is_decoder = outputs_tokens(out) and SymbolicWalk(out, TraceOptions(1)).has_next_token
    if is_decoder and next(list_cached(out), None):
        return TraceOptions(1, past=context - 1, source=source)
    return TraceOptions(context, source=source)
