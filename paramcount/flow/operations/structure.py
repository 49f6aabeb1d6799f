"""Operations that contain others: named blocks, stacks of layers, experts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ClassVar, Literal

from paramcount.flow.graph import (
    ONCE,
    Body,
    Data,
    Renaming,
    Repeat,
    Size,
    Stored,
    Tie,
    Weight,
    Width,
    as_axes,
    check_same_shape,
)
from paramcount.flow.operation import Form, Operation, Stage, Unknown, Value
from paramcount.flow.operations.shapes import Input, bundle

INPUT = Input()


class Block(Operation, name="block", only_moves=True):
    """A named block."""


def block(
    x: Data, prefix: str, body: Callable[..., Data], *, reads: Sequence[Data] = (), part: str | None = None
) -> Data:
    """A named block. A prefix that begins with "/" is an absolute one. `part`: part of the model for its weights."""
    inputs = tuple(Data(INPUT, (), r.shape) for r in (x, *reads))
    out = body(*inputs)
    bodies = (Body(ONCE, inputs, out),)
    return Data(Block(), (x, *reads), out.shape, prefix=prefix, bodies=bodies, part=part)


def tie_weights(x: Data, prefix: str | None, *, own: tuple[str, ...] = ()) -> Data:
    """A named block that reuses the weights of the one with this prefix, if any, but those whose names end in `own`."""
    return x if prefix is None else change_body(x, tie=Tie(prefix, own))


def as_model(x: Data) -> Data:
    """A named block that is a model of its own: absolute names of weights inside start at its prefix."""
    return change_renaming(x, root=x.prefix)


def rename_weights(
    x: Data, *, moved: tuple[str, str] | None = None, replaced: tuple[tuple[str, str], ...] = ()
) -> Data:
    """A named block whose weights have other names. `moved`: (old, new) prefix; `replaced`: (old, new) parts."""
    return change_renaming(x, moved=moved, replaced=replaced)


def change_renaming(x: Data, **changes: Any) -> Data:
    renaming = x.bodies[0].renaming or Renaming()
    return change_body(x, renaming=renaming._replace(**changes))


def change_body(x: Data, **changes: Any) -> Data:
    bodies = (x.bodies[0]._replace(**changes),)
    return Data(x.operation, x.inputs, x.shape, prefix=x.prefix, bodies=bodies, part=x.part)


class ForEach(Block, name="concat {each}s"):
    """A block for each head of [n, heads, d], or for each stream but the first, each with its own weights."""

    each: Literal["head", "stream"]


def for_each_head(x: Data, prefix: str, body: Callable[[Data], Data]) -> Data:
    """[n, heads, d] to [n, heads, d]. `prefix`: of the weights of one head, with {head} for its index."""
    return run_for_each(x, "head", x.shape[1], prefix, body)


def for_each_stream(x: Data, prefix: str, body: Callable[[Data], Data]) -> Data:
    """[n, streams, d] to [n, streams, d]; the first stream is not changed. `prefix`: with {stream} for the index, from
    0 for the second stream."""
    return run_for_each(x, "stream", x.shape[1] - 1, prefix, body)


def run_for_each(
    x: Data, each: Literal["head", "stream"], count: Size, prefix: str, body: Callable[[Data], Data]
) -> Data:
    inner = Data(INPUT, (), (x.shape[0], x.shape[2]))
    repeat = Repeat(each, count, count, runs=((0, count),))
    return Data(ForEach(each), (x,), x.shape, prefix=prefix, bodies=(Body(repeat, (inner,), body(inner)),))


class Experts(Operation, name="experts"):
    """The sum of the chosen experts' outputs, weighted by the router.

    Its second input: weights [n, experts], 0 if not chosen.
    """

    sum: ClassVar[Stage] = Stage("sum of experts", "", Form.SUM_OF_EXPERTS)

    def list_saved(self, inputs: Sequence[Value]) -> Sequence[Value]:
        return inputs[1:]  # the experts save their own copies of the first


class ExpertsAndIdentities(Experts):
    """The same with further experts behind those with weights, which return their input."""

    n_identities: Size


class ExpertsOfScaled(Experts):
    """The sum of the outputs of the chosen experts, each of which reads x times its weight."""


class ExpertsApart(Experts, phrase="outputs side by side"):
    """The outputs of the chosen experts side by side along the last axis, not weighted."""


class ExpertsOnParts(Experts, phrase="each reads its own part; weighted sum"):
    """The weighted sum of the outputs of the chosen experts, each of which reads its own part of the last axis."""


def experts(
    x: Data,
    weights: Data,
    prefix: str,
    count: Size,
    active: Size,
    body: Callable[[Data], Data],
    *,
    stored: Stored = "apart",
    first: Size = 0,
) -> Data:
    """`count` experts with the same body, `active` of them per token, and the sum of their outputs times `weights`,
    [n, experts].

    `stored`: as one tensor per expert; or as one for all, with a leading expert axis, or concatenated along the first
    axis. `first`: index of the first expert.
    """
    return run_experts(Experts(), (x, weights), prefix, make_repeat(count, active, stored, first), body)


def experts_and_identities(
    x: Data, weights: Data, prefix: str, count: Size, active: Size, body: Callable[[Data], Data], n_identities: Size
) -> Data:
    """Experts, and further ones without weights, which return their input."""
    operation = ExpertsAndIdentities(n_identities)
    return run_experts(operation, (x, weights), prefix, make_repeat(count, active), body)


def experts_of_scaled(
    x: Data, weights: Data, prefix: str, count: Size, active: Size, body: Callable[[Data], Data], *, stored: Stored
) -> Data:
    """The sum of the outputs of experts, each of which reads x times its weight."""
    return run_experts(ExpertsOfScaled(), (x, weights), prefix, make_repeat(count, active, stored), body)


def use_at_least(x: Data, n: Size) -> Data:
    """Experts of which a token uses a varying number: n at least, and at most the number that is declared."""
    return change_body(x, repeat=x.bodies[0].repeat._replace(least=n))


def share(x: Data) -> Data:
    """A step inside an expert, whose weights all experts share."""
    weights = tuple(weight._replace(is_shared=True) for weight in x.weights)
    return Data(x.operation, x.inputs, x.shape, weights)


def make_repeat(count: Size, active: Size, stored: Stored = "apart", first: Size = 0) -> Repeat:
    return Repeat("expert", count, active, runs=((first, count),), stored=stored)


def run_experts(
    operation: Experts, inputs: tuple[Data, Data], prefix: str, repeat: Repeat, body: Callable[[Data], Data]
) -> Data:
    inner = Data(INPUT, (), inputs[0].shape)
    out = body(inner)
    check_same_shape(inner, out)
    return Data(operation, inputs, out.shape, prefix=prefix, bodies=(Body(repeat, (inner,), out),))


def experts_apart(x: Data, scores: Data, prefix: str, count: Size, active: Size, body: Callable[[Data], Data]) -> Data:
    """The outputs of the chosen experts, not weighted, side by side along the last axis. Stored as one tensor."""
    inner = Data(INPUT, (), x.shape)
    out = body(inner)
    shape = (*out.shape[:-1], out.shape[-1] * active)
    bodies = (Body(make_repeat(count, active, "stacked"), (inner,), out),)
    return Data(ExpertsApart(), (x, scores), shape, prefix=prefix, bodies=bodies)


def experts_on_parts(
    x: Data, width: Size, scores: Data, prefix: str, count: Size, active: Size, body: Callable[[Data], Data]
) -> Data:
    """Each chosen expert reads its own part, of this width, of the last axis of x. Their weighted sum."""
    inner = Data(INPUT, (), (*x.shape[:-1], width))
    out = body(inner)
    bodies = (Body(make_repeat(count, active, "stacked"), (inner,), out),)
    return Data(ExpertsOnParts(), (x, scores), out.shape, prefix=prefix, bodies=bodies)


class Layers(Operation, name="layers", only_moves=True):
    """A stack of layers of one or several kinds."""

    n_others: int = 0  # the last inputs, which go from layer to layer like the first


def layers(
    x: Data,
    prefix: str,
    kinds: Iterable[tuple[Hashable, Size]],
    body: Callable[..., Any],
    *,
    reads: Sequence[Data] = (),
    others: Sequence[Data] = (),
    carry: Sequence[Width] = (),
    first: Size = 0,
) -> Data:
    """A stack of layers; `body` declares each kind of layer once.

    `kinds`: ((kind, number of layers), ...) in order; kinds may recur. `reads`: further inputs of every layer, such as
    the encoder's output. `others`: what goes from layer to layer besides x; every layer returns it behind x. `carry`:
    sizes of further values that each layer passes to the next, which the first layer does not get. `first`: index of
    the first layer.
    """
    runs: dict[Hashable, list[tuple[Size, Size]]] = {}
    index, last = first, None
    for kind, n in kinds:
        if type(n) is int and n == 0:
            continue
        if kind == last:
            start, length = runs[kind][-1]
            runs[kind][-1] = (start, length + n)
        else:
            runs.setdefault(kind, []).append((index, n))
        index, last = index + n, kind
    bodies = []
    for kind, spans in runs.items():
        inputs = tuple(Data(INPUT, (), r.shape) for r in (x, *reads, *others)) + tuple(
            Data(INPUT, (), x.shape[:1] + as_axes(c)) for c in carry
        )
        out = body(kind, *inputs)
        if others or carry:
            out, *after = out
            for before, value in zip(inputs[1 + len(reads) :], after, strict=True):
                check_same_shape(before, value)
            out = bundle(out, *after)
        check_same_shape(x, out)
        n = spans[0][1]
        for _, length in spans[1:]:
            n = n + length
        bodies.append(Body(Repeat("layer", n, n, kind, tuple(spans)), inputs, out))
    return Data(Layers(len(others)), (x, *reads, *others), x.shape, prefix=prefix, bodies=tuple(bodies))


class HiddenStates(Operation, name="hidden states", only_moves=True):
    """What goes into some of the layers of a stack, or comes out of the last, side by side. Its input: the stack."""

    of: tuple[int, ...] | Unknown  # 0: what goes into the first layer; negative: counted from what the last returns
    weighted: bool = False  # not side by side, but their sum, weighted by the softmax of learned values

    def describe(self) -> str:
        if self.weighted:
            return "their sum, by the softmax of learned weights"
        if isinstance(self.of, Unknown):
            return "outputs of intermediate layers"
        return (
            f"outputs of {len(self.of):,} layers, concatenated"
            if len(self.of) > 1
            else "output of an intermediate layer"
        )


def sum_of_layers(x: Data, name: str, n: Size) -> Data:
    """The weighted sum of n states of a stack, [rows, d]."""
    return Data(HiddenStates(Unknown("layers"), weighted=True), (x,), x.shape, (Weight(name, "other", (n,)),))


def hidden_states(x: Data, of: tuple[int, ...] | Unknown, n: Size = 1) -> Data:
    """The states [rows, n · d] of n layers of the stack x, by the number of layers before them."""
    return Data(HiddenStates(of), (x,), (*x.shape[:-1], n * x.shape[-1]))
