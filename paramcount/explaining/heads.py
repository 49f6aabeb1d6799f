"""One attention head: the matrices that are its own, those that it shares with its group, and those that all heads share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paramcount.counting.sum_weights import list_flows
from paramcount.errors import ParamcountError
from paramcount.explaining.build import legend, size
from paramcount.explaining.explanation import Explanation, Line
from paramcount.explaining.layers import Stack, chosen, ranges, stacks
from paramcount.explaining.lines import Share, component, line
from paramcount.explaining.pieces import Piece, Walk, polynomial
from paramcount.flow import Data, Repeat, Size, Weight, last_size, list_steps, multiply
from paramcount.flow.walk import name_stacks
from paramcount.zoo import Model
from paramcount.zoo.what_if import describe_changes


class Attention(NamedTuple):
    """One attention of the layers of one kind."""

    scores: Data  # the operation that attends
    within: tuple[Data, ...]  # every operation beside it, in order
    stack: str
    layer: Repeat
    part: str


class Matrix(NamedTuple):
    """What one head has of a weight."""

    weight: Weight
    component: str  # "qkv.q"
    each: Size  # parameters of one head; all of them where they are shared by all
    heads: Size | None  # how many heads have as much of their own; None where all share it


def one_head(model: Model, found: Walk, layer: int | str | None) -> Explanation:
    """The explanation of one head of a layer; of the first layer that has any, where none is named."""
    among, every = stacks(found), list(attentions(model, found))
    if not every:
        raise ParamcountError("has no attention heads: no layer of it attends", where=model.id, expected="a model with attention")
    attention, stack, index, kind = picked(model, among, every, layer)
    held = [piece for piece in found.pieces if (piece.stack, piece.layer) == (attention.stack, attention.layer)]
    if any(piece.expert and piece.component.partition(".")[0] in ("qkv", OUTPUT) for piece in held):
        raise ParamcountError("its heads are experts, of which a token visits some", where=model.id, expected="a model whose heads are all visited")
    heads = found.at(attention.scores.inputs[0].shape[1])
    matrices = [matrix for matrix in matrices_of(attention) if found.at(matrix.each)]
    own: list[Line] = []
    biases: list[Line] = []
    shared: list[Line] = []
    groups: dict[int, list[str]] = {}
    for matrix in matrices:
        n, bias = polynomial(matrix.each), matrix.weight.name.rpartition(".")[2].endswith("bias")
        name = "W" + matrix.component.removeprefix("qkv.").replace(OUTPUT, "o")
        made = line(Share("", n, n, found.values), name, "", attention.part, "biases" if bias else "weights")
        (shared if matrix.heads is None else biases if bias else own).append(made)
        if matrix.heads is not None and found.at(matrix.heads) != heads and not bias:
            groups.setdefault(found.at(matrix.heads), []).append(name)
    remarks = [f"{' and '.join(dict.fromkeys(names))} shared by {'all ' if n == 1 else ''}{heads // n} heads" for n, names in groups.items()]
    pieces = [Piece("", matrix.component, attention.part, "parameter", None, (), matrix.each, "", None, None) for matrix in matrices]
    names = dict.fromkeys(each.component for each in own)
    total = sum(each.value for each in own)
    return Explanation(
        id=model.id,
        name=model.name,
        of="head",
        subject=f"one of {heads} heads of layer {index} of {stack.title}: {stack.about(kind)}",
        total=total,
        active=total,
        sizes=legend(model, found, pieces),
        kept=tuple(size(model, name, value) for name, value in found.kept.items()),
        components=tuple(component(name, tuple(each for each in own if each.component == name)) for name in names),
        visits=(),
        beside=tuple(component(name, tuple(held)) for name, held in (("biases of the head", biases), ("shared by all heads", shared)) if held),
        changes=tuple(describe_changes(model)),
        remarks=tuple(remarks),
    )


def attentions(model: Model, found: Walk) -> Iterator[Attention]:
    """Every attention of every kind of layer."""
    for out, flow_part in list_flows(found.c, model.reading.head):
        all_steps = list_steps(out, flow_part)
        named = name_stacks(all_steps)
        for data, _, repeats, part in all_steps:
            layer = next((repeat for repeat in repeats if repeat.axis == "layer"), None)
            if data.op == "attend" and layer is not None and found.at(layer.count):
                within = tuple(other for other, _, under, _ in all_steps if layer in under)
                yield Attention(data, within, named[id(layer)], layer, part)


def picked(model: Model, among: Sequence[Stack], every: Sequence[Attention], layer: int | str | None) -> tuple[Attention, Stack, int, int]:
    """The attention of a layer, and the layer. Raises: ParamcountError for a layer that does not attend."""
    having = [(attention, stack, stack.kinds.index(attention.layer)) for stack in among for attention in every if attention.stack == stack.name]
    if layer is None:
        attention, stack, kind = having[0]
        return attention, stack, min(stack.runs[kind])[0], kind
    stack, index, kind = chosen(model, among, layer)
    for attention, other, i in having:
        if other is stack and i == kind:
            return attention, stack, index, kind
    attending = ranges(run for _, other, i in having if other is stack for run in other.runs[i]) or "another stack"
    raise ParamcountError(f"= {index} of {stack.title} has no attention heads", where="layer", expected=attending)


# ---- what belongs to a head


def matrices_of(attention: Attention) -> Iterator[Matrix]:
    """What one head has of the weights that make queries, keys and values, and of the matrix behind them."""
    scores = attention.scores
    behind = [data for data in attention.within if OUTPUT in components_of(data) and id(scores) in reached(data.inputs)]
    before = reached([scores, *(source for data in behind for source in data.inputs)])
    for data in attention.within:
        if id(data) in before:
            after = [other for other in attention.within if other.op == "split" and other.inputs == (data,) and id(other) in before]
            yield from shares_of(data, after, scores.shape[1])
    for data in behind:
        heads, d_v = data.inputs[0].shape[1], scores.shape[-1]
        for weight in data.weights:
            if weight.component == OUTPUT:
                each = d_v * multiply(data.shape[1:])
                yield own_or_shared(weight, OUTPUT, multiply(weight.shape), each if len(weight.shape) > 1 else 0, heads)


OUTPUT = "output_projection"


def components_of(data: Data) -> set[str]:
    return {weight.component for weight in data.weights}


def shares_of(data: Data, after: list[Data], n_heads: Size) -> Iterator[Matrix]:
    """What a head has of the weights of one operation. `after`: what a fused matrix is split into. `n_heads`: a width of as many is a
    number for each head."""
    d_in = last_size(data.inputs[0]) if data.op == "linear" else 1
    for weight in data.weights:
        if weight.component.partition(".")[0] != "qkv":
            continue
        left, across = list(after), multiply(weight.shape[: weight.axis] + weight.shape[weight.axis + 1 :])
        for name, width in weight.splits or ((weight.component, weight.shape[weight.axis]),):
            shape = data.shape
            if weight.splits:
                half = next((piece for piece in left if multiply(piece.shape[1:]) == width), None)
                if half is None:  # another attention reads it
                    continue
                left.remove(half)
                shape = half.shape
            columns = d_in if len(weight.shape) > 1 else 1
            heads, d_head = shape[1:] if len(shape) == 3 else (n_heads, 1)
            yield own_or_shared(weight, name, across * width, columns * d_head, heads)


def own_or_shared(weight: Weight, component: str, whole: Size, each: Size, heads: Size) -> Matrix:
    """What one head has of a weight, where the heads together have all of it; a number for each head; else what all share."""
    if polynomial(each) * heads == whole:
        return Matrix(weight, component, each, heads)
    return Matrix(weight, component, 1, heads) if whole == heads else Matrix(weight, component, whole, None)


def reached(inputs: Sequence[Data]) -> dict[int, Data]:
    """The operations that lead to these, back to what the layer reads."""
    found: dict[int, Data] = {}
    left = list(inputs)
    while left:
        data = left.pop()
        if id(data) not in found and not read(data):
            found[id(data)] = data
            left += [*data.inputs, *(body.out for body in data.bodies)]
    return found


def read(data: Data) -> bool:
    """Whether it is what the layer hands on from operation to operation: its input, with what was added to it."""
    return not data.inputs or (data.op == "add" and any(read(source) for source in data.inputs))
