"""The shapes of data in one pass: numbers where the input fixes a size, and names where it depends on more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from paramcount.flow import (
    BlockDistanceBuckets,
    BlockSums,
    Body,
    Cache,
    CacheAndFront,
    Data,
    Fourier,
    Join,
    JoinPrompt,
    LastTokens,
    Layers,
    OtherTokens,
    OwnScores,
    Pooling,
    Repeat,
    Scored,
    Size,
    TableLookup,
    WeightedBlocks,
    list_scored,
    list_steps,
)
from paramcount.flow import multiply as product_of
from paramcount.flow.caches import find_attentions, list_rows_in_front
from paramcount.flow.walk import OUTSIDE, Names, enter_body
from paramcount.tracing.trace import ROUTED, Scope, Shape


class TraceOptions(NamedTuple):
    """The input of a forward pass."""

    tokens: int  # input length
    pad: int | None = None  # pad to this many tokens
    batch: int | None = None  # batch size
    past: int | None = None  # tokens in the KV cache: decoding
    source: int | None = None  # encoder input length


class TracePlace(NamedTuple):
    """The position of an operation in the model."""

    names: Names = OUTSIDE
    repeats: tuple[Repeat, ...] = ()
    scopes: tuple[Scope, ...] = ()
    part: str = "decoder"

    def inside(self, data: Data, body: Body) -> TracePlace:
        names, repeats = enter_body(data, body, self.names, self.repeats)
        scopes = self.scopes
        if len(repeats) > len(self.repeats):
            repeat, name = body.repeat, names.prefix.rstrip(".")
            scope = Scope(repeat.axis, repeat.count, repeat.active, repeat.label, tuple(repeat.runs), name)
            scopes = (*scopes, scope)
        return TracePlace(names, repeats, scopes, data.part or self.part)

    @property
    def layers(self) -> int:
        return product_of(scope.copies for scope in self.scopes if scope.axis == "layer")  # type: ignore[no-any-return]

    @property
    def is_expert(self) -> bool:
        return any(scope.axis == "expert" for scope in self.scopes)


def outputs_tokens(out: Data) -> bool:
    """Whether each row of the output belongs to a token, not to another sequence, such as the actions of a robot."""
    return not out.shape or not isinstance(out.shape[0], str) or out.shape[0] == "tokens"


class Shapes:
    """The lengths and shapes of the data of a forward pass, for one input."""

    def __init__(self, out: Data, options: TraceOptions) -> None:
        self.options = options
        self.n_rows = options.tokens
        self.is_after_selection = False  # after "last row" one position is left, without an axis
        self.front_rows: dict[tuple[int, bool], int] = {}  # memo of count_front
        steps = list_steps(out)
        flow = [data for data, *_ in steps]
        prompt = [options.source if n == "source" else n for n in list_rows_in_front(out)]
        self.has_unknown_prompt = not all(isinstance(n, int) for n in prompt)
        self.n_prompt = 0 if self.has_unknown_prompt else sum(n for n in prompt if isinstance(n, int))
        self.has_encoder_input = any("source" in data.shape for data in flow)
        self.attentions = find_attentions(steps)
        # A prompt that an encoder reads is there as a whole, also if its tokens attend to earlier ones alone
        attentions = [attention for attention in self.attentions.values() if attention.out.shape[0] == "tokens"]
        is_recurrent = any(data.operation.state_shapes for data in flow)
        # A next token follows the last one: no token attends to a later one, or those of a prompt do
        is_mixed = bool(self.attentions) or any(isinstance(data.operation, Fourier) for data in flow)
        self.causal = is_recurrent or any(attention.continues_text for attention in attentions) or not is_mixed
        self.cached_rows = {
            id(data): self.count_visible_keys(data.operation)
            for attention in attentions
            for data in attention.caches
            if isinstance(data.operation, Cache) and data.shape[0] == "tokens"
        }
        self.outer = {id(inner): sources for data in flow for inner, sources in match_inputs(data)}
        self.decoded_rows: dict[int, int] = {}  # memo of count_decoded_rows

    def count_visible_keys(self, cache: Cache) -> int:
        """Number of keys when decoding: the cached ones and those of the new tokens."""
        past, trim = self.options.past or 0, cache.mask.trim
        front = cache.front if isinstance(cache, CacheAndFront) else 0  # rows that are counted apart
        return self.options.tokens + (past if trim is None else min(past, trim - front - 1))

    def count_rows(self, data: Data) -> int | str:
        """Length of the first axis, with rows that are put in front of the sequence."""
        size = data.shape[0]
        if size == "blocks":
            rows = self.count_blocks(data)
        elif size != "tokens":
            rows = self.resolve_size(size)
        else:
            rows = self.n_rows if self.options.past is None else self.count_decoded_rows(data)
        if isinstance(rows, str):
            return rows
        if isinstance(data.operation, LastTokens):
            return min(rows, int(data.operation.size)) if isinstance(data.operation.size, int) else rows
        return rows + self.count_front(data)

    def count_blocks(self, data: Data) -> int | str:
        """How many whole blocks the text has that `data` sums; their name if the sums are not of the whole text."""
        operation = data.operation
        if isinstance(operation, WeightedBlocks):  # earlier ones are kept
            end, size = self.find_end(data.inputs[0]), operation.size
            return end // size if isinstance(size, int) and isinstance(end, int) else "blocks"
        if isinstance(operation, Pooling):
            rows, size = self.count_rows(data.inputs[0]), operation.size if isinstance(operation, BlockSums) else None
            return rows // size if isinstance(size, int) and isinstance(rows, int) else "blocks"
        sources = [source for source in data.inputs if source.shape[:1] == ("blocks",)]
        return self.count_blocks(sources[0]) if sources else "blocks"

    def count_earlier_blocks(self, data: Data) -> int:
        """How many of the blocks an earlier pass has computed: those that a text without the new tokens has."""
        if not isinstance(data.operation, Pooling):
            sources = [source for source in data.inputs if source.shape[:1] == ("blocks",)]
            return self.count_earlier_blocks(sources[0]) if sources else 0
        size = data.operation.size if isinstance(data.operation, WeightedBlocks) else None
        return (self.options.past or 0) // size if isinstance(size, int) else 0

    def find_end(self, data: Data) -> int | str:
        """The position behind the last row."""
        if data.shape[0] == "tokens":
            return self.n_rows if self.options.past is None else self.options.past + self.options.tokens
        rows = self.count_rows(data)
        return rows if isinstance(rows, str) else rows - self.count_front(data)

    def count_front(self, data: Data, *, has_prompt: bool = False) -> int:
        """How many rows stand in front of the sequence, such as global tokens or the keys of another text. Those of a
        prompt stand there in a first pass, then among what is cached. `has_prompt`: whether `data` are of either."""
        if self.has_unknown_prompt or not isinstance(data.shape[0], str):
            return 0
        key = id(data), has_prompt or self.options.past is None or id(data) in self.cached_rows
        if key not in self.front_rows:
            self.front_rows[key] = 0  # the state passed between layers may lead back here
            self.front_rows[key] = self.find_front(data, key[1])
        return self.front_rows[key]

    def find_front(self, data: Data, has_prompt: bool) -> int:
        operation = data.operation
        if isinstance(operation, Join) and operation.axis == 0 and len(data.inputs) == 2:
            first, rest = data.inputs
            rows = self.count_rows(first) if has_prompt or not isinstance(operation, JoinPrompt) else 0
            return self.count_front(rest, has_prompt=has_prompt) + (0 if isinstance(rows, str) else rows)
        sources = [source for source in self.list_sources(data) if source.shape[:1] == data.shape[:1]]
        n = self.count_front(sources[0], has_prompt=has_prompt) if sources else 0
        if isinstance(operation, Pooling):
            return max(n - 1, 0) if isinstance(operation, OtherTokens) else 0
        return n

    def resolve_size(self, size: int | str) -> int | str:
        """The size as a number if this trace fixes it, otherwise its name."""
        if size == "source" and self.options.source is not None:
            return self.options.source
        if size == "tokens":  # not on the first axis: the tokens that are attended to
            return self.n_prompt + (self.n_rows if self.options.past is None else self.count_seen())
        return 1 if size == "text" else size

    def count_seen(self) -> int:
        """Tokens that are attended to when decoding: fewer than all if every layer caches equally many at most."""
        lengths = set(self.cached_rows.values())
        if len(lengths) == 1:
            return lengths.pop()
        return self.options.tokens + (0 if self.options.past is None else self.options.past)  # it may be a symbol

    def resolve_keys(self, data: Data, visited: tuple[Data, ...] = ()) -> tuple[int | str, ...]:
        """The sizes behind the rows; blocks of keys, and what stands in front of the keys, are counted if they are
        known."""
        operation, sizes = data.operation, tuple(map(self.resolve_size, data.shape[1:]))
        if data in visited:  # what layers pass on leads back here
            return sizes
        visited = (*visited, data)
        outer = () if data.inputs else self.outer.get(id(data), ())
        if sizes and outer and outer[0].shape == data.shape:  # what a layer reads from outside, not one head of all
            return self.resolve_keys(outer[0], visited)
        sources = [source for source in data.inputs if source.shape[1:2] == ("blocks",)]
        if isinstance(operation, Join) and operation.axis == 1 and sources:
            first, rest = (self.resolve_keys(source, visited)[0] for source in data.inputs)
            return (first + rest, *sizes[1:]) if isinstance(first, int) and isinstance(rest, int) else sizes
        if sizes[:1] != ("blocks",):
            return sizes
        if isinstance(operation, BlockDistanceBuckets):
            rows, size = self.count_rows(data), operation.block
            return (rows // size, *sizes[1:]) if isinstance(size, int) and isinstance(rows, int) else sizes
        return (self.resolve_keys(sources[0], visited)[0], *sizes[1:]) if sources else sizes

    def count_decoded_rows(self, data: Data) -> int:
        """Length of the first axis when decoding; data read from a cache include earlier tokens."""
        if id(data) in self.cached_rows:
            return self.cached_rows[id(data)]
        if id(data) not in self.decoded_rows:
            self.decoded_rows[id(data)] = self.options.tokens  # the state passed between layers may lead back here
            sources = [source for source in self.list_sources(data) if source.shape[:1] == ("tokens",)]
            if data.inputs:
                sources = sources[:1]
            lengths = [self.count_decoded_rows(source) for source in sources]
            self.decoded_rows[id(data)] = self.find_longest([self.options.tokens, *lengths])
        return self.decoded_rows[id(data)]

    def list_sources(self, data: Data) -> tuple[Data, ...]:
        """What its rows come from: those of attention from the queries."""
        attention = self.attentions.get(id(data))
        return (attention.q,) if attention else self.outer.get(id(data), data.inputs)

    def find_longest(self, lengths: Sequence[int]) -> int:
        return max(lengths)

    def shape_of(self, data: Data, place: TracePlace | None = None) -> Shape:
        """The shape of data: numbers, and names for sizes that depend on the input."""
        if scored := list_scored(data):
            return self.add_batch_axis(self.shape_of_scores(scored))
        if not data.shape or not isinstance(data.shape[0], str):
            is_image = any(isinstance(n, str) for n in data.shape)
            return self.add_batch_axis(data.shape) if is_image else data.shape
        inner = self.resolve_keys(data)
        if self.is_after_selection:
            return self.add_batch_axis(inner)
        if place and place.is_expert:
            return (ROUTED, *inner)
        shape = (self.count_rows(data), *inner)
        return shape if self.is_equal_for_all_texts(data) else self.add_batch_axis(shape)

    def shape_of_scores(self, scored: Sequence[Scored]) -> Shape:
        """[heads, n, m], or [n, m] of queries without heads."""
        q, lengths = scored[0].scores.inputs[0], [self.count_keys(scores) for scores, *_ in scored]
        names = [n for n in lengths if isinstance(n, str)]
        m = names[0] if names else sum(n for n in lengths if not isinstance(n, str))
        return (*q.shape[1:-1], self.count_rows(q), m)

    def count_keys(self, scores: Data) -> int | str:
        return 1 if isinstance(scores.operation, OwnScores) else self.count_rows(scores.inputs[1])

    def add_batch_axis(self, shape: Shape) -> Shape:
        return shape if self.options.batch is None else (self.options.batch, *shape)

    def is_equal_for_all_texts(self, data: Data, visited: tuple[Data, ...] = ()) -> bool:
        """Whether the data depend on positions alone: one value per pair of tokens, or per token and block."""
        if data in visited:  # what layers pass on leads back here
            return True
        visited = (*visited, data)
        if isinstance(data.operation, TableLookup) and data.inputs:
            return self.is_equal_for_all_texts(data.inputs[0], visited)
        if data.operation.reads_only_lengths:
            return True
        if data.shape[:1] == () or data.shape[0] not in data.shape[1:]:
            return False
        sources = data.inputs or self.outer.get(id(data), ())
        return all(self.is_equal_for_all_texts(source, visited) for source in sources)

    def new_shape(self, data: Data, place: TracePlace) -> tuple[Any, ...]:
        """The same as `full_shape`, without the rows that a cache holds."""
        shape = self.full_shape(data, place)
        if data.shape[:1] == ("blocks",) and self.options.past is not None and isinstance(shape[0], int):
            return (shape[0] - self.count_earlier_blocks(data), *shape[1:])
        return shape

    def full_shape(self, data: Data, place: TracePlace) -> tuple[Any, ...]:
        """The shape of one sequence with its rows on the first axis; those of all experts together."""
        if not data.shape or not isinstance(data.shape[0], str):
            is_image = any(isinstance(n, str) for n in data.shape)
            return self.add_batch_axis(data.shape) if is_image else data.shape
        rows = 1 if self.is_after_selection else self.count_rows(data)
        if place.is_expert and not isinstance(rows, str):
            rows *= product_of(repeat.active for repeat in place.repeats if repeat.axis == "expert")
        return (rows, *self.resolve_keys(data))


def match_inputs(data: Data) -> Iterator[tuple[Data, tuple[Data, ...]]]:
    """(an input of a body, its possible sources, likeliest first): data outside the body, or the layers before."""
    n = len(data.inputs) - (data.operation.n_others if isinstance(data.operation, Layers) else 0)
    for body in data.bodies:
        start = body.repeat.runs[0][0] if body.repeat.runs else 0
        others = []
        if isinstance(data.operation, Layers):  # the preceding layer first
            others = sorted(data.bodies, key=lambda other: start not in end_indices(other))
        is_first = not any(start in end_indices(other) for other in others)
        layers = tuple(other.out for other in others if other is not body)
        yield body.inputs[0], (*data.inputs[:1], *layers) if is_first else (*layers, *data.inputs[:1])
        yield from ((inner, (outer,)) for inner, outer in zip(body.inputs[1:n], data.inputs[1:]))
        for i, inner in enumerate(body.inputs[n:], start=1):
            before = data.inputs[n + i - 1 : n + i]
            after = tuple(other.out.inputs[i] for other in others)
            yield inner, (*before, *after) if is_first else (*after, *before)


def end_indices(body: Body) -> tuple[Size, ...]:
    return tuple(first + n for first, n in body.repeat.runs)
