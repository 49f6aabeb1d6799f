"""The activations that a backward pass needs, read off the declared flow: what one GPU keeps for one micro-batch.

A product with a matrix keeps its input, and so do a norm, an activation function and an element-wise product;
attention keeps q, k, v and, without flash attention, the softmax; a sum keeps nothing. A tensor that several steps
read is kept once. Tensor parallelism divides what lies between two matrices, the first divided by columns and the
second by rows; sequence parallelism divides the rest. A mask of dropout takes one byte per element, and means and
variances of norms are left out.

Sources: arXiv:2205.05198, section 4 and table 2; for flash attention arXiv:2205.14135, algorithm 1, which keeps the
output and one logarithm per row of the scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

from paramcount.costs.sharding import REPLICATED_DETAILS, is_replicated
from paramcount.costs.training.adapter_activations import FROZEN, MATRICES, Adapted
from paramcount.costs.training.setup import PRECISIONS, Setup
from paramcount.flow import (
    Block,
    Cache,
    Data,
    Experts,
    ExpertsOfScaled,
    Layers,
    Linear,
    Repeat,
    WeightedSum,
    list_scored,
    list_steps,
)
from paramcount.flow.graph import ONCE, Add
from paramcount.flow.operation import Form
from paramcount.flow.walk import Step

FLOAT32, MASK = 4, 1  # bytes of a value in the softmax of the loss and in flash attention, and of one in a mask


class LayerActivations(NamedTuple):
    """What one GPU keeps of one layer for one micro-batch, in bytes."""

    repeat: Repeat  # the layers that keep as much
    part: str  # decoder, encoder, …
    input_bytes: int  # from which full recomputation starts
    saved_bytes: int  # all, the input included
    score_bytes: int  # of these, what selective recomputation computes again: softmax and dropout of attention
    frozen_bytes: int | None = None  # all of a layer without an adapter, if only some layers have one

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON; the layers as [first index, number of layers]."""
        fields = self._asdict()
        return {"runs": [list(run) for run in fields.pop("repeat").runs], **fields}


class Activations(NamedTuple):
    """What one GPU keeps for one micro-batch, in bytes."""

    layers: tuple[LayerActivations, ...]
    before_bytes: int  # in front of the decoder's layers
    after_bytes: int  # behind them, without the logits
    logits_bytes: int  # of the loss, in FP32
    unknown: tuple[str, ...] = ()  # parts whose size depends on an input other than text


def measure_activations(out: Data, part: str, setup: Setup, adapted: Adapted | None = None) -> Activations:
    """The activations of a flow, which ends with `out`. `adapted`: what is trained of it; None: all."""
    walk = ActivationWalk(list_steps(out, part), setup, adapted)
    activations = walk.collect()
    if adapted is None or adapted.only is None:
        return activations
    walk.trained = dict.fromkeys(walk.trained, FROZEN)  # of a layer without an adapter, which a gradient passes
    pairs = zip(activations.layers, walk.collect().layers, strict=True)
    return activations._replace(layers=tuple(one._replace(frozen_bytes=other.saved_bytes) for one, other in pairs))


class ActivationWalk:
    """One pass over a flow, which finds what is kept and where."""

    def __init__(self, steps: list[Step], setup: Setup, adapted: Adapted | None = None) -> None:
        self.steps, self.setup, self.adapted = steps, setup, adapted
        self.trained = {id(step[0]): adapted.find_training(step) for step in steps} if adapted else {}
        self.start = self.find_start()
        self.value_bytes = PRECISIONS[setup.precision].activations
        self.place = {id(data): (repeats, part) for data, _, repeats, part in steps}
        self.order = {id(data): i for i, (data, *_) in enumerate(steps)}
        self.alias = {id(inner): outer for data, *_ in steps for inner, outer in list_aliases(data)}
        self.divided: dict[int, bool] = {}  # memo of is_divided
        self.unknown: dict[str, None] = {}
        stacks = [i for i, (data, *_) in enumerate(steps) if isinstance(data.operation, Layers) and data.bodies]
        self.last_stack = max(stacks, default=-1)

    # ---- which values share memory

    def find_root(self, data: Data) -> Data:
        """The data whose memory this is: an input of a block is what the block reads, and a reshape copies nothing."""
        while True:
            operation = data.operation
            if id(data) in self.alias:
                data = self.alias[id(data)]
            elif isinstance(operation, Cache) or operation.form is Form.RESHAPE:
                data = data.inputs[0]
            else:
                return data

    def is_part_of_saved(self, data: Data, saved: dict[int, Data]) -> bool:
        """Whether it is a part of something that is kept as a whole."""
        while data.operation.form is Form.SPLIT:
            data = self.find_root(data.inputs[0])
            if id(data) in saved:
                return True
        return False

    # ---- sizes

    def is_divided(self, data: Data) -> bool:
        """Whether each tensor-parallel GPU has only its own part of the values."""
        if self.setup.tp == 1:
            return False
        if id(data) not in self.divided:
            self.divided[id(data)] = self.find_division(data)
        return self.divided[id(data)]

    def find_division(self, data: Data) -> bool:
        operation, inputs = data.operation, data.inputs
        if id(data) in self.alias:
            return self.is_divided(self.alias[id(data)])
        if isinstance(operation, Layers | Experts):
            return False
        is_part = any(map(self.is_divided, inputs))
        if isinstance(operation, Linear):  # the second of two matrices sums over what the first divided
            component = data.weights[0].component
            whole = component in REPLICATED_DETAILS or is_replicated(component, self.place[id(data)][1])
            return not is_part and not whole
        return is_part

    def resolve(self, size: int | str) -> int | None:
        """The size as a number; None if it depends on an input other than text."""
        lengths = {"tokens": self.setup.context, "source": self.setup.source, "text": 1}
        return lengths.get(size) if isinstance(size, str) else size

    def count_elements(self, data: Data) -> int:
        """Elements on one GPU, for one micro-batch and one copy of the enclosing layer."""
        repeats, part = self.place.get(id(data), ((), "decoder"))  # an input that its body ignores has none
        sizes = [self.resolve(size) for size in data.shape]
        rows, *inner = [0 if size is None else size for size in sizes] or [1]
        if None in sizes:
            self.unknown[part] = None
            return 0
        for repeat in inside_layer(repeats):
            rows *= repeat.active if repeat.axis == "expert" else repeat.count
        if self.is_divided(data) and inner:
            inner[0] = -(-inner[0] // self.setup.tp)
        elif self.setup.sp:
            rows = -(-rows // self.setup.tp)
        return self.setup.batch * rows * int(prod(inner))

    # ---- what is kept

    def find_saved(self) -> dict[int, Data]:
        """{id: data} that backward passes of operations read."""
        saved: dict[int, Data] = {}
        for data, *_ in self.steps:
            if not self.needs_gradient(data):
                continue
            kept = [*self.list_inputs(data)]
            if isinstance(data.operation, Experts) and not isinstance(data.operation, ExpertsOfScaled):
                kept += [body.out for body in data.bodies]  # times the router's weights
            if isinstance(data.operation, WeightedSum) and self.setup.flash_attention:
                kept.append(data)
            for value in kept:
                if list_scored(value):  # of these, softmax alone is kept
                    continue
                root = self.find_root(value)
                saved[id(root)] = root
        return {key: data for key, data in saved.items() if not self.is_part_of_saved(data, saved)}

    def list_inputs(self, data: Data) -> Sequence[Data]:
        """The inputs that the backward pass reads: a frozen matrix needs none, unless it has an adapter."""
        if self.adapted and data.weights and data.operation.form in MATRICES:
            return data.inputs if self.adapted.needs_input(self.trained[id(data)]) else ()
        return data.operation.list_saved(data.inputs)

    def find_start(self) -> tuple[int, Repeat | None]:
        """(the first step with something to train, the layers that it is in): gradients end there."""
        if self.adapted is None:
            return 0, None
        found = (i for i, (data, *_) in enumerate(self.steps) if self.trained[id(data)].is_any)
        first = next(found, len(self.steps))
        return first, find_layer(self.steps[first][2]) if first < len(self.steps) else None

    def needs_gradient(self, data: Data) -> bool:
        """Whether a gradient passes an operation: not before the first trained one, but all through its layers."""
        first, layers = self.start
        if self.order[id(data)] >= first:
            return True
        return layers is not None and find_layer(self.place[id(data)][0]) is layers

    def list_extra(self) -> Iterator[tuple[Data, int, int]]:
        """(operation, bytes that it keeps besides inputs, of these recomputed by selective recomputation)."""
        for step in self.steps:
            data, _, repeats, _ = step
            if not self.needs_gradient(data):
                continue
            if self.adapted and (training := self.trained[id(data)]).modules:
                of_input = self.count_elements(data.inputs[0])
                yield data, self.adapted.count_extra(training, step, (of_input, self.count_elements(data))), 0
            if data.operation.form is Form.ATTENTION_WEIGHTS:
                size = self.count_scores(data)
                yield data, size, 0 if self.setup.flash_attention else size
            elif self.setup.dropout and isinstance(data.operation, Add) and find_layer(repeats):
                yield data, MASK * self.count_elements(data), 0

    def count_scores(self, data: Data) -> int:
        """Bytes that attention keeps: of softmax and dropout, or with flash attention a logarithm per row."""
        q, k = list_scored(data)[0].scores.inputs[:2]
        rows, keys = self.resolve(q.shape[0]), self.resolve(k.shape[0])
        if rows is None or keys is None:
            self.unknown[self.place[id(data)][1]] = None
            return 0
        heads = -(-q.shape[1] // self.setup.tp) if len(q.shape) == 3 else 1
        per_row = self.setup.batch * heads * rows
        for repeat in inside_layer(self.place[id(data)][0]):
            per_row *= repeat.count
        if self.setup.flash_attention:
            return int(FLOAT32 * per_row)
        dropped = MASK + self.value_bytes if self.setup.dropout else 0
        return int(per_row * keys * (self.value_bytes + dropped))

    def count_chunk(self, logits: Data) -> int:
        """Elements of the logits of one chunk of the tokens, which takes about as much as the inputs of the LM head.

        Source: Liger Kernel, ops/fused_linear_cross_entropy.py; Unsloth divides by what is free, into smaller chunks.
        """
        elements, vocabulary = self.count_elements(logits), logits.shape[-1]
        tokens = -(-elements // vocabulary)
        rows = 1 << (-(-tokens // -(-vocabulary // logits.inputs[0].shape[-1])) - 1).bit_length()
        return int(min(elements, rows * vocabulary))

    def collect(self) -> Activations:
        """All that is kept, layer by layer."""
        saved, scores, inputs = {}, {}, {}
        stacks: dict[int, tuple[Repeat, str]] = {}
        before = after = logits = 0
        for data, *_ in self.steps:
            if not isinstance(data.operation, Layers):
                continue
            for body in data.bodies:
                repeat = find_layer(
                    self.place[id(body.out)][0]
                )  # of a reused encoder, not the one that `body` declares
                if repeat is not None and find_layer(self.place[id(data)][0]) is None:
                    key = id(repeat)
                    stacks[key] = repeat, data.part or self.place[id(data)][1]
                    saved[key] = scores[key] = 0
                    carried = (body.inputs[0], *body.inputs[len(data.inputs) - data.operation.n_others :])
                    inputs[key] = self.value_bytes * sum(map(self.count_elements, carried))
        kept = [(data, self.value_bytes * self.count_elements(data), 0) for data in self.find_saved().values()]
        for data, size, recomputed in (*kept, *self.list_extra()):
            layer = find_layer(self.place[id(data)][0])
            if layer is not None:
                saved[id(layer)] += size
                scores[id(layer)] += recomputed
            elif self.order[id(data)] < self.last_stack:
                before += size
            else:
                after += size
        for data, *_ in self.steps:
            if data.operation.form is Form.LINEAR and data.weights and data.weights[0].component == "lm_head":
                logits += FLOAT32 * (self.count_chunk(data) if self.setup.chunked_loss else self.count_elements(data))
            if self.setup.dropout and self.order[id(data)] == self.last_stack:
                before += MASK * self.count_elements(data.inputs[0])  # of the embeddings
        layers = tuple(
            LayerActivations(repeat, part, inputs[key], saved[key], scores[key])
            for key, (repeat, part) in stacks.items()
        )
        return Activations(layers, before, after, logits, tuple(self.unknown))


def list_aliases(data: Data) -> Iterator[tuple[Data, Data]]:
    """(input of a body or result of a block, the data that it is)."""
    if isinstance(data.operation, Layers):
        n_read = len(data.inputs) - data.operation.n_others
        for body in data.bodies:
            yield from zip(body.inputs[1:n_read], data.inputs[1:n_read])
    elif isinstance(data.operation, Block):
        for body in data.bodies:
            if body.repeat is ONCE:
                yield from zip(body.inputs, data.inputs)
                yield data, body.out


def find_layer(repeats: tuple[Repeat, ...]) -> Repeat | None:
    """The outermost layers."""
    return next((repeat for repeat in repeats if repeat.axis == "layer"), None)


def inside_layer(repeats: tuple[Repeat, ...]) -> list[Repeat]:
    """The repeats inside the outermost layer: layers of its own, experts, heads."""
    layer = find_layer(repeats)
    return [repeat for repeat in repeats if repeat is not layer]
