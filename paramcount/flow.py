"""The forward pass in shapes: data flows through operations, an operation holds the weights it reads.

Everything else in the package is a reading of this: counts read the weights, traces read the operations.
A declaration only adds, subtracts and multiplies sizes, so it serves ints, int64 arrays and symbols alike.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from paramcount.errors import ParamcountError

Size: TypeAlias = Any  # an int, an int64 array or a symbol; of a data shape's first axes also a word: "tokens"
Width: TypeAlias = Any  # a Size, or a tuple of them: (n_heads, d_head)


class Weight(NamedTuple):
    """One weight as an operation reads it. `name` is relative to the block it stands in; "/x" is a name from the root."""

    name: str
    component: str
    shape: tuple[Size, ...]  # as stored
    splits: tuple[tuple[str, Size], ...] = ()  # what a fused matrix is made of, along `axis`
    axis: int = 0
    tied_to: str | None = None
    role: str = "parameter"  # parameter | buffer


class Repeat(NamedTuple):
    """How often a body stands in its place, and how much of it one token uses."""

    axis: str  # layer | expert | use
    count: Size
    active: Size
    kind: Hashable = ""
    runs: tuple[tuple[Size, Size], ...] = ()  # (first index, how many), in order
    stacked: bool = False  # stored as one tensor with this axis in front
    tied_to: str | None = None  # a second use: everything below is tied to this prefix
    least: Size | None = None  # what one token uses at least, where that varies
    root: str = ""  # a model inside the model: what its names have before them, those from its own root too
    merged: bool = False  # stacked, but into the first axis instead of in front of it
    moved: tuple[str, str] | None = None  # names that begin with the first, begin with the second instead

    @property
    def label(self) -> str:
        """Its kind for people.

        >>> Repeat("layer", 3, 3, ("full_attention", "moe")).label
        'full_attention moe'
        """
        kind = self.kind
        if isinstance(kind, tuple):
            names = getattr(kind, "_fields", None)
            return " ".join(f"{name} {value}" for name, value in zip(names, kind)) if names else " ".join(map(str, kind))
        return str(kind)

    @property
    def indices(self) -> tuple[int, ...]:
        """Which of them, counted from 0 in the checkpoint."""
        return tuple(first + i for first, length in self.runs for i in range(length))


class Body(NamedTuple):
    """What stands inside an operation: a layer of each kind, an expert, a named block."""

    repeat: Repeat
    inputs: tuple[Data, ...]
    out: Data


class Data:
    """What flows: its shape, the operation it came out of, and what that operation read."""

    # Most operations hold nothing but weights: what few of them have stands here once.
    prefix: str = ""
    bodies: tuple[Body, ...] = ()
    part: str | None = None
    detail: Any = None

    def __init__(self, op: str, inputs: tuple[Data, ...], shape: tuple[Size, ...], weights: tuple[Weight, ...] = (), **more: Any) -> None:
        self.op, self.inputs, self.shape, self.weights = op, inputs, shape, weights
        if more:
            self.__dict__.update(more)

    def __add__(self, other: Data) -> Data:
        return Data("add", (self, other), same(self, other))

    def __mul__(self, other: Data) -> Data:
        return Data("multiply", (self, other), same(self, other))

    def __repr__(self) -> str:
        return f"<{self.op} {list(self.shape)}>"


def same(a: Data, b: Data) -> tuple[Size, ...]:
    """The shape that both have. Sizes that are not plain ints or words are believed."""
    if a.shape is b.shape:
        return a.shape
    if len(a.shape) != len(b.shape):
        raise ParamcountError(f"shape {list(a.shape)} meets {list(b.shape)}", where=b.op)
    for m, n in zip(a.shape, b.shape):
        if m is not n and type(m) in (int, str) and type(n) in (int, str) and m != n:
            raise ParamcountError(f"shape {list(a.shape)} meets {list(b.shape)}", where=b.op)
    return a.shape


def axes(width: Width) -> tuple[Size, ...]:
    return width if type(width) is tuple else (width,)


def product(sizes: Iterable[Size]) -> Size:
    n = 1
    for size in sizes:
        n = n * size
    return n


def width_of(x: Data) -> Size:
    """How many numbers stand behind the first axis: what a matrix over x reads."""
    return x.shape[1] if len(x.shape) == 2 else product(x.shape[1:])


# ---- operations: an input width is read off the data, so it is never written twice


def given(name: str, *shape: Size) -> Data:
    """Data from outside: token ids, pixels, an encoder's input."""
    return Data(name, (), shape)


def lookup(x: Data, name: str, component: str, rows: Size, width: Size, *, tied_to: str | None = None) -> Data:
    return Data("lookup", (x,), (*x.shape, width), (Weight(name, component, (rows, width), tied_to=tied_to),))


def linear(x: Data, name: str, component: str, width: Width, *, bias: bool = False, transposed: bool = False, tied_to: str | None = None) -> Data:
    """A matrix over everything behind the first axis, stored [out, in] (`transposed`: [in, out])."""
    out = axes(width)
    n, d_in = product(out), width_of(x)
    weight = Weight(name + ".weight", component, (d_in, n) if transposed else (n, d_in), (), 0, tied_to)
    return Data("linear", (x,), x.shape[:1] + out, (weight, Weight(name + ".bias", component, (n,))) if bias else (weight,))


def fused(
    x: Data, name: str, parts: Mapping[str, Width], *, bias: bool = False, transposed: bool = False, suffixes: tuple[str, str] = (".weight", ".bias")
) -> tuple[Data, ...]:
    """One stored matrix, several outputs: {component: width}."""
    splits = tuple((component, product(axes(width))) for component, width in parts.items())
    n = splits[0][1]
    for _, width in splits[1:]:
        n = n + width
    d_in, first = width_of(x), splits[0][0]
    weights: tuple[Weight, ...] = (Weight(name + suffixes[0], first, (d_in, n) if transposed else (n, d_in), splits, int(transposed)),)
    if bias:
        weights += (Weight(name + suffixes[1], first, (n,), splits),)
    y = Data("linear", (x,), (*x.shape[:1], n), weights)
    return tuple(Data("split", (y,), x.shape[:1] + axes(width), detail=component) for component, width in parts.items())


def norm(x: Data, name: str, *, bias: bool = False) -> Data:
    width = x.shape[-1:]
    weights: tuple[Weight, ...] = (Weight(name + ".weight", "norm", width),)
    if bias:
        weights += (Weight(name + ".bias", "norm", width),)
    return Data("norm", (x,), x.shape, weights)


def weigh(x: Data, op: str, name: str, component: str, *shape: Size, role: str = "parameter") -> Data:
    """x through an operation that holds one weight and keeps the shape: a gate, a sink, a correction."""
    return Data(op, (x,), x.shape, (Weight(name, component, shape, role=role),))


def act(x: Data, name: str) -> Data:
    return Data(name, (x,), x.shape)


def rope(x: Data) -> Data:
    return Data("rope", (x,), x.shape)


def split(x: Data, *widths: Size) -> tuple[Data, ...]:
    return tuple(Data("split", (x,), (*x.shape[:-1], width)) for width in widths)


def join(a: Data, b: Data) -> Data:
    return Data("join", (a, b), (*a.shape[:-1], a.shape[-1] + b.shape[-1]))


def scale(x: Data, by: Data) -> Data:
    """x times one number per row: a shared expert's gate."""
    if type(by.shape[-1]) is int and by.shape[-1] != 1:
        raise ParamcountError(f"shape {list(by.shape)} is not one number per row", where="scale")
    return Data("scale", (x, by), x.shape)


class Attending(NamedTuple):
    """What a reader of `attend` wants to know besides its shapes."""

    window: Size | None  # how far back a token looks, itself counted; both ways where that is not causal, itself not counted
    cached: tuple[Data, ...]  # what is kept for later tokens
    causal: bool  # whether a token sees none that come after it
    keeps_all: bool  # whether what no window reaches any more is kept too

    @property
    def trimmed_to(self) -> Size | None:
        """How many tokens are there for the newest one, itself among them; None for all."""
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
    """softmax(QKᵀ)·V in one operation, which a trace unfolds. `cached`: keys and values unless given. `sinks`: a learned logit for
    each head that the softmax sees beside the tokens'. `causal`: where a text looks at itself and keeps something, unless given.
    `keeps_all`: also what has fallen out of the window."""
    kept = (k, v) if cached is None else cached
    detail = Attending(window, kept, bool(kept) and q.shape[0] is k.shape[0] if causal is None else causal, keeps_all)
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
    """A named block. `part`: the part of the model it stands for. `tied_to`: it is a second use of the block under that prefix.
    `root`: it is a model of its own, whose names from the root have the prefix before them too. `moved`: of those that begin with the
    first, the beginning is the second."""
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
    """`count` equal bodies of which a token visits `active`; where that varies, at most `active` and `at_least` so many.
    `stacked`: the checkpoint holds one tensor for all, with an axis for the experts in front. `merged`: joined along the first axis.
    `first`: the first expert's index."""
    inner = Data("input", (), x.shape)
    out = body(inner)
    same(x, out)
    repeat = Repeat("expert", count, active, runs=((first, count),), stacked=stacked or merged, merged=merged, least=at_least)
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
    """A stack of layers; a layer of each kind is written once.

    `kinds`: ((kind, how many), ...) in order, a kind may recur. `reads`: outside data that every layer takes (an
    encoder's output). `carry`: widths of what one layer hands to the next beside x. `first`: the first layer's index.
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
        inputs = tuple(Data("input", (), r.shape) for r in (x, *reads)) + tuple(Data("input", (), x.shape[:1] + axes(c)) for c in carry)
        out = body(kind, *inputs)
        if carry:
            out, *after = out
            for before, handed in zip(inputs[-len(carry) :], after, strict=True):
                same(before, handed)
            out = Data("hand on", (out, *after), out.shape)
        same(x, out)
        n = spans[0][1]
        for _, length in spans[1:]:
            n = n + length
        bodies.append(Body(Repeat("layer", n, n, kind, tuple(spans)), inputs, out))
    return Data("layers", (x, *reads), x.shape, prefix=prefix, bodies=tuple(bodies))


class Unreachable(NamedTuple):
    """Parameters of a flow that the reference allocates and no forward pass reads. `of_lm_head`: no class without an LM head has them."""

    flow: Data
    reason: str
    of_lm_head: bool = False


# ---- readings


Step: TypeAlias = tuple[Data, str, tuple[Repeat, ...], str]  # an operation, its name prefix, the repeats it stands under, its part
Held: TypeAlias = tuple[str, Weight, str | None, tuple[Repeat, ...], str]  # full name, weight, what it is tied to, repeats, part


def steps(out: Data, part: str = "decoder") -> list[Step]:
    """Every operation that leads to `out`, in the order it runs, bodies behind the operation that holds them.

    Raises: ParamcountError where a body uses data of another one: it would be counted again in each of them, so it has to be
    read or carried.
    """
    found: list[Step] = []
    seen: set[int] = set()

    def visit(data: Data, prefix: str, repeats: tuple[Repeat, ...], part: str, inputs: tuple[Data, ...] | None) -> None:
        seen.add(id(data))
        for before in data.inputs:
            if id(before) not in seen:
                visit(before, prefix, repeats, part, inputs)
        if inputs is not None and not data.inputs and data not in inputs:
            raise ParamcountError(f"a body uses {data!r} from outside", accepted="what it takes through `reads` or `carry`")
        found.append((data, prefix, repeats, part))
        for repeat, inner, body in data.bodies:
            visit(body, prefix + data.prefix, (*repeats, repeat), data.part or part, inner)

    visit(out, "", (), part, None)
    return found


def weights(out: Data, part: str = "decoder") -> list[Held]:
    """Every weight that leads to `out`, in the order it is read."""
    return [
        (*placed(weight, prefix, repeats), repeats, where)  # its full name first
        for data, prefix, repeats, where in steps(out, part)
        for weight in data.weights
    ]


def placed(weight: Weight, prefix: str, repeats: tuple[Repeat, ...]) -> tuple[str, Weight, str | None]:
    """A weight of an operation that stands there: its full name, itself, the full name of what it is tied to."""
    name, tied = weight.name, weight.tied_to
    if tied is None and name[0] != "/":  # what stands outside its block is not tied with it
        for repeat in repeats:
            if repeat.tied_to:
                tied = repeat.tied_to + name
                break
    root = "".join([repeat.root for repeat in repeats]) if name[0] == "/" or tied is not None else ""
    full, tied = root + name[1:] if name[0] == "/" else prefix + name, tied and root + tied
    for repeat in repeats:
        if repeat.moved:
            full, tied = renamed(full, *repeat.moved), tied and renamed(tied, *repeat.moved)
    return full, weight, tied


def renamed(name: str, old: str, new: str) -> str:
    return new + name.removeprefix(old) if name.startswith(old) else name


def parameters(out: Data, *components: str, active: bool = False) -> Size:
    """Learned parameters that lead to `out`: all, or those of these components; with `active`, those that one token uses."""
    total: Size = 0
    for _, weight, tied_to, repeats, _ in weights(out):
        if weight.role != "parameter" or tied_to is not None:
            continue
        times = product(r.active if active else r.count for r in repeats)
        if not components:
            total = total + product(weight.shape) * times
            continue
        across = weight.shape[: weight.axis] + weight.shape[weight.axis + 1 :]
        for name, width in weight.splits or ((weight.component, weight.shape[weight.axis]),):
            if name in components or name.partition(".")[0] in components:
                total = total + product(across) * width * times
    return total
