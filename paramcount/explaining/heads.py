"""Explains one attention head: its own weights, the weights of its group, and the weights that all heads share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from paramcount.counting.sum_weights import list_flows, list_numbers
from paramcount.errors import ParamcountError, join_words
from paramcount.explaining.explain import make_explanation
from paramcount.explaining.explanation import Explanation, Line
from paramcount.explaining.layers import LayerStack, find_layer, format_runs, list_stacks
from paramcount.explaining.lines import ComponentShare, make_line, sum_component
from paramcount.explaining.pieces import PieceWalk
from paramcount.flow import Add, Data, Linear, Repeat, Size, Split, Weight, last_size, list_steps, multiply
from paramcount.flow.caches import find_attentions
from paramcount.symbolic.polynomials import decide_by, to_polynomial
from paramcount.zoo import Model

OUTPUT = "output_projection"


class LayerAttention(NamedTuple):
    """An attention in the layers of one kind."""

    q: Data
    out: Data  # the weighted sum of values
    steps: tuple[Data, ...]  # all operations of the layer, in order
    layer: Repeat
    part: str


class HeadMatrix(NamedTuple):
    """The share of one head in a weight."""

    weight: Weight
    component: str  # "qkv.q"
    per_head: Size  # parameters of one head; of the whole weight if all heads share it
    heads: Size | None  # number of heads with their own parameters; None if all heads share the weight


def explain_head(model: Model, walk: PieceWalk, layer: int | str | None) -> Explanation:
    """The explanation of one head of a layer; by default, of the first layer with attention."""
    stacks, attentions = list_stacks(walk), list(list_attentions(model, walk))
    if not attentions:
        raise ParamcountError("has no attention heads", where=model.id, expected="a model with attention")
    attention, stack, index, kind = find_attention(model, stacks, attentions, layer)
    check_not_routed(model, walk, attention)
    heads = walk.evaluate(attention.q.shape[1])
    matrices = [matrix for matrix in list_matrices(attention) if walk.evaluate(matrix.per_head)]
    own: list[Line] = []
    biases: list[Line] = []
    shared: list[Line] = []
    groups: dict[int, list[str]] = {}
    for matrix in matrices:
        is_bias = matrix.weight.name.rpartition(".")[2].endswith("bias")
        name = "W" + matrix.component.removeprefix("qkv.").replace(OUTPUT, "o")
        n = to_polynomial(matrix.per_head)
        of = "biases" if is_bias else "weights"
        line = make_line(ComponentShare("", n, n, walk.values), name, "", attention.part, of)
        (shared if matrix.heads is None else biases if is_bias else own).append(line)
        if matrix.heads is not None and walk.evaluate(matrix.heads) != heads and not is_bias:
            groups.setdefault(walk.evaluate(matrix.heads), []).append(name)
    components = [
        sum_component(name, tuple(line for line in own if line.component == name))
        for name in dict.fromkeys(line.component for line in own)
    ]
    others = (("biases of the head", biases), ("shared by all heads", shared))
    explanation = make_explanation(
        model,
        walk,
        components,
        not_included=[sum_component(name, tuple(lines)) for name, lines in others],
        numbers=(matrix.per_head for matrix in matrices),
        notes=[describe_sharing(names, heads, n) for n, names in groups.items()],
    )
    subject = f"one of {heads} heads in layer {index} of {stack.title} ({stack.describe_kind(kind)})"
    return replace(explanation, of="head", subject=subject)


def describe_sharing(names: Sequence[str], heads: int, n: int) -> str:
    """A note on grouped heads: "4 query heads share Wk and Wv"."""
    sharing = f"all {heads}" if n == 1 else f"{heads // n}"
    return f"{sharing} query heads share {join_words(dict.fromkeys(names), 'and')}"


def check_not_routed(model: Model, walk: PieceWalk, attention: LayerAttention) -> None:
    """Raises: ParamcountError if the heads are experts, so that no head is used by every token."""
    for row in walk.rows:
        if row.layer == attention.layer and row.expert and row.component.partition(".")[0] in ("qkv", OUTPUT):
            problem = "its attention heads are experts, so no head is used by every token"
            raise ParamcountError(problem, where=model.id, expected="a model whose heads are not experts")


def list_attentions(model: Model, walk: PieceWalk) -> Iterator[LayerAttention]:
    """Every attention of every kind of layer."""
    with decide_by(list_numbers(model.sizes)):
        flows = list(list_flows(walk.c, model.reading.head))
    for out, flow_part in flows:
        steps = list_steps(out, flow_part)
        found = find_attentions(steps)
        for data, _, repeats, part in steps:
            layer = next((repeat for repeat in repeats if repeat.axis == "layer"), None)
            if id(data) in found and layer is not None and walk.evaluate(layer.count):
                inner = tuple(other for other, _, scopes, _ in steps if layer in scopes)
                yield LayerAttention(found[id(data)].q, data, inner, layer, part)


def find_attention(
    model: Model,
    stacks: Sequence[LayerStack],
    attentions: Sequence[LayerAttention],
    layer: int | str | None,
) -> tuple[LayerAttention, LayerStack, int, int]:
    """The attention of a layer, with its stack, its index and its kind.

    Raises: ParamcountError if the layer has none, or if no layer has its own.
    """
    matches = [
        (attention, stack, stack.kinds.index(attention.layer))
        for stack in stacks
        for attention in attentions
        if attention.layer.stack == stack.name
    ]
    if layer is None:
        if not matches:  # ALBERT
            problem = "has no layer with its own attention heads"
            raise ParamcountError(problem, where=model.id, expected="a model whose layers do not share all weights")
        attention, stack, kind = matches[0]
        return attention, stack, min(stack.runs[kind])[0], kind
    stack, index, kind = find_layer(model, stacks, layer)
    for attention, other, i in matches:
        if other is stack and i == kind:
            return attention, stack, index, kind
    runs = [run for _, other, i in matches if other is stack for run in other.runs[i]]
    valid = format_runs(runs) or "another stack"
    raise ParamcountError(f"layer {index} of {stack.title} has no attention heads", where=model.id, expected=valid)


# ---- the shares of one head


def list_matrices(attention: LayerAttention) -> Iterator[HeadMatrix]:
    """The share of one head in the query, key and value weights and in the output projection."""
    out = attention.out
    outputs = [
        data
        for data in attention.steps
        if any(weight.component == OUTPUT for weight in data.weights) and id(out) in find_sources(data.inputs)
    ]
    before = find_sources([out, *(source for data in outputs for source in data.inputs)])
    for data in attention.steps:
        if id(data) in before:
            splits = [step for step in attention.steps if isinstance(step.operation, Split) and step.inputs == (data,)]
            yield from list_shares(data, [step for step in splits if id(step) in before], out.shape[1])
    for data in outputs:
        heads, d_v = data.inputs[0].shape[1], data.inputs[0].shape[-1]
        has_heads = heads in out.shape and d_v in out.shape  # not groups or pairs of them
        for weight in data.weights:
            if weight.component == OUTPUT:
                per_head = d_v * multiply(data.shape[1:]) if has_heads and len(weight.shape) > 1 else 0
                yield make_matrix(weight, OUTPUT, multiply(weight.shape), per_head, heads)


def list_shares(data: Data, splits: list[Data], n_heads: Size) -> Iterator[HeadMatrix]:
    """The share of a head in the weights of one operation. `splits`: the parts of a fused weight. An output of n_heads
    elements has one element per head."""
    d_in = last_size(data.inputs[0]) if isinstance(data.operation, Linear) else 1
    for weight in data.weights:
        if weight.component.partition(".")[0] != "qkv":
            continue
        unused, others = list(splits), multiply(weight.shape[: weight.axis] + weight.shape[weight.axis + 1 :])
        for name, size in weight.splits or ((weight.component, weight.shape[weight.axis]),):
            shape = data.shape
            if weight.splits:
                part = next((step for step in unused if multiply(step.shape[1:]) == size), None)
                if part is None:  # another attention reads it
                    continue
                unused.remove(part)
                shape = part.shape
            columns = d_in if len(weight.shape) > 1 else 1
            heads, d_head = shape[1:] if len(shape) == 3 else (n_heads, 1)
            yield make_matrix(weight, name, others * size, columns * d_head, heads)


def make_matrix(weight: Weight, component: str, total: Size, per_head: Size, heads: Size) -> HeadMatrix:
    """A weight that is split between the heads, has one element per head, or is shared by all heads."""
    if to_polynomial(per_head) * heads == total:
        return HeadMatrix(weight, component, per_head, heads)
    return HeadMatrix(weight, component, 1, heads) if total == heads else HeadMatrix(weight, component, total, None)


def find_sources(inputs: Sequence[Data]) -> dict[int, Data]:
    """These operations and all operations before them, back to the input of the layer."""
    sources: dict[int, Data] = {}
    queue = list(inputs)
    while queue:
        data = queue.pop()
        if id(data) not in sources and not is_residual(data):
            sources[id(data)] = data
            queue += [*data.inputs, *(body.out for body in data.bodies)]
    return sources


def is_residual(data: Data) -> bool:
    """Whether the data are the residual stream: the input of the layer, or a sum with it."""
    is_sum = isinstance(data.operation, Add)
    return not data.inputs or (is_sum and any(is_residual(source) for source in data.inputs))
