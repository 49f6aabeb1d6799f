"""Data, the weights that operations read, and the repeats that they stand in."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
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
        return Data("add", (self, other), check_same_shape(self, other))

    def __mul__(self, other: Data) -> Data:
        return Data("multiply", (self, other), check_same_shape(self, other))

    def __repr__(self) -> str:
        return f"<{self.op} {list(self.shape)}>"


def check_same_shape(a: Data, b: Data) -> tuple[Size, ...]:
    """The shape that both have. Sizes that are not plain ints or words are believed."""
    if a.shape is b.shape:
        return a.shape
    if len(a.shape) != len(b.shape):
        raise ParamcountError(f"shape {list(a.shape)} meets {list(b.shape)}", where=b.op)
    for m, n in zip(a.shape, b.shape):
        if m is not n and type(m) in (int, str) and type(n) in (int, str) and m != n:
            raise ParamcountError(f"shape {list(a.shape)} meets {list(b.shape)}", where=b.op)
    return a.shape


def as_axes(width: Width) -> tuple[Size, ...]:
    return width if type(width) is tuple else (width,)


def multiply(sizes: Iterable[Size]) -> Size:
    n = 1
    for size in sizes:
        n = n * size
    return n


def last_size(x: Data) -> Size:
    """How many numbers stand behind the first axis: what a matrix over x reads."""
    return x.shape[1] if len(x.shape) == 2 else multiply(x.shape[1:])


class Unreachable(NamedTuple):
    """Parameters of a flow that the reference allocates and no forward pass reads. `of_lm_head`: no class without an LM head has them."""

    flow: Data
    reason: str
    of_lm_head: bool = False
