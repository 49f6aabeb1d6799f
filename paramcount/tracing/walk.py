"""Walks a forward pass and records its steps: sizes become numbers, and attention becomes its matmuls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from paramcount.flow import (
    Alibi,
    Body,
    Cache,
    ChooseTokens,
    Data,
    Experts,
    Hide,
    Input,
    Layers,
    Linear,
    Pseudoinverse,
    Scored,
    Scores,
    ScoresOfTwo,
    SecondValue,
    Size,
    Split,
    Tuple,
    Undescribed,
    Weight,
    WeightedSum,
    last_size,
    list_scored,
)
from paramcount.flow import multiply as product_of
from paramcount.flow.caches import find_state, list_kept
from paramcount.flow.graph import ONCE
from paramcount.flow.masks import Chosen, Largest, Mask, Pairs, Window
from paramcount.flow.operation import Form, Operation, Stage
from paramcount.flow.walk import fold_weight
from paramcount.tracing.phrases import describe_data, name_data
from paramcount.tracing.shapes import Shapes, TraceOptions, TracePlace, end_indices
from paramcount.tracing.trace import Band, CacheEntry, Product, Shape, Step, WeightUse

# Steps that no operation declares: they follow from what a trace is asked for
KV_CACHE = Stage("KV cache", "appended", Form.KV_CACHE)
PADDING = Stage("pad", "with zeros")
LAST_POSITION = Stage("last position", "predicts the next token", Form.LAST_POSITION)
# {their labels: the operations that do the same}
OPERATIONS_OF_STAGES = {KV_CACHE.label: "Cache", PADDING.label: "pad_rows", LAST_POSITION.label: "LastPosition"}


class Walk(Shapes):
    """One pass over a forward pass, which collects steps, cache entries and attention scores."""

    def __init__(self, out: Data, options: TraceOptions) -> None:
        super().__init__(out, options)
        self.steps: list[Step] = []
        self.cache: list[CacheEntry] = []
        self.score_counts: list[int | None] = []
        self.step_of: dict[int, int] = {}  # {id of data: index of the step that computes it}
        self.pad_step_of: dict[int, int] = {}  # {index of a step: index of the step that pads it}
        self.attention_of = {id(each.scores): a for a in self.attentions.values() for each in a.scored}
        self.scored_of = {id(each.scores): each for a in self.attentions.values() for each in a.scored}
        self.choice_of: dict[int, ChooseTokens | None] = {}  # memo of find_choice
        self.token_dependent: dict[int, bool] = {}  # memo of depends_on_tokens

    @property
    def has_next_token(self) -> bool:
        """Whether a token can follow those of a cache."""
        return bool(self.cached_rows) or self.causal

    def visit(self, data: Data, place: TracePlace) -> None:
        """Add the steps that data depend on, then its own."""
        pending = [self.enter(data, place)]  # a list, because flows are deeper than calls can be nested
        while pending:
            needed = next(pending[-1], None)
            if needed:
                pending.append(self.enter(*needed))
            else:
                pending.pop()

    def enter(self, data: Data, place: TracePlace) -> Iterator[tuple[Data, TracePlace]]:
        """What has to be visited before each step of data, which are added in between."""
        if id(data) in self.step_of:
            return
        if self.is_precomputed(data):
            return
        if data.operation.of_prompt and self.options.past is not None:
            yield data.inputs[0], place
            self.pass_on(data, data.inputs[0])
            return
        is_step = not data.bodies and not isinstance(data.operation, Tuple)
        for source in (*data.inputs, *data.earlier):
            yield source, place
            if is_step and self.is_precomputed(source) and self.find_source(source) is None:
                stage = KV_CACHE._replace(note="computed once, before decoding")
                self.add_step(source, place, stage, inputs=(), reads=())
        if (isinstance(data.operation, Input) and not data.operation.what) or isinstance(data.operation, Alibi):
            return
        self.add_padding(data.inputs, place)
        if data.bodies:
            yield from self.visit_bodies(data, place)
        elif isinstance(data.operation, Cache):
            self.add_cache_read(data, place)
        elif isinstance(data.operation, WeightedSum) or list_scored(data):
            self.add_attention(data, place)
        elif not is_silent(data):
            self.add_operation(data, place)

    def is_precomputed(self, data: Data) -> bool:
        """Whether decoding does not recompute it, such as the output of an encoder."""
        return self.options.past is not None and not self.depends_on_tokens(data)

    def depends_on_tokens(self, data: Data) -> bool:
        """Whether it is recomputed for each new token."""
        if id(data) not in self.token_dependent:
            self.token_dependent[id(data)] = False
            sources = self.outer.get(id(data), data.inputs)
            has_tokens = data.shape[:1] in (("tokens",), ("prompt",))
            self.token_dependent[id(data)] = has_tokens or any(map(self.depends_on_tokens, sources))
        return self.token_dependent[id(data)]

    def visit_bodies(self, data: Data, place: TracePlace) -> Iterator[tuple[Data, TracePlace]]:
        """Add the steps inside layers, experts or a named block."""
        if isinstance(data.operation, Layers) and self.options.pad is not None and data.shape[0] == "tokens":
            self.n_rows = self.options.pad
            self.add_padding(data.inputs, place)
        for body in data.bodies:
            yield body.out, place.inside(data, body)
        if isinstance(data.operation, Experts):
            (body,) = data.bodies
            router_weights = data.inputs[1]
            note = f"{body.repeat.active:,} of {body.repeat.count:,} experts per token, weighted by the router"
            inputs = (self.shape_of(body.out, place.inside(data, body)), self.shape_of(router_weights))
            reads = self.find_sources((body.out, router_weights))
            elements = self.count_elements(data, place)
            self.add_step(
                data, place, Experts.sum, inputs=inputs, note=note, reads=reads, elementwise_operations=elements
            )
        elif isinstance(data.operation, Layers) or data.bodies[0].repeat is ONCE:
            self.pass_on(data, self.find_last(data.bodies).out)
        else:
            out = data.bodies[0].out
            self.add_step(data, place, make_stage(data), inputs=(self.shape_of(out),), reads=self.find_sources((out,)))

    def find_last(self, bodies: Sequence[Body]) -> Body:
        return max(bodies, key=lambda body: max(end_indices(body), default=0))

    def pass_on(self, data: Data, original: Data) -> None:
        """Give data the source of `original`, which it passes on unchanged."""
        if (index := self.find_source(original)) is not None:
            self.step_of[id(data)] = index

    def find_sources(self, inputs: tuple[Data, ...]) -> tuple[int, ...]:
        """Indices of the steps that compute the inputs, without those that have not been added yet."""
        indices = (self.find_source(data) for data in inputs)
        return tuple(dict.fromkeys(index for index in indices if index is not None))

    def find_source(self, data: Data, visited: tuple[Data, ...] = ()) -> int | None:
        """Index of the step that computes data; the input of a body was computed outside of it."""
        if id(data) in self.step_of:
            index = self.step_of[id(data)]
            return self.pad_step_of.get(index, index)
        sources = self.outer.get(id(data)) or (data.inputs[:1] if is_silent(data) else ())
        indices = (self.find_source(source, (*visited, data)) for source in sources if source not in visited)
        return next((index for index in indices if index is not None), None)

    def list_values(self, data: Data) -> tuple[Data, ...]:
        """What data is computed from: its inputs, or the second value of the tuple that is its input."""
        if not isinstance(data.operation, SecondValue):
            return data.inputs
        whole = data.inputs[0]
        while whole.bodies or (not whole.inputs and self.outer.get(id(whole))):
            whole = self.find_last(whole.bodies).out if whole.bodies else self.outer[id(whole)][0]
        return whole.inputs[1:2] if isinstance(whole.operation, Tuple) else data.inputs

    def add_step(
        self, data: Data, place: TracePlace, stage: Stage, *, inputs: tuple[Shape, ...], **fields: Any
    ) -> None:
        """Append the step that computes data. `fields` override the defaults."""
        step = Step(
            op=stage.label,
            text=stage.label,
            form=stage.form,
            name="",
            inputs=inputs,
            weights=(),
            out=self.shape_of(data),
            heads=1,
            product=None,
            part=place.part,
            component="",
            scopes=place.scopes,
            reads=self.find_sources(self.list_values(data)),
            note=stage.note,
            operation=OPERATIONS_OF_STAGES.get(stage.label) or type(data.operation).__name__,
        )
        self.step_of[id(data)] = len(self.steps)
        self.steps.append(step._replace(**fields))

    def add_operation(self, data: Data, place: TracePlace) -> None:
        uses = tuple(self.use_weight(weight, data, place) for weight in data.weights)
        is_lm_head = bool(uses) and uses[0].component == "lm_head" and data.operation.form is Form.LINEAR
        if is_lm_head and self.causal and data.shape[0] == "tokens" and not self.is_after_selection:
            self.select_last_position(data.inputs[0], place)
        component = data.operation.component if isinstance(data.operation, Split) else None
        components = (component,) if component else tuple(name for name, _ in list_splits(data))
        heads, product = self.find_product(data, place)
        state = data.operation.state_shapes
        self.add_cached(data, place)
        self.add_step(
            data,
            place,
            make_stage(data),
            inputs=tuple(self.shape_of(source, place) for source in self.list_values(data)),
            text=name_data(data, components, place.part),
            name=uses[0].name.removesuffix(".weight") if uses else "",
            weights=uses,
            out=self.shape_of(data, place),
            heads=heads,
            product=product,
            component=component or (uses[0].component if uses else ""),
            note=f"tied to {uses[0].tied_to}" if uses and uses[0].tied_to else describe_data(data),
            reads_only_lengths=data.operation.reads_only_lengths,
            state=state,
            **self.count_work(data, place),
        )

    def count_work(self, data: Data, place: TracePlace) -> dict[str, int | None]:
        """Multiply-adds of an operation's matmuls in one layer, or the elements that it computes without them;
        None if they are unknown."""
        operation = data.operation
        if isinstance(operation, Undescribed) or self.has_unknown_prompt:  # whose rows have no number
            return {"multiply_adds": None, "visible_multiply_adds": None}
        if type(operation).multiply_adds is Operation.multiply_adds:
            return {"elementwise_operations": 0 if operation.only_moves else self.count_elements(data, place)}
        shapes = [*(self.full_shape(x, place) for x in data.inputs), self.new_shape(data, place)]
        weights = [weight.shape for weight in data.weights]
        if any(isinstance(n, str) for shape in (*shapes, *weights) for n in shape):
            return {"multiply_adds": None, "visible_multiply_adds": None}
        batch, sizes = self.options.batch or 1, (shapes[:-1], weights, shapes[-1])
        return {
            "multiply_adds": batch * operation.multiply_adds(*sizes),
            "visible_multiply_adds": self.count_visible_work(data, *sizes),
        }

    def count_visible_work(self, data: Data, inputs: Any, weights: Any, out: Any) -> int | None:
        """Multiply-adds without the pairs of a query and a key that a mask hides."""
        end = self.find_end(data) if data.shape and isinstance(data.shape[0], str) else 0
        if isinstance(end, str):
            return None
        return (self.options.batch or 1) * data.operation.visible_multiply_adds(inputs, weights, out, end)

    def count_elements(self, data: Data, place: TracePlace) -> int | None:
        """Elements of the output that this pass computes; None if a size depends on the input."""
        shape = self.new_shape(data, place)
        if any(isinstance(n, str) for n in shape):
            return None
        has_batch = data.shape[:1] and isinstance(data.shape[0], str) and not self.is_equal_for_all_texts(data)
        elements: int = product_of(shape) * ((self.options.batch or 1) if has_batch else 1)
        return elements

    def use_weight(self, weight: Weight, data: Data, place: TracePlace) -> WeightUse:
        """A weight as it is multiplied: [in, out] for a matrix, however it is stored."""
        row = fold_weight(weight, place.names, place.repeats, place.part)
        shape = weight.shape
        if isinstance(data.operation, Linear) and len(shape) == 2 and not data.operation.transposed:
            shape = shape[::-1]
        return WeightUse(row.name, shape, row.shape, row.component, row.tied_to, row.role)

    def find_product(self, data: Data, place: TracePlace) -> tuple[int, Product | None]:
        """(number of products, one of them) of a matrix, or of one part of a fused matrix."""
        whole = data.inputs[0] if isinstance(data.operation, Split) and data.operation.component else data
        is_matrix = isinstance(whole.operation, Linear) and len(whole.weights[0].shape) == 2
        if not is_matrix or (whole is not data and len(data.shape) != 3):
            return 1, None
        d_in: Size = last_size(whole.inputs[0])
        d_out = data.shape[-1]
        rows = self.shape_of(data, place)[: -(len(data.shape) - 1)]
        heads = data.shape[1] if len(data.shape) == 3 else 1
        return heads, Product((*rows, d_in), (d_in, d_out), (*rows, d_out))

    def add_attention(self, data: Data, place: TracePlace) -> None:
        """Append a step on attention scores or weights, from queries and keys to the weighted sum of values."""
        operation, fields = data.operation, self.find_attention_fields(data)
        sources = tuple(source for source in data.inputs if not isinstance(source.operation, Alibi))  # no step
        stage = make_stage(data)
        if isinstance(operation, Hide):
            fields["mask"] = find_band(operation.mask)
            if not self.is_shown(data, operation.mask):
                self.pass_on(data, data.inputs[0])
                return
        if len(sources) < len(data.inputs):
            stage = make_stage(data.inputs[1])
        if operation.form is Form.SCORES:
            sources = sources[:2] if isinstance(operation, Scores) else sources
            heads, shared = (x.shape[1] if len(x.shape) == 3 else 1 for x in sources[:2])
            grouping = f", {divide(heads, shared)} query heads per KV head" if shared != heads else ""
            stage = stage._replace(note="attention scores" + grouping + (f", {stage.note}" if stage.note else ""))
        uses = tuple(self.use_weight(weight, data, place) for weight in data.weights)
        if uses:
            stage = stage._replace(note=f"{stage.note}, with a learned attention sink per head")
        inputs = tuple(map(self.shape_of, sources))
        component = uses[0].component if uses else ""
        reads = self.find_sources(sources)
        self.add_step(data, place, stage, inputs=inputs, weights=uses, component=component, reads=reads, **fields)
        if operation.form is Form.ATTENTION_WEIGHTS:
            sizes = self.shape_of_scores(list_scored(data))
            known = not any(isinstance(n, str) for n in sizes)
            self.score_counts.append(place.layers * product_of(sizes) if known else None)
        self.add_cached(data, place)

    def find_attention_fields(self, data: Data) -> dict[str, Any]:
        """The heads, product and work of a step of attention."""
        operation, scored = data.operation, list_scored(data) or self.attentions[id(data)].scored
        q, v = scored[0].scores.inputs[0], data.inputs[-1]
        sizes = self.shape_of_scores(scored)
        n, m = sizes[-2:]
        fields: dict[str, Any] = {"heads": sizes[0] if len(sizes) > 2 else 1}
        if isinstance(operation, Scores | ScoresOfTwo):
            fields["product"] = Product((n, q.shape[-1]), (q.shape[-1], m), (n, m))
            pairs, visible = self.count_pairs(self.scored_of.get(id(data), scored[0]))
            fields |= {"multiply_adds": self.multiply_width(pairs, q)}
            fields |= {"visible_multiply_adds": self.multiply_width(visible, q)}
        elif isinstance(operation, WeightedSum):
            scored = scored[: len(data.inputs) - 1]  # a key of the query's own has no value here
            m = self.shape_of_scores(scored)[-1]
            fields["product"] = Product((n, m), (m, v.shape[-1]), (n, v.shape[-1]))
            counts = [self.count_pairs(each) for each in scored]
            fields |= {"multiply_adds": self.multiply_width(add([pairs for pairs, _ in counts]), v)}
            fields |= {"visible_multiply_adds": self.multiply_width(add([visible for _, visible in counts]), v)}
        elif isinstance(operation, Pseudoinverse):
            count = None if isinstance(n, str) else operation.multiply_adds((), (), sizes)  # type: ignore[arg-type]
            fields |= {"multiply_adds": count, "visible_multiply_adds": count}
        else:
            fields["elementwise_operations"] = add([self.count_pairs(each)[0] for each in scored])
        return fields

    def is_shown(self, data: Data, mask: Mask) -> bool:
        """Whether a mask hides anything of a pass: one query sees all that a cache keeps because of the mask."""
        if all(type(part) is Mask for part in mask.parts):
            return False
        scored = list_scored(data)
        n = self.count_rows(scored[0].scores.inputs[0])
        if n != 1 or mask.find(Chosen) or mask.find(Largest):
            return True
        attention = self.attention_of.get(id(scored[0].scores))
        return bool(mask.trim is not None and attention and attention.caches and mask.trim != attention.trim)

    def add_cached(self, data: Data, place: TracePlace) -> None:
        """Append what an operation keeps for later tokens, with its size after this pass."""
        total = self.options.tokens + (self.options.past or 0)
        state, attention = find_state(data), self.attentions.get(id(data))
        for cached in (state,) if state else () if attention is None else list_kept(attention):
            kept = self.n_prompt + total if cached.longest is None else min(self.n_prompt + total, cached.longest)
            shapes = cached.shapes
            if not cached.is_state:
                shapes = tuple((kept if n == "tokens" else self.resolve_size(n), *others) for n, *others in shapes)
            self.cache.append(CacheEntry(cached.what, shapes, place.layers, grows=cached.grows, kind=cached.kind))

    def count_pairs(self, scored: Scored) -> tuple[int | None, int | None]:
        """Pairs of a query and a key of all heads: all, and those that no mask hides; None if a length depends on the
        input."""
        q, k = scored.scores.inputs[:2]
        n, m, end = self.count_rows(q), self.count_keys(scored.scores), self.find_end(q)
        if isinstance(n, str) or isinstance(m, str) or isinstance(end, str):
            return None, None
        heads = (q.shape[1] if len(q.shape) == 3 else 1) * (self.options.batch or 1)
        if scored.mask is None:
            return heads * n * m, heads * n * m
        choice = None if scored.chosen is None else self.find_choice(scored.chosen)
        most = None if choice is None else choice.count_chosen(range(end - n, end))
        front = self.count_front(q), self.count_front(k)
        return heads * n * m, heads * scored.mask.count(Pairs(n, m, end), front, most)

    def find_choice(self, data: Data) -> ChooseTokens | None:
        """What has chosen tokens or blocks: a layer may attend to those that another one has chosen."""
        if isinstance(data.operation, ChooseTokens):
            return data.operation
        if id(data) not in self.choice_of:
            self.choice_of[id(data)] = None  # what layers pass on leads back here
            choices = (self.find_choice(source) for source in self.outer.get(id(data), data.inputs))
            self.choice_of[id(data)] = next((choice for choice in choices if choice is not None), None)
        return self.choice_of[id(data)]

    def multiply_width(self, pairs: int | None, data: Data) -> int | None:
        """None if either depends on the input: attention among channels multiplies along the patches."""
        width = self.shape_of(data)[-1]
        return None if pairs is None or isinstance(width, str) else pairs * width

    def add_cache_read(self, data: Data, place: TracePlace) -> None:
        """Append a step that joins the cached tokens and the new ones, if there are any."""
        if id(data) not in self.cached_rows or self.options.past in (None, 0):
            self.pass_on(data, data.inputs[0])
            return
        new = self.add_batch_axis((self.options.tokens, *data.shape[1:]))
        n = self.cached_rows[id(data)] - self.options.tokens + self.n_prompt
        self.add_step(data, place, KV_CACHE, inputs=(self.add_batch_axis((n, *data.shape[1:])), new))

    def add_padding(self, inputs: tuple[Data, ...], place: TracePlace) -> None:
        if self.n_rows == self.options.tokens or place.is_expert:
            return
        for data in inputs:
            index = self.find_source(data)
            if index is None or data.shape[0] != "tokens" or isinstance(data.operation, Alibi):
                continue
            if self.steps[index].out != self.shape_of(data):
                self.add_step(data, place, PADDING, inputs=(self.steps[index].out,), reads=(index,))
                self.pad_step_of[index] = self.step_of[id(data)]

    def select_last_position(self, data: Data, place: TracePlace) -> None:
        """Append a step that keeps the position which predicts the next token."""
        inputs = (self.shape_of(data),)
        self.is_after_selection = True
        note = LAST_POSITION.note
        if self.n_rows != self.options.tokens:
            note = f"position {self.options.tokens:,} of {self.n_rows:,}"
        self.add_step(data, place, LAST_POSITION, inputs=inputs, reads=self.find_sources((data,)), note=note)


def make_stage(data: Data) -> Stage:
    operation = data.operation
    return Stage(operation.label, describe_data(data), operation.form)


def divide(heads: Size, shared: Size) -> Size | str:
    """How many heads share one; an expression if they are symbols."""
    return heads // shared if isinstance(heads, int) and isinstance(shared, int) else f"{heads} / {shared}"


def find_band(mask: Mask) -> Band | None:
    """What a mask shows if positions alone decide."""
    window = mask.find(Window)
    if window is not None:
        return Band(mask.is_causal, window.n if window.ahead is None else window.ahead)
    return Band(causal=True, window=None) if mask.is_causal else None


def add(counts: Sequence[int | None]) -> int | None:
    found = counts[0]
    for n in counts[1:]:
        found = None if found is None or n is None else found + n
    return found


def is_silent(data: Data) -> bool:
    """Whether it computes nothing: a tuple, the only part of a split, or a stack without layers."""
    is_whole = isinstance(data.operation, Split) and len(data.operation.widths) == 1
    return (
        is_whole
        or isinstance(data.operation, Cache | Tuple)
        or (isinstance(data.operation, Layers) and not data.bodies)
    )


def list_splits(data: Data) -> tuple[tuple[str, Size], ...]:
    """(component, size) of the parts of an operation's first weight."""
    weight = data.weights[0] if data.weights else None
    return () if weight is None else weight.splits or ((weight.component, 0),)
