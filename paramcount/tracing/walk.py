"""Walks a forward pass and records its steps: sizes become numbers, and attention becomes its matrix products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from paramcount.flow import (
    Alibi,
    Attention,
    Body,
    Data,
    Experts,
    Input,
    Layers,
    Linear,
    Size,
    Split,
    Tuple,
    Undescribed,
    Weight,
    last_size,
)
from paramcount.flow import multiply as product_of
from paramcount.flow.caches import find_cached
from paramcount.flow.masks import count_ended
from paramcount.flow.operation import Form, Operation, Stage
from paramcount.flow.operations.attention import ChooseTokens
from paramcount.flow.walk import fold_weight
from paramcount.tracing.phrases import describe_data, name_data
from paramcount.tracing.shapes import Place, Shapes, TraceOptions, end_indices
from paramcount.tracing.trace import (
    CacheEntry,
    Mask,
    Product,
    Shape,
    Step,
    WeightUse,
)

# Steps that no operation declares: they follow from what a trace is asked for
KV_CACHE = Stage("KV cache", "appended", Form.KV_CACHE)
PADDING = Stage("pad", "with zeros")
LAST_POSITION = Stage("last position", "predicts the next token", Form.LAST_POSITION)


class Walk(Shapes):
    """One pass over a forward pass, which collects steps, cache entries and attention scores."""

    def __init__(self, out: Data, options: TraceOptions) -> None:
        super().__init__(out, options)
        self.steps: list[Step] = []
        self.cache: list[CacheEntry] = []
        self.score_counts: list[int | None] = []
        self.step_of: dict[int, int] = {}  # {id of data: index of the step that computes it}
        self.pad_step_of: dict[int, int] = {}  # {index of a step: index of the step that pads it}
        self.choice_of: dict[int, ChooseTokens | None] = {}  # memo of find_choice
        self.token_dependent: dict[int, bool] = {}  # memo of depends_on_tokens

    @property
    def has_next_token(self) -> bool:
        """Whether a token can follow those of a cache."""
        return bool(self.cached_rows) or self.causal

    def visit(self, data: Data, place: Place) -> None:
        """Add the steps that data depend on, then its own."""
        pending = [self.enter(data, place)]  # a list, because flows are deeper than calls can be nested
        while pending:
            needed = next(pending[-1], None)
            if needed:
                pending.append(self.enter(*needed))
            else:
                pending.pop()

    def enter(self, data: Data, place: Place) -> Iterator[tuple[Data, Place]]:
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
        for source in data.inputs:
            yield source, place
            if is_step and self.is_precomputed(source) and self.find_source(source) is None:
                stage = KV_CACHE._replace(note="computed once, before decoding")
                self.add_step(source, place, stage, inputs=(), reads=())
        if (isinstance(data.operation, Input) and not data.operation.what) or isinstance(data.operation, Alibi):
            return
        self.add_padding(data.inputs, place)
        if data.bodies:
            yield from self.visit_bodies(data, place)
        elif isinstance(data.operation, Attention):
            self.add_attention(data, data.operation, place)
        elif not is_silent(data):
            self.add_operation(data, place)
        if id(data) in self.cached_rows and self.options.past not in (None, 0):
            self.add_cache_read(data, place)

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

    def visit_bodies(self, data: Data, place: Place) -> Iterator[tuple[Data, Place]]:
        """Add the steps inside layers, experts or a named block."""
        if isinstance(data.operation, Layers) and self.options.pad is not None and data.shape[0] == "tokens":
            self.n_rows = self.options.pad
            self.add_padding(data.inputs, place)
        for body in data.bodies:
            yield body.out, place.inside(data, body.repeat)
        if isinstance(data.operation, Experts):
            (body,) = data.bodies
            router_weights = data.inputs[1]
            note = f"{body.repeat.active:,} of {body.repeat.count:,} experts per token, weighted by the router"
            inputs = (self.shape_of(body.out, place.inside(data, body.repeat)), self.shape_of(router_weights))
            reads = self.find_sources((body.out, router_weights))
            elements = self.count_elements(data, place)
            self.add_step(
                data, place, Experts.sum, inputs=inputs, note=note, reads=reads, elementwise_operations=elements
            )
        elif data.bodies[0].repeat.axis in ("layer", "use"):
            self.pass_on(data, self.find_last(data.bodies).out)
        else:
            out = data.bodies[0].out
            self.add_step(data, place, make_stage(data), inputs=(self.shape_of(out),), reads=self.find_sources((out,)))

    def find_last(self, bodies: Sequence[Body]) -> Body:
        """The body that the last layer runs."""
        return max(bodies, key=last_end_index)

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

    def add_step(self, data: Data, place: Place, stage: Stage, *, inputs: tuple[Shape, ...], **fields: Any) -> None:
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
            reads=self.find_sources(data.inputs),
            note=stage.note,
        )
        self.step_of[id(data)] = len(self.steps)
        self.steps.append(step._replace(**fields))

    def add_operation(self, data: Data, place: Place) -> None:
        """Append a step for one operation."""
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
            inputs=tuple(self.shape_of(source, place) for source in data.inputs),
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

    def count_work(self, data: Data, place: Place) -> dict[str, int | None]:
        """Multiply-adds of an operation's matrix products in one layer, or the elements that it computes without them;
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

    def count_elements(self, data: Data, place: Place) -> int | None:
        """Elements of the output that this pass computes; None if a size depends on the input."""
        shape = self.new_shape(data, place)
        if any(isinstance(n, str) for n in shape):
            return None
        has_batch = data.shape[:1] and isinstance(data.shape[0], str) and not self.is_equal_for_all_texts(data)
        elements: int = product_of(shape) * ((self.options.batch or 1) if has_batch else 1)
        return elements

    def use_weight(self, weight: Weight, data: Data, place: Place) -> WeightUse:
        """A weight as it is multiplied: [in, out] for a matrix, however it is stored."""
        row = fold_weight(weight, place.prefix, place.repeats, place.part)
        shape = weight.shape
        if isinstance(data.operation, Linear) and len(shape) == 2 and not data.operation.transposed:
            shape = shape[::-1]
        return WeightUse(row.name, shape, row.shape, row.component, row.tied_to, row.role)

    def find_product(self, data: Data, place: Place) -> tuple[int, Product | None]:
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

    def add_attention(self, data: Data, attention: Attention, place: Place) -> None:
        """Append scores = QKᵀ, biases and mask, weights = softmax(scores), and the weighted sum of values."""
        q, k, v, *added = data.inputs[: len(data.inputs) - attention.has_marks - 2 * attention.has_others]
        chosen = added.pop() if attention.has_choice else None
        keys = (k, added.pop()) if attention.compressed_block is not None else (k,)
        n, m = self.count_rows(q), self.count_keys(keys)
        heads, shared = (x.shape[1] if len(x.shape) == 3 else 1 for x in (q, k))
        scores = self.add_batch_axis((heads, n, m) if len(q.shape) == 3 else (n, m))
        fields: dict[str, Any] = {"heads": heads, "out": scores}
        pairs, visible = self.count_pairs(attention, q, keys, chosen)
        grouping = f", {divide(heads, shared)} query heads per KV head" if shared != heads else ""
        product = Product((n, q.shape[-1]), (q.shape[-1], m), (n, m))
        self.add_step(
            data,
            place,
            Attention.scores,
            inputs=tuple(map(self.shape_of, (q, *keys))),
            product=product,
            note=f"{Attention.scores.note}{grouping}" + (f", {attention.describe()}" if attention.describe() else ""),
            reads=self.find_sources((q, *keys)),
            multiply_adds=self.multiply_width(pairs, q),
            visible_multiply_adds=self.multiply_width(visible, q),
            **fields,
        )
        fields["elementwise_operations"] = pairs
        for bias in added:
            is_fixed = isinstance(bias.operation, Alibi)  # no step of its own
            stage = make_stage(bias) if is_fixed else Attention.biased_scores
            inputs = (scores,) if is_fixed else (scores, self.shape_of(bias))
            self.add_next(data, place, stage, inputs=inputs, others=() if is_fixed else (bias,), **fields)
        if chosen:
            inputs = (scores, self.shape_of(chosen))
            self.add_next(data, place, Attention.selection, inputs=inputs, others=(chosen,), **fields)
        has_window = attention.window is not None and (n != 1 or attention.window != attention.trimmed_to)
        if (n != 1 and attention.causal) or has_window:
            mask = Mask(attention.causal, attention.window)
            self.add_next(data, place, Attention.mask, inputs=(scores,), note=describe_mask(mask), mask=mask, **fields)
        uses = tuple(self.use_weight(weight, data, place) for weight in data.weights)
        sink = ", with a learned attention sink per head" if uses else ""
        component = uses[0].component if uses else ""
        stage = Attention.collisions if attention.weighs == "collisions" else Attention.attention_weights
        self.add_next(
            data,
            place,
            stage,
            inputs=(scores,),
            weights=uses,
            component=component,
            note=f"{stage.note}{sink}",
            **fields,
        )
        if attention.weighs == "inverse":
            count = attention.count_inverse(heads, n) if isinstance(n, int) else None
            self.add_next(
                data, place, Attention.inverse, inputs=(scores,), multiply_adds=count, heads=heads, out=scores
            )
        product = Product((n, m), (m, v.shape[-1]), (n, v.shape[-1]))
        self.add_next(
            data,
            place,
            Attention.weighted_values,
            inputs=(scores, self.shape_of(v)),
            others=(v,),
            product=product,
            heads=heads,
            multiply_adds=self.multiply_width(pairs, v),
            visible_multiply_adds=self.multiply_width(visible, v),
        )
        self.score_counts.append(
            place.layers * heads * n * m if not isinstance(n, str) and not isinstance(m, str) else None
        )
        self.add_cached(data, place)

    def add_cached(self, data: Data, place: Place) -> None:
        """Append what an operation keeps for later tokens, with its size after this pass."""
        total = self.options.tokens + (self.options.past or 0)
        for cached in find_cached(data):
            kept = self.n_prompt + total if cached.longest is None else min(self.n_prompt + total, cached.longest)
            shapes = cached.shapes
            if not cached.is_state:
                shapes = tuple((kept if n == "tokens" else self.resolve_size(n), *others) for n, *others in shapes)
            self.cache.append(CacheEntry(cached.what, shapes, place.layers, grows=cached.grows, kind=cached.kind))

    def count_keys(self, keys: Sequence[Data]) -> int | str:
        """How many keys there are in all; a name if their number depends on the input."""
        lengths = [self.count_rows(data) for data in keys]
        return next((n for n in lengths if isinstance(n, str)), None) or sum(
            n for n in lengths if not isinstance(n, str)
        )

    def count_pairs(
        self, attention: Attention, q: Data, keys: Sequence[Data], chosen: Data | None
    ) -> tuple[int | None, int | None]:
        """Pairs of a query and a key of all heads: all, and those that no mask hides; None if a length depends on the
        input. `keys`: those of tokens and, perhaps, those of blocks."""
        n, every, end = self.count_rows(q), self.count_keys(keys), self.find_end(q)
        if isinstance(n, str) or isinstance(every, str) or isinstance(end, str):
            return None, None
        heads = (q.shape[1] if len(q.shape) == 3 else 1) * (self.options.batch or 1)
        front, queries = (self.count_front(q), self.count_front(keys[0])), range(end - n, end)
        choice = None if chosen is None else self.find_choice(chosen)
        most = None if choice is None else choice.count_chosen(queries)
        if len(keys) == 1:
            return heads * n * every, heads * attention.count_visible(n, every, end, front, most)
        block, n_blocks = attention.compressed_block, self.count_rows(keys[1])
        if isinstance(n_blocks, str) or not isinstance(block, int):
            return None, None
        blocks = count_ended(queries, block, n_blocks) if most is None else most
        return heads * n * every, heads * (attention.count_visible(n, every - n_blocks, end, front) + blocks)

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

    def add_next(self, data: Data, place: Place, stage: Stage, *, others: tuple[Data, ...] = (), **fields: Any) -> None:
        """Append another step of the same operation. It reads the previous step, and `others`."""
        self.add_step(data, place, stage, reads=(len(self.steps) - 1, *self.find_sources(others)), **fields)

    def add_cache_read(self, data: Data, place: Place) -> None:
        """Append a step that joins the cached tokens and the new ones."""
        new = self.add_batch_axis((self.options.tokens, *data.shape[1:]))
        if data.shape[0] == "tokens":
            step = self.steps[self.step_of[id(data)]]
            product = step.product and narrow_product(step.product, self.options.tokens)
            self.steps[self.step_of[id(data)]] = step._replace(out=new, product=product)
            n = self.cached_rows[id(data)] - self.options.tokens + self.n_prompt
            old = self.add_batch_axis((n, *data.shape[1:]))
            self.add_next(data, place, KV_CACHE, inputs=(old, new))

    def add_padding(self, inputs: tuple[Data, ...], place: Place) -> None:
        """Append a step that pads data with zeros."""
        if self.n_rows == self.options.tokens or place.is_expert:
            return
        for data in inputs:
            index = self.find_source(data)
            if index is None or data.shape[0] != "tokens" or isinstance(data.operation, Alibi):
                continue
            if self.steps[index].out != self.shape_of(data):
                self.add_step(data, place, PADDING, inputs=(self.steps[index].out,), reads=(index,))
                self.pad_step_of[index] = self.step_of[id(data)]

    def select_last_position(self, data: Data, place: Place) -> None:
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


def describe_mask(mask: Mask) -> str:
    """The tokens that each token attends to."""
    if not mask.causal:
        return f"each token attends to tokens up to {mask.window:,} positions away"
    limit = "" if mask.window is None else f"at most {mask.window - 1:,} "
    return f"each token attends to itself and {limit}earlier tokens"


def is_silent(data: Data) -> bool:
    """Whether it computes nothing: a tuple, the only part of a split, or a stack without layers."""
    is_whole = isinstance(data.operation, Split) and len(data.operation.widths) == 1
    return is_whole or isinstance(data.operation, Tuple) or (isinstance(data.operation, Layers) and not data.bodies)


def last_end_index(body: Body) -> Size:
    """The layer index that follows its last run."""
    return max(end_indices(body), default=0)


def list_splits(data: Data) -> tuple[tuple[str, Size], ...]:
    """(component, size) of the parts of an operation's first weight."""
    weight = data.weights[0] if data.weights else None
    return () if weight is None else weight.splits or ((weight.component, 0),)


def narrow_product(product: Product, rows: int) -> Product:
    """The product with this number of rows."""
    left, right, out = product
    return Product((*left[:-2], rows, left[-1]), right, (*out[:-2], rows, out[-1]))
