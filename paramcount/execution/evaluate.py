"""The evaluation of a flow: every operation in order, layer by layer, with what it keeps for later tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np

from paramcount import flow as ops
from paramcount.errors import ParamcountError
from paramcount.execution.inputs import name_input
from paramcount.execution.narrow import NarrowMatrix
from paramcount.flow import Body, Data, Repeat, Weight
from paramcount.flow.operation import Array, Form, require
from paramcount.flow.walk import OUTSIDE, Names, enter_body, fold_weight, list_steps


class Weights(Protocol):
    """Tensors of a model by name, read when they are needed."""

    def read(self, name: str, shape: tuple[int, ...], index: int | None) -> Array:
        """A float32 tensor of this shape. `index`: of one expert, if all experts are stored as one tensor."""
        ...

    def read_matrix(self, name: str, shape: tuple[int, ...], index: int | None) -> Array | NarrowMatrix:
        """The same for a tensor that is only multiplied or looked up."""
        ...


class Value(NamedTuple):
    """One intermediate value."""

    name: str  # of the module in the checkpoint, with layer and expert indices; "" without weights
    operation: str  # "linear", or what an operation computes on its way: "attention weights", "experts"
    layer: tuple[int, ...]  # indices of the enclosing layers and experts, outermost first; () outside of them
    array: Array


class Observer:
    """What sees the intermediate values of a pass. A subclass overrides what it needs."""

    def see_step(self, value: Value, data: Data) -> None:
        """An operation has been computed, or something on the way to its output."""

    def see_layer(self, data: Data, body: Body, scope: EvaluationScope, x: Array) -> None:
        """A layer of the stack `data` has been computed: `x` is its output, `scope.values` are those inside."""


@dataclass
class EvaluationStep:
    """What an operation may know of the pass: `flow.operation.Pass`."""

    positions: Array
    layer: int
    state: dict[str, Array]


@dataclass(frozen=True)
class EvaluationScope:
    """One execution of a body: one layer, one expert or a named block."""

    names: Names = OUTSIDE
    repeats: tuple[Repeat, ...] = ()
    indices: tuple[int, ...] = ()  # of the enclosing layers and experts
    part: str = "decoder"
    path: tuple[Any, ...] = ()  # identifies the states inside
    values: dict[int, Array] = field(default_factory=dict)

    @property
    def layer(self) -> int:
        """The index of the innermost layer."""
        return next((i for repeat, i in zip(self.repeats[::-1], self.indices[::-1]) if repeat.axis == "layer"), 0)

    def enter(self, data: Data, body: Body, index: int | None) -> EvaluationScope:
        return EvaluationScope(
            *enter_body(data, body, self.names, self.repeats),
            self.indices if index is None else (*self.indices, index),
            data.part or self.part,
            (*self.path, id(data), index),
        )


class Evaluation:
    """The forward pass of one flow with its caches."""

    def __init__(self, out: Data, weights: Weights, part: str = "decoder") -> None:
        self.out, self.weights = out, weights
        self.scope = EvaluationScope(part=part)
        self.states: dict[tuple[Any, ...], dict[str, Array]] = {}
        self.kept: set[int] = find_kept(out)
        self.states_of_layers: dict[int, list[Array]] = {}  # {id of a stack whose inner states are read: all of them}
        self.second_values: dict[int, Array] = {}  # {id of a tuple, or of a block that passes one on: its second value}
        self.kept_values: dict[tuple[Any, ...], Array] = {}
        self.n_past = 0
        self.observer: Observer | None = None
        self.report: Callable[[int, int], object] | None = None  # called with (layers done, number of layers)
        self.n_layers = count_layers(out)
        flow = [data for data, *_ in list_steps(out)]
        for data in flow:
            if isinstance(data.operation, ops.HiddenStates):
                self.states_of_layers[id(data.inputs[0])] = []
        # Attention scores and weights that one step alone reads take much memory, and are freed then.
        reads = Counter(id(before) for data in flow for before in data.inputs if ops.list_scored(before))
        self.read_once = {data for data, n in reads.items() if n == 1}

    def run(self, inputs: Mapping[str, Array]) -> Array:
        """The output for further tokens. `inputs`: values by `name_input`; "tokens" are the ids of the new ones."""
        self.inputs = inputs
        n = len(inputs["tokens"])
        self.positions = np.arange(self.n_past, self.n_past + n)
        self.layers_done = 0
        scope = replace(self.scope, values={})
        result = self.compute(self.out, scope)
        self.n_past += n
        return result

    def compute(self, data: Data, scope: EvaluationScope) -> Array:
        """The value of data inside one execution of its body."""
        values = scope.values
        if id(data) not in values:
            if id(data) in self.kept and (*scope.path, id(data)) in self.kept_values:
                values[id(data)] = self.kept_values[*scope.path, id(data)]
                return values[id(data)]
            for before in data.inputs:
                self.compute(before, scope)
            result = self.apply(data, scope)
            if id(data) in self.kept:
                self.kept_values[*scope.path, id(data)] = result
            for before in data.inputs:
                if id(before) in self.read_once:
                    del values[id(before)]
            values[id(data)] = result
        return values[id(data)]

    def apply(self, data: Data, scope: EvaluationScope) -> Array:
        operation, inputs = data.operation, [scope.values[id(before)] for before in data.inputs]
        if isinstance(operation, ops.Layers):
            return self.run_layers(data, operation, scope, inputs)
        if isinstance(operation, ops.Experts):
            return self.run_experts(data, operation, scope, inputs)
        if isinstance(operation, ops.ForEach):
            (body,), (x,) = data.bodies, inputs
            kept = [x[:, 0]] if operation.each == "stream" else []
            parts = [x[:, i] for i in range(len(kept), x.shape[1])]
            found = [self.run_body(body, scope.enter(data, body, i), [part]) for i, part in enumerate(parts)]
            return np.stack(kept + found, axis=1)
        if data.bodies:
            (body,) = data.bodies
            self.pass_second_values(zip(body.inputs, data.inputs))
            result = self.run_body(body, scope.enter(data, body, None), inputs)
            self.pass_second_values([(data, body.out)])
            return result
        if isinstance(operation, ops.Tuple):
            self.second_values[id(data)] = inputs[1]
            return inputs[0]
        if isinstance(operation, ops.SecondValue):
            return self.second_values[id(data.inputs[0])]
        if isinstance(operation, ops.HiddenStates):
            states = self.states_of_layers[id(data.inputs[0])]
            return np.concatenate([states[i] for i in require(operation.of)], axis=-1)
        if isinstance(operation, ops.Input):
            name = name_input(operation.what)
            if name not in self.inputs and operation.default is not None:
                n = data.shape[0] if isinstance(data.shape[0], int) else len(self.positions)
                if data.shape[0] == "source" and "source_tokens" in self.inputs:
                    n = len(self.inputs["source_tokens"])
                return np.full((n, *map(int, data.shape[1:])), require(operation.default))
            if name not in self.inputs:
                raise ParamcountError(f"the input {name} is missing", expected=f"{name}=…")
            return self.slice_tokens(data, operation, self.inputs[name])
        is_matrix = isinstance(operation, (ops.Linear, ops.TableLookup))
        read = self.weights.read_matrix if is_matrix else self.weights.read
        places = [(locate(weight, scope), tuple(map(int, weight.shape))) for weight in data.weights]
        weights: list[Any] = [read(name, shape, expert) for (name, expert), shape in places]
        axis = operation.row_axis
        stream = data.shape[axis] if data.shape else None
        of_tokens = stream == "tokens" or not inputs
        n_rows, n_tokens = inputs[0].shape[axis] if inputs else len(self.positions), self.n_past + len(self.positions)
        if not of_tokens:
            is_source = stream == "source" and "source_tokens" in self.inputs
            n_tokens = len(self.inputs["source_tokens"]) if is_source else n_rows
        positions = np.arange(n_tokens - n_rows, n_tokens)  # less than 0: in front of the text
        step = EvaluationStep(positions, scope.layer, self.states.setdefault((*scope.path, id(data)), {}))
        shape = (len(inputs[0]) if inputs else 0, *(n if isinstance(n, int) else -1 for n in data.shape[1:]))
        result = operation.compute(step, inputs, weights, shape)
        if self.observer is not None:
            name = locate(data.weights[0], scope)[0] if data.weights else ""
            label = "attention weights" if operation.form is Form.ATTENTION_WEIGHTS else operation.label
            self.observer.see_step(Value(name, label, scope.indices, result), data)
        return result

    def slice_tokens(self, data: Data, operation: ops.Input, values: Array) -> Array:
        """What an input says of the present tokens. Those that it does not reach have its default."""
        if data.shape[:1] != ("tokens",) or operation.what == "tokens" or operation.default is None:
            return values
        n = len(self.positions)
        found = values[self.n_past : self.n_past + n]
        return np.concatenate(
            (found, np.full((n - len(found), *values.shape[1:]), require(operation.default), values.dtype))
        )

    def pass_second_values(self, pairs: Iterable[tuple[Data, Data]]) -> None:
        """Blocks take and return tuples. `pairs`: data inside and outside of them that are the same."""
        for data, source in pairs:
            if id(source) in self.second_values:
                self.second_values[id(data)] = self.second_values[id(source)]

    def run_body(self, body: Body, scope: EvaluationScope, inputs: list[Array]) -> Array:
        scope.values.update((id(inner), value) for inner, value in zip(body.inputs, inputs))
        return self.compute(body.out, scope)

    def run_layers(self, data: Data, operation: ops.Layers, scope: EvaluationScope, inputs: list[Array]) -> Array:
        x, *reads = inputs
        n_reads = len(reads) - operation.n_others
        reads, carried = reads[:n_reads], reads[n_reads:]
        states = self.states_of_layers.get(id(data), [])
        states[:] = [x]
        for index, body in list_layers(data):
            inside = scope.enter(data, body, index)
            missing = len(body.inputs) - 1 - len(reads) - len(carried)
            carried += [make_zeros(len(x), b) for b in body.inputs[len(body.inputs) - missing :]]
            x = self.run_body(body, inside, [x, *reads, *carried])
            if isinstance(body.out.operation, ops.Tuple) and carried:
                carried = [inside.values[id(value)] for value in body.out.inputs[1:]]
            if self.observer is not None:
                self.observer.see_layer(data, body, inside, x)
            states.append(x)
            self.layers_done += 1
            if self.report is not None:
                self.report(self.layers_done, self.n_layers)
        if carried:
            self.second_values[id(data)] = carried[0]
        return x

    def run_experts(self, data: Data, operation: ops.Experts, scope: EvaluationScope, inputs: list[Array]) -> Array:
        x, weights = inputs
        (body,) = data.bodies
        if isinstance(operation, (ops.ExpertsApart, ops.ExpertsOnParts)):
            return self.run_experts_on_parts(data, scope, x, weights)
        n = weights.shape[1] - (int(operation.n_identities) if isinstance(operation, ops.ExpertsAndIdentities) else 0)
        scales_input = isinstance(operation, ops.ExpertsOfScaled)
        result: Array = x * weights[:, n:].sum(-1).reshape(-1, *(1,) * (x.ndim - 1))
        for expert in np.flatnonzero(weights[:, :n].any(axis=0)):
            rows = np.flatnonzero(weights[:, expert])
            share = weights[rows, expert].reshape(-1, *(1,) * (x.ndim - 1))
            inside = scope.enter(data, body, int(expert) + int(body.repeat.runs[0][0]))
            given = x[rows] * share if scales_input else x[rows]
            y = self.run_body(body, inside, [given])
            result[rows] += y if scales_input else y * share
        return result

    def run_experts_on_parts(self, data: Data, scope: EvaluationScope, x: Array, weights: Array) -> Array:
        """Chosen experts of which each has its own part of the last axis of the output, or of the input."""
        (body,) = data.bodies
        order = (weights != 0).cumsum(-1) - 1  # of each expert among those that are chosen
        n = int((weights != 0).sum(-1).max())
        shape = tuple(int(size) for size in data.shape[1:])
        result = np.zeros((len(x), *shape), np.float32)
        of_output = isinstance(data.operation, ops.ExpertsApart)
        parts = (result if of_output else x).reshape(len(x), *(shape if of_output else x.shape[1:])[:-1], n, -1)
        for expert in np.flatnonzero(weights.any(axis=0)):
            rows = np.flatnonzero(weights[:, expert])
            place = order[rows, expert]
            inside = scope.enter(data, body, int(expert) + int(body.repeat.runs[0][0]))
            if of_output:
                parts[rows, ..., place, :] = self.run_body(body, inside, [x[rows]])
            else:
                y = self.run_body(body, inside, [parts[rows, ..., place, :]])
                result[rows] += y * weights[rows, expert].reshape(-1, *(1,) * (y.ndim - 1))
        return result


def make_zeros(n: int, data: Data) -> Array:
    """What the first layer gets of a value that layers pass on; nothing if its shape depends on the text."""
    shape = data.shape[1:]
    return np.zeros((n, *shape) if all(isinstance(size, int) for size in shape) else 0, np.float32)


def find_kept(out: Data) -> set[int]:
    """Ids of values that new tokens do not change but that they read, such as keys of an encoder's output."""
    fixed: dict[int, bool] = {}
    found: set[int] = set()

    def visit(data: Data) -> bool:
        if id(data) in fixed:
            return fixed[id(data)]
        inputs = [visit(before) for before in data.inputs]
        result = all(inputs) and (bool(data.inputs) or (bool(data.shape) and data.shape[0] != "tokens"))
        for body in data.bodies:
            together = isinstance(data.operation, ops.Layers) and not result  # each layer's input is another's output
            n_reads = len(data.inputs) - (data.operation.n_others if isinstance(data.operation, ops.Layers) else 0)
            for i, inner in enumerate(body.inputs):
                is_read = 0 < i < n_reads
                fixed[id(inner)] = inputs[i] if is_read or (i == 0 and not together) else result
            result = visit(body.out) and result
        if not result:
            found.update(id(before) for before, is_fixed in zip(data.inputs, inputs) if is_fixed)
        fixed[id(data)] = result
        return result

    visit(out)
    return found


def locate(weight: Weight, scope: EvaluationScope) -> tuple[str, int | None]:
    """(tensor name in the checkpoint, index of the expert in it if all experts are stored as one tensor)."""
    row = fold_weight(weight, scope.names, scope.repeats, scope.part)
    expert, places = None, []
    for repeat, index in zip(scope.repeats, scope.indices, strict=True):
        if repeat is row.stacked:
            expert = index - int(repeat.runs[0][0])
        else:
            places.append((repeat.axis, index))
    return fill_indices(row.tied_to or row.name, places), expert


def fill_indices(name: str, places: Sequence[tuple[str, int]]) -> str:
    """The name of a tensor with indices in it. `places`: (axis, index), outermost first; if the name has fewer, then
    layers inside others run again, and the inner ones give the index.
    """
    for i, (axis, index) in enumerate(places):
        if name.count(f"{{{axis}}}") > sum(inner == axis for inner, _ in places[i + 1 :]):
            name = name.replace(f"{{{axis}}}", str(index), 1)
    return name


def count_layers(out: Data) -> int:
    """The layers that a pass runs through."""
    return sum(
        prod(repeat.count for repeat in (*repeats, body.repeat) if repeat.axis == "layer")
        for data, _, repeats, _ in list_steps(out)
        if isinstance(data.operation, ops.Layers)
        for body in data.bodies
    )


def list_layers(data: Data) -> Iterator[tuple[int, Body]]:
    """(index, body) of each layer in order."""
    found = [(index, body) for body in data.bodies for index in body.repeat.indices]
    yield from sorted(found, key=lambda layer: layer[0])
