"""What changes inside a model during a pass, layer by layer, in a few numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from paramcount.execution.evaluate import Evaluation, Observer, Scope, Value
from paramcount.flow import Attention, Body, Data, Layers, Norm, Scale, Tuple
from paramcount.flow.graph import Add
from paramcount.flow.operation import Array
from paramcount.flow.operations.routing import Route
from paramcount.flow.operations.routing import softmax as normalise
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
        self.keeps_maps = keeps_maps
        self.layers: list[LayerView] = []
        self.outputs: list[Array] = []  # of each layer, for the last position
        self.branches: dict[int, dict[str, list[int]]] = {}
        self.clear()

    def clear(self) -> None:
        self.attention: list[Array] = []  # attention weights of the layer
        self.experts: Array | None = None

    def see_step(self, value: Value, data: Data) -> None:
        if value.operation == "attention weights" and isinstance(data.operation, Attention) and data.operation.causal:
            self.attention.append(value.array)
        elif value.operation == "experts" and isinstance(data.operation, Route):
            self.experts = value.array

    def see_layer(self, data: Data, body: Body, scope: Scope, x: Array) -> None:
        if id(data) in self.stacks:
            self.layers.append(self.summarise(body, scope, x))
            self.outputs.append(x[-1])
        self.clear()

    def summarise(self, body: Body, scope: Scope, x: Array) -> LayerView:
        """The view of a layer, without the logit lens."""
        if id(body.out) not in self.branches:
            self.branches[id(body.out)] = find_branches(body)
        norm = measure(x[-1])
        added = {
            name: measure(np.sum([scope.values[id][-1] for id in ids], axis=0)) / norm if norm else 0.0
            for name, ids in self.branches[id(body.out)].items()
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
        if not self.outputs or len({x.shape for x in self.outputs}) > 1:
            return self.layers
        evaluation.observer = None
        values = dict.fromkeys(self.stacks, np.stack(self.outputs))
        logits = evaluation.compute(evaluation.out, Scope(part=evaluation.scope.part, values=values))
        shares = normalise(logits.astype(np.float64))
        best = shares.argmax(-1)
        return [
            view._replace(lens=(int(id), float(row[id])))
            for view, id, row in zip(self.layers, best, shares, strict=True)
        ]


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
        if not data.inputs:
            return found
        data = data.inputs[0]


def find_branches(body: Body) -> dict[str, list[int]]:
    """{attention, mlp or mixer: ids of the values that a layer adds to the residual stream}"""
    out = body.out.inputs[0] if isinstance(body.out.operation, Tuple) else body.out
    terms, sums = split_sum(out)
    stream = {id(data) for data in (*body.inputs, *sums)}
    found: dict[str, list[int]] = {}
    for term in terms:
        if id(term) not in stream and (kind := classify(term, stream)):
            found.setdefault(kind, []).append(id(term))
    return found


def split_sum(out: Data) -> tuple[list[Data], list[Data]]:
    """The terms that sum to the output of a layer, and the sums on the way: x + attention(norm(x)) + …"""
    terms: list[Data] = []
    sums: list[Data] = []

    def visit(data: Data) -> None:
        if isinstance(data.operation, Add):
            sums.append(data)
            for term in data.inputs:
                visit(term)
        elif isinstance(data.operation, (Norm, Scale)) and isinstance(data.inputs[0].operation, Add):
            sums.append(data)  # a norm behind the residual connection
            visit(data.inputs[0])
        else:
            terms.append(data)

    visit(out)
    return terms, sums


def classify(term: Data, stream: set[int]) -> str:
    """The kind of a term, from the operations between it and the residual stream; "" if it has no weights."""
    operations = list(list_inner(term, stream))
    if any(isinstance(data.operation, Attention) for data in operations):
        return "attention"
    if any(data.operation.state_shapes for data in operations):
        return "mixer"
    return "mlp" if any(data.weights for data in operations) else ""


def list_inner(term: Data, stream: set[int]) -> Iterator[Data]:
    """The operations between a term and the residual stream, with those inside of blocks."""
    seen, waiting = set(stream), [term]
    while waiting:
        data = waiting.pop()
        if id(data) not in seen:
            seen.add(id(data))
            yield data
            for body in data.bodies:
                yield from (inner for inner, *_ in list_steps(body.out))
            waiting += data.inputs


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
