"""The walk over a forward pass that makes a trace: sizes become numbers, `attend` unfolds into what it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from paramcount.flow import AttentionDetail, Body, Data, Repeat, Size, Weight, last_size, list_steps
from paramcount.flow import multiply as product_of
from paramcount.flow.walk import locate_weight
from paramcount.parts.state_space import Recurring
from paramcount.tracing.phrases import TEXTS, name_operation, note_of, note_on
from paramcount.tracing.trace import ROUTED, Held, Kept, Mask, Product, Shape, Step, Under

OF_PICTURES = ("insert", "add view")  # which went in with earlier tokens
ON_SCORES = ("relative bias", "alibi", "beside a sink")  # declared on the queries, added to what queries and keys give


class TraceOptions(NamedTuple):
    """What is sent through a model."""

    tokens: int  # input length
    pad: int | None = None
    batch: int | None = None
    past: int | None = None
    source: int | None = None


class Place(NamedTuple):
    """Where an operation stands."""

    prefix: str = ""
    repeats: tuple[Repeat, ...] = ()
    under: tuple[Under, ...] = ()
    part: str = "decoder"

    def inside(self, data: Data, repeat: Repeat) -> Place:
        prefix = self.prefix + data.prefix
        name = prefix.rstrip(".")
        under = Under(repeat.axis, repeat.count, repeat.active, repeat.label, tuple(repeat.runs), name)
        return Place(prefix, (*self.repeats, repeat), self.under if repeat.axis == "use" else (*self.under, under), data.part or self.part)

    @property
    def layers(self) -> int:
        """How many layers are like this one."""
        return product_of(under.copies for under in self.under if under.axis == "layer")  # type: ignore[no-any-return]

    @property
    def is_expert(self) -> bool:
        return any(under.axis == "expert" for under in self.under)


class Walk:
    """One walk, and what it has found so far."""

    def __init__(self, out: Data, options: TraceOptions) -> None:
        self.options = options
        self.n_rows = options.tokens
        self.last = False  # behind "last row" there is one row, and no axis for it
        self.steps: list[Step] = []
        self.kept: list[Kept] = []
        self.patterns: list[int | None] = []
        self.index: dict[int, int] = {}  # {Data: the step that gives it}
        self.padded: dict[int, int] = {}  # {a step: the one that pads it}
        every = [data for data, *_ in list_steps(out)]
        details = [data.detail for data in every]
        attending = [detail for detail in details if isinstance(detail, AttentionDetail)]
        recurring = any(isinstance(detail, Recurring) for detail in details)
        self.causal = recurring or any(detail.causal for detail in attending) or not attending  # no token sees a later one
        self.cached = {id(kept): self.visible(detail) for detail in attending for kept in detail.cached}
        self.outer = {id(inner): found for data in every for inner, found in entries(data)}
        self.decoded: dict[int, int] = {}  # memo of `rows_decoded`
        self.needed: dict[int, bool] = {}  # memo of `depends`

    # ---- shapes

    def visible(self, detail: AttentionDetail) -> int:
        """How many keys the tokens meet while decoding: those that are kept, and their own."""
        past = self.options.past or 0
        return self.options.tokens + (past if detail.trimmed_to is None else min(past, detail.trimmed_to - 1))

    def kept_rows(self, detail: AttentionDetail) -> int:
        """How many tokens a later one looks back on: it is in its window itself."""
        there = self.options.tokens + (self.options.past or 0)
        return there if detail.trimmed_to is None else min(there, detail.trimmed_to - 1)

    def rows(self, data: Data) -> int | str:
        """How long the first axis is."""
        word = data.shape[0]
        if word != "tokens":
            return self.known(word)
        return self.n_rows if self.options.past is None else self.rows_decoded(data)

    def known(self, size: int | str) -> int | str:
        """What is known of a size: the words that stand for one number in this trace."""
        if size == "source" and self.options.source is not None:
            return self.options.source
        if size == "tokens":  # behind the first axis: the tokens that are looked at
            return self.n_rows if self.options.past is None else self.options.tokens + self.options.past
        return 1 if size == "text" else size

    def rows_decoded(self, data: Data) -> int:
        """Rows while decoding: what comes out of a cache has those of earlier tokens too."""
        if id(data) in self.cached:
            return self.cached[id(data)]
        if id(data) not in self.decoded:
            self.decoded[id(data)] = self.options.tokens  # what a layer hands to the next may lead back here
            before = [given for given in self.outer.get(id(data), data.inputs) if given.shape[:1] == ("tokens",)]
            if data.inputs:
                before = before[:1]  # queries before the keys that they meet
            self.decoded[id(data)] = max((self.rows_decoded(given) for given in before), default=self.options.tokens)
        return self.decoded[id(data)]

    def shape(self, data: Data, place: Place | None = None) -> Shape:
        """The shape of data in numbers and, where nobody says how many, words."""
        if not data.shape or not isinstance(data.shape[0], str):
            return data.shape
        behind = tuple(self.known(n) for n in data.shape[1:])
        if self.last:
            return self.batched(behind)
        if place and place.is_expert:
            return (ROUTED, *behind)
        shape = (self.rows(data), *behind)
        return shape if data.shape[0] in data.shape[1:] else self.batched(shape)  # of each two places: the same in every text

    def batched(self, shape: Shape) -> Shape:
        return shape if self.options.batch is None else (self.options.batch, *shape)

    # ---- the walk

    def visit(self, data: Data, place: Place) -> None:
        """The steps that lead to data, then its own."""
        if id(data) in self.index:
            return
        if self.worked_out_before(data):
            return
        if data.op in OF_PICTURES and self.options.past is not None:
            self.visit(data.inputs[0], place)
            self.pass_on(data, data.inputs[0])
            return
        for before in data.inputs:
            self.visit(before, place)
            if not data.bodies and self.worked_out_before(before) and self.source(before) is None:
                self.add(before, place, "cache", inputs=(), note="computed before the first token", reads=())
        if data.op == "input":
            return
        self.lengthen(data.inputs, place)
        if data.bodies:
            self.enter(data, place)
        elif data.op == "attend":
            self.attend(data, place)
        elif not is_silent(data) and data.op not in ON_SCORES:
            self.operation(data, place)
        if id(data) in self.cached and self.options.past:
            self.take_from_cache(data, place)

    def worked_out_before(self, data: Data) -> bool:
        """Whether a decoding step has no need to run it: another text, a picture."""
        return self.options.past is not None and not self.depends(data)

    def depends(self, data: Data) -> bool:
        """Whether it is run for each token."""
        if id(data) not in self.needed:
            self.needed[id(data)] = False
            before = self.outer.get(id(data), data.inputs)
            self.needed[id(data)] = data.shape[:1] in (("tokens",), ("prompt",)) or any(self.depends(d) for d in before)
        return self.needed[id(data)]

    def enter(self, data: Data, place: Place) -> None:
        """What stands inside: layers, experts, a named block."""
        if data.op == "layers" and self.options.pad is not None and data.shape[0] == "tokens":
            self.n_rows = self.options.pad
            self.lengthen(data.inputs, place)
        for body in data.bodies:
            self.visit(body.out, place.inside(data, body.repeat))
        if data.op == "experts":
            (body,) = data.bodies
            note = f"{body.repeat.active:,} of {body.repeat.count:,} experts per token, weighted by the router"
            inside = self.shape(body.out, place.inside(data, body.repeat))
            given = self.sources((body.out, data.inputs[1]))
            self.add(data, place, "sum of experts", inputs=(inside, self.shape(data.inputs[1])), note=note, reads=given)
        elif data.bodies[0].repeat.axis in ("layer", "use"):
            self.pass_on(data, max(data.bodies, key=end).out)
        else:
            out = data.bodies[0].out
            self.add(data, place, data.op, inputs=(self.shape(out),), reads=self.sources((out,)))

    def pass_on(self, data: Data, given: Data) -> None:
        """data is what was given."""
        if (index := self.source(given)) is not None:
            self.index[id(data)] = index

    def sources(self, inputs: tuple[Data, ...]) -> tuple[int, ...]:
        """The steps that give these, as far as they have been taken."""
        found = (self.source(data) for data in inputs)
        return tuple(dict.fromkeys(index for index in found if index is not None))

    def source(self, data: Data, seen: tuple[Data, ...] = ()) -> int | None:
        """The step that gives it; what comes into a body or is handed on was given before."""
        if id(data) in self.index:
            index = self.index[id(data)]
            return self.padded.get(index, index)
        before = self.outer.get(id(data)) or (data.inputs[:1] if is_silent(data) or data.op in ON_SCORES else ())
        found = (self.source(given, (*seen, data)) for given in before if given not in seen)
        return next((index for index in found if index is not None), None)

    def add(self, data: Data, place: Place, op: str, *, inputs: tuple[Shape, ...], **said: Any) -> None:
        """The next step, which gives data. `said`: fields of it that are not the usual."""
        step = Step(
            op=op,
            text=TEXTS.get(op, op),
            name="",
            inputs=inputs,
            weights=(),
            out=self.shape(data),
            heads=1,
            product=None,
            part=place.part,
            component="",
            under=place.under,
            reads=self.sources(data.inputs),
            note=note_of(op),
        )
        self.index[id(data)] = len(self.steps)
        self.steps.append(step._replace(**said))

    def operation(self, data: Data, place: Place) -> None:
        """One operation that is what it says."""
        held = tuple(self.held(weight, data, place) for weight in data.weights)
        if held and held[0].component == "lm_head" and data.op == "linear" and self.causal and data.shape[0] == "tokens" and not self.last:
            self.last_row(data.inputs[0], place)
        components = (data.detail,) if isinstance(data.detail, str) else tuple(name for name, _ in splits(data))
        heads, product = self.product(data, place)
        state = (data.detail.state, *data.detail.beside) if isinstance(data.detail, Recurring) else ()
        if state:
            self.kept.append(Kept("last inputs" if data.op == "convolve" else "state", state, place.layers, grows=False))
        self.add(
            data,
            place,
            data.op,
            inputs=tuple(self.shape(before, place) for before in data.inputs),
            text=name_operation(data, components, place.part),
            name=held[0].name.removesuffix(".weight") if held else "",
            weights=held,
            out=self.shape(data, place),
            heads=heads,
            product=product,
            component=held[0].component if held else "",
            note=f"tied to {held[0].tied_to}" if held and held[0].tied_to else note_on(data),
            state=state,
        )

    def held(self, weight: Weight, data: Data, place: Place) -> Held:
        """A weight of an operation, turned so that the data's width comes first."""
        record = locate_weight(weight, place.prefix, place.repeats, place.part)
        shape = weight.shape
        if data.op == "linear" and len(shape) == 2 and shape[0] != last_size(data.inputs[0]):
            shape = shape[::-1]
        return Held(record.name, shape, record.stored_shape, weight.component, record.tied_to, weight.role)

    def product(self, data: Data, place: Place) -> tuple[int, Product | None]:
        """(how many equal products, one of them) of a matrix, or of a share of a fused one."""
        whole = data.inputs[0] if data.op == "split" and isinstance(data.detail, str) else data
        if whole.op != "linear" or not whole.weights or len(whole.weights[0].shape) != 2 or (whole is not data and len(data.shape) != 3):
            return 1, None
        d_in: Size = last_size(whole.inputs[0])
        rows = self.shape(data, place)[: -(len(data.shape) - 1)]
        return data.shape[1] if len(data.shape) == 3 else 1, Product((*rows, d_in), (d_in, data.shape[-1]), (*rows, data.shape[-1]))

    def attend(self, data: Data, place: Place) -> None:
        """Queries meet keys, the softmax of what comes out weighs the values."""
        q, k, v = data.inputs
        detail: AttentionDetail = data.detail
        biases = []
        while q.op in ON_SCORES:
            biases.append(q)
            q = q.inputs[0]
        n, m = self.rows(q), self.rows(k)
        heads, shared = (x.shape[1] if len(x.shape) == 3 else 1 for x in (q, k))
        scores = self.batched((heads, n, m) if len(q.shape) == 3 else (n, m))
        said: dict[str, Any] = {"heads": heads, "out": scores}
        group = f"each KV head serves {heads // shared} query heads" if shared != heads else ""
        product = Product((n, q.shape[-1]), (q.shape[-1], m), (n, m))
        self.add(data, place, "QKᵀ", inputs=(self.shape(q), self.shape(k)), product=product, note=group, reads=self.sources((q, k)), **said)
        for bias in reversed(biases):
            given = bias.inputs[1:]
            self.follow(data, place, bias.op, inputs=(scores, *(self.shape(x) for x in given)), also=given, **said)
        if (n != 1 and detail.causal) or detail.window != (None if n != 1 else detail.trimmed_to):
            mask = Mask(detail.causal, detail.window)
            self.follow(data, place, "mask", inputs=(scores,), note=seen(mask), mask=mask, **said)
        held = tuple(self.held(weight, data, place) for weight in data.weights)
        sink = ", with a learned attention sink per head" if held else ""
        component = held[0].component if held else ""
        self.follow(data, place, "softmax", inputs=(scores,), weights=held, component=component, note=f"each row sums to 1{sink}", **said)
        product = Product((n, m), (m, v.shape[-1]), (n, v.shape[-1]))
        self.follow(data, place, "· V", inputs=(scores, self.shape(v)), also=(v,), product=product, heads=heads)
        self.patterns.append(place.layers * heads * n * m if isinstance(n, int) and isinstance(m, int) else None)
        if detail.cached:
            name = "keys and values" if detail.cached == (k, v) else "compressed KV latent"
            shapes = tuple((self.kept_rows(detail) if x.shape[0] == "tokens" else self.rows(x), *x.shape[1:]) for x in detail.cached)
            self.kept.append(Kept(name, shapes, place.layers, grows=detail.cached[0].shape[0] == "tokens" and detail.trimmed_to is None))

    def follow(self, data: Data, place: Place, op: str, *, also: tuple[Data, ...] = (), **said: Any) -> None:
        """A further step of the same operation, on what the one before gave."""
        self.add(data, place, op, reads=(len(self.steps) - 1, *self.sources(also)), **said)

    def take_from_cache(self, data: Data, place: Place) -> None:
        new = self.batched((self.options.tokens, *data.shape[1:]))
        if data.shape[0] == "tokens":
            step = self.steps[self.index[id(data)]]
            self.steps[self.index[id(data)]] = step._replace(out=new, product=step.product and narrowed(step.product, self.options.tokens))
            old = self.batched((self.cached[id(data)] - self.options.tokens, *data.shape[1:]))
            self.follow(data, place, "cache", inputs=(old, new))

    def lengthen(self, inputs: tuple[Data, ...], place: Place) -> None:
        """Rows of zeros behind what was made before there were any."""
        for data in inputs if self.n_rows != self.options.tokens else ():
            index = self.source(data)
            if index is not None and data.shape[0] == "tokens" and not place.is_expert and self.steps[index].out != self.shape(data):
                self.add(data, place, "pad", inputs=(self.steps[index].out,), reads=(index,))
                self.padded[index] = self.index[id(data)]

    def last_row(self, data: Data, place: Place) -> None:
        before = self.shape(data)
        self.last = True
        note = f"position {self.options.tokens:,} of {self.n_rows:,}" if self.n_rows != self.options.tokens else note_of("last row")
        self.add(data, place, "last row", inputs=(before,), reads=self.sources((data,)), note=note)


def seen(mask: Mask) -> str:
    """What a mask leaves."""
    if not mask.causal:
        return f"each token attends to tokens up to {mask.window:,} positions away"
    return "each token attends to itself and earlier tokens" + ("" if mask.window is None else f", at most {mask.window:,}")


def is_silent(data: Data) -> bool:
    """Whether nothing is done: a bundle, a stack without layers."""
    return data.op == "tuple" or (data.op == "layers" and not data.bodies)


def entries(data: Data) -> Iterator[tuple[Data, tuple[Data, ...]]]:
    """(an input of a body, what may come in, the likeliest first): from outside, from the layers before, or handed on by them."""
    n = len(data.inputs)
    for body in data.bodies:
        start = body.repeat.runs[0][0] if body.repeat.runs else 0
        others = sorted(data.bodies, key=lambda other: start not in ends(other)) if data.op == "layers" else []  # the layer just before comes first
        first = not any(start in ends(other) for other in others)
        given = tuple(other.out for other in others if other is not body)
        yield body.inputs[0], (*data.inputs[:1], *given) if first else (*given, *data.inputs[:1])
        yield from ((inner, (outer,)) for inner, outer in zip(body.inputs[1:n], data.inputs[1:]))
        for i, inner in enumerate(body.inputs[n:], start=1):
            yield inner, tuple(other.out.inputs[i] for other in others)


def ends(body: Body) -> tuple[Size, ...]:
    """The indices behind each of its runs."""
    return tuple(first + n for first, n in body.repeat.runs)


def end(body: Body) -> Size:
    return max(ends(body), default=0)


def splits(data: Data) -> tuple[tuple[str, Size], ...]:
    """What the weights of an operation are made of."""
    weight = data.weights[0] if data.weights else None
    return () if weight is None else weight.splits or ((weight.component, 0),)


def narrowed(product: Product, rows: int) -> Product:
    """The product for so many rows."""
    left, right, out = product
    return Product((*left[:-2], rows, left[-1]), right, (*out[:-2], rows, out[-1]))
