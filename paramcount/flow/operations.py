"""Operations: functions from Data to Data that hold the weights they read.

Input sizes come from the data, so no size is written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from paramcount.errors import ParamcountError
from paramcount.flow.graph import (
    Body,
    Data,
    Repeat,
    Size,
    Weight,
    Width,
    as_axes,
    check_same_shape,
    last_size,
    multiply,
)


def given(name: str, *shape: Size) -> Data:
    """An input of the model: token ids, pixels or audio frames."""
    return Data(name, (), shape)


def lookup(x: Data, name: str, component: str, rows: Size, width: Size, *, tied_to: str | None = None) -> Data:
    return Data("lookup", (x,), (*x.shape, width), (Weight(name, component, (rows, width), tied_to=tied_to),))


def linear(
    x: Data,
    name: str,
    component: str,
    width: Width,
    *,
    bias: bool = False,
    transposed: bool = False,
    tied_to: str | None = None,
) -> Data:
    """A linear layer over all axes but the first. The weight is stored as [out, in], or [in, out] if `transposed`."""
    out = as_axes(width)
    n, d_in = multiply(out), last_size(x)
    weight = Weight(name + ".weight", component, (d_in, n) if transposed else (n, d_in), (), 0, tied_to)
    return Data(
        "linear", (x,), x.shape[:1] + out, (weight, Weight(name + ".bias", component, (n,))) if bias else (weight,)
    )


def fused(
    x: Data,
    name: str,
    parts: Mapping[str, Width],
    *,
    bias: bool = False,
    transposed: bool = False,
    suffixes: tuple[str, str] = (".weight", ".bias"),
) -> tuple[Data, ...]:
    """The outputs of one fused linear layer, split into `parts` of {component: size}."""
    splits = tuple((component, multiply(as_axes(width))) for component, width in parts.items())
    n = splits[0][1]
    for _, width in splits[1:]:
        n = n + width
    d_in, first = last_size(x), splits[0][0]
    weights: tuple[Weight, ...] = (
        Weight(name + suffixes[0], first, (d_in, n) if transposed else (n, d_in), splits, int(transposed)),
    )
    if bias:
        weights += (Weight(name + suffixes[1], first, (n,), splits),)
    y = Data("linear", (x,), (*x.shape[:1], n), weights)
    return tuple(
        Data("split", (y,), x.shape[:1] + as_axes(width), detail=component) for component, width in parts.items()
    )


def norm(x: Data, name: str, *, bias: bool = False) -> Data:
    width = x.shape[-1:]
    weights: tuple[Weight, ...] = (Weight(name + ".weight", "norm", width),)
    if bias:
        weights += (Weight(name + ".bias", "norm", width),)
    return Data("norm", (x,), x.shape, weights)


def elementwise(x: Data, op: str, name: str, component: str, *shape: Size, role: str = "parameter") -> Data:
    """An element-wise operation with one weight, such as a gate or a routing bias."""
    return Data(op, (x,), x.shape, (Weight(name, component, shape, role=role),))


def activate(x: Data, name: str) -> Data:
    return Data(name, (x,), x.shape)


def rope(x: Data) -> Data:
    return Data("rope", (x,), x.shape)


def split(x: Data, *widths: Size) -> tuple[Data, ...]:
    return tuple(Data("split", (x,), (*x.shape[:-1], width)) for width in widths)


def join(a: Data, b: Data) -> Data:
    return Data("join", (a, b), (*a.shape[:-1], a.shape[-1] + b.shape[-1]))


def scale(x: Data, by: Data) -> Data:
    """x scaled per token, for example by a shared expert's gate."""
    if type(by.shape[-1]) is int and by.shape[-1] != 1:
        raise ParamcountError(f"shape {list(by.shape)} is not one number per row", where="scale")
    return Data("scale", (x, by), x.shape)


class AttentionDetail(NamedTuple):
    """Properties of an attention operation besides its shapes."""

    window: Size | None  # causal: tokens visible, itself included; else: tokens visible on either side
    cached: tuple[Data, ...]  # KV cache or recurrent state
    causal: bool  # whether a token sees no later tokens
    keeps_all: bool  # whether the KV cache keeps tokens outside of the window

    @property
    def trimmed_to(self) -> Size | None:
        """Tokens that the KV cache keeps at most, the newest included; None for all."""
        return None if self.keeps_all else self.window


def attend(
    q: Data,
    k: Data,
    v: Data,
    *,
    window: Size | None = None,
    cached: tuple[Data, ...] | None = None,
    sinks: Weight | None = None,
    causal: bool | None = None,
    keeps_all: bool = False,
) -> Data:
    """softmax(QKᵀ)·V as one operation; a trace expands it.

    `cached`: contents of the KV cache (default: k and v). `sinks`: one additional learned logit per head. `causal`:
    default is true for self-attention with a cache. `keeps_all`: the cache keeps tokens outside of the window.
    """
    kept = (k, v) if cached is None else cached
    detail = AttentionDetail(
        window, kept, bool(kept) and q.shape[0] is k.shape[0] if causal is None else causal, keeps_all
    )
    return Data("attend", (q, k, v), q.shape[:-1] + v.shape[-1:], (sinks,) if sinks else (), detail=detail)


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
) -> Data:
    """A named block.

    `part`: part of the model for its weights. `tied_to`: prefix of the block whose weights this one reuses. `root`: the
    block is a model of its own, so absolute weight names start at its prefix. `moved`: (old, new) prefixes to rename
    weights.
    """
    inputs = tuple(Data("input", (), r.shape) for r in (x, *reads))
    out = body(*inputs)
    use = Repeat("use", 1, 1, tied_to=tied_to, root=prefix if root else "", moved=moved)
    return Data("block", (x, *reads), out.shape, prefix=prefix, bodies=(Body(use, inputs, out),), part=part)


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
) -> Data:
    """`count` experts with the same body, `active` of them per token.

    `at_least`: minimum number of active experts, if it varies. `stacked`: the checkpoint stores one tensor for all
    experts, with a leading expert axis. `merged`: stored as one tensor, concatenated along the first axis. `first`:
    index of the first expert.
    """
    inner = Data("input", (), x.shape)
    out = body(inner)
    check_same_shape(x, out)
    repeat = Repeat(
        "expert", count, active, runs=((first, count),), stacked=stacked or merged, merged=merged, least=at_least
    )
    return Data("experts", (x, scores), x.shape, prefix=prefix, bodies=(Body(repeat, (inner,), out),))


def layers(
    x: Data,
    prefix: str,
    kinds: Iterable[tuple[Hashable, Size]],
    body: Callable[..., Any],
    *,
    reads: Sequence[Data] = (),
    carry: Sequence[Width] = (),
    first: Size = 0,
) -> Data:
    """A stack of layers; `body` declares each kind of layer once.

    `kinds`: ((kind, number of layers), ...) in order; kinds may recur. `reads`: further inputs of every layer, such as
    the encoder's output. `carry`: sizes of further values that each layer passes to the next. `first`: index of the
    first layer.
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
        inputs = tuple(Data("input", (), r.shape) for r in (x, *reads)) + tuple(
            Data("input", (), x.shape[:1] + as_axes(c)) for c in carry
        )
        out = body(kind, *inputs)
        if carry:
            out, *after = out
            for before, handed in zip(inputs[-len(carry) :], after, strict=True):
                check_same_shape(before, handed)
            out = Data("tuple", (out, *after), out.shape)
        check_same_shape(x, out)
        n = spans[0][1]
        for _, length in spans[1:]:
            n = n + length
        bodies.append(Body(Repeat("layer", n, n, kind, tuple(spans)), inputs, out))
    return Data("layers", (x, *reads), x.shape, prefix=prefix, bodies=tuple(bodies))
