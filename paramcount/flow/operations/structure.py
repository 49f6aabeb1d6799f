"""Operations that contain others: named blocks, stacks of layers, experts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ClassVar, Literal

from paramcount.flow.graph import Body, Data, Repeat, Size, Weight, Width, as_axes, check_same_shape
from paramcount.flow.operation import Form, Operation, Stage, Unknown, Value
from paramcount.flow.operations.shapes import Input, bundle

INPUT = Input()


class Block(Operation):
    """A named block, or one for each head of [n, heads, d] or each stream but the first, each with its own weights."""

    only_moves: ClassVar[bool] = True
    name: ClassVar[str] = "block"
    each: Literal["head", "stream"] | None = None

    @property
    def label(self) -> str:
        return f"concat {self.each}s" if self.each else self.name


def block(
    x: Data,
    prefix: str,
    body: Callable[..., Data],
    *,
    reads: Sequence[Data] = (),
    part: str | None = None,
    tied_to: str | None = None,
    root: bool = False,
    moved: tuple[str, str] | None = None,
    renamed: tuple[tuple[str, str], ...] = (),
    own: tuple[str, ...] = (),
) -> Data:
    """A named block. A prefix that begins with "/" is an absolute one.

    `part`: part of the model for its weights. `tied_to`: prefix of the block whose weights this one reuses, but those
    whose names end in `own`. `root`: the block is a model of its own, so absolute weight names start at its prefix.
    `moved`: (old, new) prefixes to rename weights. `renamed`: (old, new) parts of their names.
    """
    inputs = tuple(Data(INPUT, (), r.shape) for r in (x, *reads))
    out = body(*inputs)
    use = Repeat("use", 1, 1, tied_to=tied_to, root=prefix if root else "", moved=moved, renamed=renamed, own=own)
    return Data(Block(), (x, *reads), out.shape, prefix=prefix, bodies=(Body(use, inputs, out),), part=part)


class Experts(Operation):
    """The sum of the chosen experts' outputs, weighted by the router.

    Its second input: weights [n, experts], 0 if not chosen.
    """

    name: ClassVar[str] = "experts"
    sum: ClassVar[Stage] = Stage("sum of experts", "", Form.SUM_OF_EXPERTS)
    weighted: Literal["output", "input"] = "output"  # which of them the weight of an expert multiplies
    identities: Size = 0  # experts behind those with weights, which return their input
    parts: Literal["output", "input"] | None = None  # of whose last axis each chosen expert has its own part

    def list_saved(self, inputs: Sequence[Value]) -> Sequence[Value]:
        return inputs[1:]  # the experts save their own copies of the first

    def describe(self) -> str:
        if self.parts is None:
            return ""
        return "outputs side by side" if self.parts == "output" else "each reads its own part; weighted sum"


def experts(
    x: Data,
    scores: Data,
    prefix: str,
    count: Size,
    active: Size,
    body: Callable[[Data], Data],
    *,
    stacked: bool = False,
    merged: bool = False,
    at_least: Size | None = None,
    first: Size = 0,
    weighted: Literal["output", "input"] = "output",
    identities: Size = 0,
    shared: tuple[str, ...] = (),
) -> Data:
    """`count` experts with the same body, `active` of them per token.

    `at_least`: minimum number of active experts, if it varies. `stacked`: the checkpoint stores one tensor for all
    experts, with a leading expert axis. `merged`: stored as one tensor, concatenated along the first axis. `first`:
    index of the first expert. `identities`: further experts, which return their input and have no weights. `shared`:
    endings of the names of weights that all experts read.
    """
    inner = Data(INPUT, (), x.shape)
    out = body(inner)
    check_same_shape(x, out)
    repeat = Repeat(
        "expert", count, active, runs=((first, count),), stacked=stacked or merged, merged=merged, least=at_least,
        shared=shared,
    )  # fmt: skip
    return Data(
        Experts(weighted, identities), (x, scores), x.shape, prefix=prefix, bodies=(Body(repeat, (inner,), out),)
    )


def experts_apart(x: Data, scores: Data, prefix: str, count: Size, active: Size, body: Callable[[Data], Data]) -> Data:
    """The outputs of the chosen experts, not weighted, side by side along the last axis. Stored as one tensor."""
    inner = Data(INPUT, (), x.shape)
    out = body(inner)
    repeat = Repeat("expert", count, active, runs=((0, count),), stacked=True)
    shape = (*out.shape[:-1], out.shape[-1] * active)
    return Data(Experts(parts="output"), (x, scores), shape, prefix=prefix, bodies=(Body(repeat, (inner,), out),))


def experts_on_parts(
    x: Data, width: Size, scores: Data, prefix: str, count: Size, active: Size, body: Callable[[Data], Data]
) -> Data:
    """Each chosen expert reads its own part, of this width, of the last axis of x. Their weighted sum."""
    inner = Data(INPUT, (), (*x.shape[:-1], width))
    out = body(inner)
    repeat = Repeat("expert", count, active, runs=((0, count),), stacked=True)
    bodies = (Body(repeat, (inner,), out),)
    return Data(Experts(parts="input"), (x, scores), out.shape, prefix=prefix, bodies=bodies)


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
    return Data(Block(each), (x,), x.shape, prefix=prefix, bodies=(Body(repeat, (inner,), body(inner)),))


class Layers(Operation):
    """A stack of layers of one or several kinds."""

    only_moves: ClassVar[bool] = True
    name: ClassVar[str] = "layers"
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


class HiddenStates(Operation):
    """What goes into some of the layers of a stack, or comes out of the last, side by side. Its input: the stack."""

    only_moves: ClassVar[bool] = True
    name: ClassVar[str] = "hidden states"
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
