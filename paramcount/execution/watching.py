"""What changes inside a model during a pass, layer by layer, in a few numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from paramcount.execution.evaluate import Evaluation, EvaluationScope, Observer, Value
from paramcount.flow import Block, Body, Data, Experts, Layers, Rescaling, Tuple, WeightedSum, list_scored, softmax_rows
from paramcount.flow.operation import Array, Form
from paramcount.flow.walk import list_steps

MOST_ATTENDED = 3  # tokens per head


class Head(NamedTuple):
    """The tokens that one head attends to most from the last position, by position in the text."""

    head: int
    attended: tuple[tuple[int, float], ...]  # (position, attention weight), largest first


class LayerView(NamedTuple):
    """What one layer did."""

    layer: tuple[int, ...]  # its index; several in nested stacks
    norm: float  # of the residual stream of the last position, after the layer
    added: dict[str, float]  # {attention, mlp, mixer: norm of what it adds, as a share of `norm`}
    heads: tuple[Head, ...]
    maps: Array | None  # attention weights [heads, tokens, tokens]
    experts: tuple[tuple[int, float], ...]  # (expert, weight) of the last position, largest weight first
    n_routed: tuple[int, ...]  # tokens per expert
    lens: tuple[int, float] | None  # (token id, probability): the next token if this were the last layer


class Watcher(Observer):
    """Summarises the layers through which the last position's logits come."""

    def __init__(self, out: Data, *, keeps_maps: bool = False) -> None:
        self.stacks = list_stacks(out)
        self.routed = find_routed(out)
        self.keeps_maps = keeps_maps
        self.layers: list[LayerView] = []
        self.outputs: list[Array] = []  # of each layer, for the last position
        self.branches: dict[int, dict[str, list[Branch]]] = {}
        self.clear()

    def clear(self) -> None:
        self.attention: list[Array] = []  # attention weights of the layer
        self.experts: Array | None = None

    def see_step(self, value: Value, data: Data) -> None:
        if data.operation.form is Form.ATTENTION_WEIGHTS:
            q, k = list_scored(data)[0].scores.inputs[:2]
            if q.shape[0] == k.shape[0]:
                self.attention.append(value.array)
        elif id(data) in self.routed:
            self.experts = value.array

    def see_layer(self, data: Data, body: Body, scope: EvaluationScope, x: Array) -> None:
        if id(data) in self.stacks:
            self.layers.append(self.summarise(body, scope, x))
            self.outputs.append(x[-1])
        self.clear()

    def summarise(self, body: Body, scope: EvaluationScope, x: Array) -> LayerView:
        """The view of a layer, without the logit lens."""
        if id(body.out) not in self.branches:
            self.branches[id(body.out)] = find_branches(body)
        norm = measure(x[-1])
        added = {
            name: measure(np.sum([get_added(branch, scope) for branch in branches], axis=0)) / norm if norm else 0.0
            for name, branches in self.branches[id(body.out)].items()
        }
        maps = self.attention[0] if self.attention else None
        return LayerView(
            layer=scope.indices,
            norm=norm,
            added=added,
            heads=() if maps is None else list_attended(maps),
            maps=maps if self.keeps_maps else None,
            experts=() if self.experts is None else list_experts(self.experts),
            n_routed=() if self.experts is None else tuple((self.experts != 0).sum(0).tolist()),
            lens=None,
        )

    def add_lens(self, evaluation: Evaluation) -> list[LayerView]:
        """The views, each with the likeliest token after its layer: the last norm and the LM head applied to it."""
        steps = {id(data) for data in list_outer(evaluation.out)}
        if not self.outputs or len({x.shape for x in self.outputs}) > 1 or not self.stacks.keys() <= steps:
            return self.layers
        evaluation.observer = None
        values = dict.fromkeys(self.stacks, np.stack(self.outputs))
        logits = evaluation.compute(evaluation.out, EvaluationScope(part=evaluation.scope.part, values=values))
        shares = softmax_rows(logits.astype(np.float64))
        best = shares.argmax(-1)
        return [
            view._replace(lens=(int(id), float(row[id])))
            for view, id, row in zip(self.layers, best, shares, strict=True)
        ]


def get_added(branch: Branch, scope: EvaluationScope) -> Array:
    """What a branch adds to the last position."""
    after: Array = scope.values[branch.term][-1]
    return after if branch.before is None else after - scope.values[branch.before][-1]


def measure(x: Array) -> float:
    return float(np.linalg.norm(x.astype(np.float64)))


def list_attended(maps: Array) -> tuple[Head, ...]:
    """For each head the tokens that the last position attends to most."""
    last = maps[:, -1]
    order = np.argsort(-last, axis=-1, kind="stable")[:, :MOST_ATTENDED]
    return tuple(
        Head(head, tuple((int(j), float(last[head, j])) for j in row if last[head, j] > 0))
        for head, row in enumerate(order)
    )


def list_experts(weights: Array) -> tuple[tuple[int, float], ...]:
    """The experts of the last position with their weights, the largest first."""
    last = weights[-1]
    return tuple((int(i), float(last[i])) for i in np.argsort(-last, kind="stable") if last[i] != 0)


def list_stacks(out: Data) -> dict[int, Data]:
    """The stacks of layers that lead to `out` through the first input of each step: those of the residual stream."""
    found: dict[int, Data] = {}
    data = out
    while True:
        if isinstance(data.operation, Layers):
            found[id(data)] = data
        if isinstance(data.operation, Block):
            found |= list_stacks(data.bodies[0].out)
        if not data.inputs:
            return found
        data = data.inputs[0]


def find_routed(out: Data) -> set[int]:
    """Ids of the weights that routers give to experts, before they are divided among several sums or scaled."""
    found = set()
    for data, *_ in list_steps(out):
        if isinstance(data.operation, Experts):
            given = data.inputs[1]
            while given.operation.form is Form.SPLIT or (given.weights and isinstance(given.operation, Rescaling)):
                given = given.inputs[0]
            found.add(id(given))
    return found


class Branch(NamedTuple):
    """What a layer adds to the residual stream: the value of `term`, less that of `before` for a block that adds."""

    term: int  # id of data
    before: int | None = None


def find_branches(body: Body) -> dict[str, list[Branch]]:
    """{attention, mlp or mixer: what a layer adds to the residual stream}"""
    out = body.out.inputs[0] if isinstance(body.out.operation, Tuple) else body.out
    found: dict[str, list[Branch]] = {}
    stream: dict[int, Data] = {id(data): data for data in body.inputs}
    terms: list[tuple[Data, Data | None]] = []

    def visit(data: Data) -> None:
        if id(data) in stream:
            return
        inner = strip(data)
        if not is_stream(data, body.inputs) and data.operation.form is not Form.SUM:
            terms.append((data, None))
            return
        if is_stream(data, body.inputs):
            stream.update((id(each), each) for each in (data, inner))
        if isinstance(inner.operation, Block):
            if count_sums(inner) == 1:  # what a whole layer adds is neither attention nor MLP
                terms.append((inner, inner.inputs[0]))
            visit(inner.inputs[0])
        elif inner.operation.form is Form.SUM:
            for term in inner.inputs:
                visit(term)

    visit(out)
    sums = {tuple(map(id, data.inputs)) for data in stream.values() if data.operation.form is Form.SUM}
    for term, before in terms:
        inside = list_inner(term, stream, sums) if before is None else list_body(term)
        if kind := classify(list(inside)):
            found.setdefault(kind, []).append(Branch(id(term), None if before is None else id(before)))
    return found


def strip(data: Data) -> Data:
    """Data before the norms and multipliers behind it."""
    while isinstance(data.operation, Rescaling):
        data = data.inputs[0]
    return data


def is_stream(data: Data, inputs: tuple[Data, ...]) -> bool:
    """Whether data are the residual stream: the input of the layer, or a sum with it."""
    data = strip(data)
    if data.operation.form is Form.SUM:
        return any(is_stream(term, inputs) for term in data.inputs)
    if isinstance(data.operation, Block):
        (body,) = data.bodies
        return strip(body.out) not in body.inputs and is_stream(body.out, body.inputs)
    return data in inputs


def count_sums(block: Data) -> int:
    """The sums with the residual stream in a block."""
    (body,) = block.bodies
    return sum(data.operation.form is Form.SUM and is_stream(data, body.inputs) for data in list_outer(body.out))


def classify(operations: list[Data]) -> str:
    """The kind of a branch, from the operations in it; "" if it has no weights."""
    if any(isinstance(data.operation, WeightedSum) for data in operations):
        return "attention"
    if any(data.operation.state_shapes for data in operations):
        return "mixer"
    return "mlp" if any(data.weights for data in operations) else ""


def list_inner(term: Data, stream: Mapping[int, Data], sums: set[tuple[int, ...]]) -> Iterator[Data]:
    """The operations between a term and the residual stream, with those inside of blocks.

    `sums`: the inputs of the sums that are the stream, which a declaration may write twice.
    """
    seen, waiting = set(stream), [term]
    while waiting:
        data = waiting.pop()
        if id(data) not in seen and tuple(map(id, data.inputs)) not in sums:
            seen.add(id(data))
            yield data
            yield from list_body(data)
            waiting += data.inputs


def list_outer(out: Data) -> list[Data]:
    """What `out` depends on, without what is inside of blocks, layers and experts."""
    found, waiting = {id(out): out}, [out]
    while waiting:
        for data in waiting.pop().inputs:
            if id(data) not in found:
                found[id(data)] = data
                waiting.append(data)
    return list(found.values())


def list_body(data: Data) -> Iterator[Data]:
    for body in data.bodies:
        yield from (inner for inner, *_ in list_steps(body.out))


def to_dict(view: LayerView) -> dict[str, Any]:
    """A view as plain data for JSON."""
    return {
        "layer": list(view.layer),
        "norm": view.norm,
        "added": view.added,
        "heads": [
            {"head": head.head, "attended": [{"position": j, "weight": share} for j, share in head.attended]}
            for head in view.heads
        ],
        "experts": [{"expert": i, "weight": weight} for i, weight in view.experts],
        "tokens_per_expert": list(view.n_routed),
        "lens": view.lens and {"id": view.lens[0], "probability": view.lens[1]},
    }
