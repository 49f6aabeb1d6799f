"""The data flow graph: Data, the Weights that operations read, and Repeats (layers, experts, reused blocks)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import update_wrapper
from itertools import chain
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec, Protocol, TypeAlias, overload

from paramcount.errors import ParamcountError
from paramcount.flow.operation import NOT_DESCRIBED, Array, Form, Operation, Pass, Shape

Size: TypeAlias = Any  # an int, an int64 array or a symbol; the first axis of data may be a string: "tokens"
Width: TypeAlias = Any  # a Size, or a tuple of them: (n_heads, d_head)


class Weight(NamedTuple):
    """One weight of an operation. `name` is relative to the enclosing block; "/x" is an absolute name."""

    name: str
    component: str
    shape: tuple[Size, ...]  # as stored
    splits: tuple[tuple[str, Size], ...] = ()  # (component, size) of each part of a fused matrix along `axis`
    axis: int = 0
    tied_to: str | None = None
    role: str = "parameter"  # parameter | buffer
    is_shared: bool = False  # all experts read it: there is one


# One tensor for each copy; or one for all, with an axis of the copies in front, or concatenated along the first axis.
Stored: TypeAlias = Literal["apart", "stacked", "merged"]


class Repeat(NamedTuple):
    """How many copies of a body there are, and how many of them are active."""

    axis: str  # layer | expert | head | stream; of a named block, which is there once: block
    count: Size
    active: Size
    kind: Hashable = ""
    runs: tuple[tuple[Size, Size], ...] = ()  # (first index, length), in order
    stored: Stored = "apart"
    least: Size | None = None  # minimum of `active`, if it varies
    stack: str = ""  # of layers: the prefix of their names, such as "model.layers."

    @property
    def merged(self) -> bool:
        """Whether all copies are stored as one tensor, concatenated along its first axis."""
        return self.stored == "merged"

    @property
    def label(self) -> str:
        """Its kind as text.

        >>> Repeat("layer", 3, 3, ("full_attention", "moe")).label
        'full_attention moe'
        """
        kind = self.kind
        if isinstance(kind, tuple):
            names = getattr(kind, "_fields", None)
            return (
                " ".join(f"{name} {value}" for name, value in zip(names, kind)) if names else " ".join(map(str, kind))
            )
        return str(kind)

    @property
    def indices(self) -> tuple[int, ...]:
        """The indices in the checkpoint."""
        return tuple(chain.from_iterable(range(first, first + length) for first, length in self.runs))

    def to_dict(self) -> dict[str, Any]:
        """The repeat as plain data for JSON: `runs` are [first index, number] pairs."""
        runs = [list(run) for run in self.runs]
        return {"axis": self.axis, "count": self.count, "active": self.active, "kind": self.label, "runs": runs}

    def count_inside(self, layers: range) -> int:
        """How many of its indices are in a range, however long its runs are."""
        ends = ((max(first, layers.start), min(first + length, layers.stop)) for first, length in self.runs)
        return sum(max(0, stop - start) for start, stop in ends)


class Tie(NamedTuple):
    """The weights inside a block are those of another one."""

    prefix: str  # of the other block
    own: tuple[str, ...] = ()  # endings of the names of weights that are not tied


class Renaming(NamedTuple):
    """The names of the weights inside a block are others than it declares."""

    root: str = ""  # prefix of a nested model, also applied to absolute names
    moved: tuple[str, str] | None = None  # (old, new) prefixes
    replaced: tuple[tuple[str, str], ...] = ()  # (old, new) parts


class Body(NamedTuple):
    """The inside of an operation: one kind of layer, an expert or a named block."""

    repeat: Repeat
    inputs: tuple[Data, ...]
    out: Data
    tie: Tie | None = None
    renaming: Renaming | None = None


ONCE = Repeat("block", 1, 1)


class Undescribed(Operation, name="{text}", phrase=NOT_DESCRIBED, runs=False):
    """A step of which only the shapes are declared."""

    text: str
    states: tuple[tuple[Size, ...], ...] = ()
    of_prompt: bool = False  # type: ignore[misc]  # a parameter here alone

    @property
    def state_shapes(self) -> tuple[tuple[Size, ...], ...]:
        return self.states


class Add(Operation, name="add", form=Form.SUM, saves_inputs=False):
    """The sum of two values, such as a residual connection."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0] + inputs[1]


class Multiply(Operation, name="multiply", phrase="element-wise", form=Form.PRODUCT):
    """The element-wise product of two values."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0] * inputs[1]


ADD, MULTIPLY = Add(), Multiply()


class Data:
    """A value in the forward pass: its shape, the operation that returns it, and its inputs and weights."""

    __slots__ = ("bodies", "earlier", "inputs", "operation", "part", "prefix", "shape", "weights")

    def __init__(
        self,
        operation: Operation | str,
        inputs: tuple[Data, ...],
        shape: tuple[Size, ...],
        weights: tuple[Weight, ...] = (),
        *,
        prefix: str = "",
        bodies: tuple[Body, ...] = (),
        part: str | None = None,
    ) -> None:
        self.operation = Undescribed(operation) if isinstance(operation, str) else operation
        self.inputs, self.shape, self.weights = inputs, shape, weights
        self.prefix, self.bodies, self.part = prefix, bodies, part
        self.earlier: tuple[Data, ...] = ()  # listed after its inputs, although it does not read them

    def __add__(self, other: Data) -> Data:
        return Data(ADD, (self, other), check_same_shape(self, other))

    def __mul__(self, other: Data) -> Data:
        return Data(MULTIPLY, (self, other), check_same_shape(self, other))

    def __repr__(self) -> str:
        return f"<{self.operation.label} {list(self.shape)}>"


def check_same_shape(a: Data, b: Data) -> tuple[Size, ...]:
    """The shape of both. Only ints and strings are compared; arrays and symbols are assumed to match."""
    if a.shape is b.shape:
        return a.shape
    if len(a.shape) != len(b.shape):
        raise ParamcountError(f"shape {list(a.shape)} meets {list(b.shape)}", where=b.operation.label)
    for m, n in zip(a.shape, b.shape):
        if m is not n and type(m) in (int, str) and type(n) in (int, str) and m != n:
            raise ParamcountError(f"shape {list(a.shape)} meets {list(b.shape)}", where=b.operation.label)
    return a.shape


def as_axes(width: Width) -> tuple[Size, ...]:
    return width if type(width) is tuple else (width,)


def multiply(sizes: Iterable[Size]) -> Size:
    n = 1
    for size in sizes:
        n = n * size
    return n


def last_size(x: Data) -> Size:
    """The elements per token: the input size of a linear layer over x."""
    return x.shape[1] if len(x.shape) == 2 else multiply(x.shape[1:])


class Unreachable(NamedTuple):
    """Parameters that the reference allocates and no forward pass reads.

    `of_lm_head`: only classes with an LM head have them.
    """

    flow: Data
    reason: str
    of_lm_head: bool = False


def elementwise(x: Data, op: str, name: str, component: str, *shape: Size, role: str = "parameter") -> Data:
    """An element-wise step with one weight that is not described, such as a separator."""
    return Data(op, (x,), x.shape, (Weight(name, component, shape, role=role),))


_P = ParamSpec("_P")
_Builds1: TypeAlias = Callable[Concatenate[Data, _P], Data]
_Builds2: TypeAlias = Callable[Concatenate[Data, Data, _P], Data]


class StepMaker(Protocol):
    """What makes of a function of arrays the function that declarations call with data."""

    @overload
    def __call__(self, compute: Callable[Concatenate[Pass, Array, Array, _P], Array], /) -> _Builds2[_P]: ...
    @overload
    def __call__(self, compute: Callable[Concatenate[Pass, Array, _P], Array], /) -> _Builds1[_P]: ...
    @overload
    def __call__(self, compute: Callable[Concatenate[Array, Array, _P], Array], /) -> _Builds2[_P]: ...
    @overload
    def __call__(self, compute: Callable[Concatenate[Array, _P], Array], /) -> _Builds1[_P]: ...


def make_step(
    name: str,
    base: type[Operation] = Operation,
    *,
    shape: Callable[..., tuple[Size, ...]] | None = None,
    **facets: object,
) -> StepMaker:
    """An operation without weights, as the function that computes it: of the pass, if it is a `Pass`, of its inputs,
    which are arrays, and of its parameters. Declarations call it with data and parameters.

    `shape`: of the output, from what a declaration gives; default: that of the first input.
    """

    def make(function: Callable[..., Array]) -> Callable[..., Data]:
        arguments = {name: kind for name, kind in function.__annotations__.items() if name != "return"}
        reads_pass, n_inputs = "Pass" in arguments.values(), list(arguments.values()).count("Array")
        fields = {name: kind for name, kind in arguments.items() if kind not in ("Pass", "Array")}
        positional = function.__code__.co_varnames[: function.__code__.co_argcount]
        defaults = dict(zip(positional[::-1], (function.__defaults__ or ())[::-1])) | (function.__kwdefaults__ or {})

        def compute(self: Operation, run: Pass, inputs: Sequence[Array], weights: object, shape: object) -> Array:
            values = {name: getattr(self, name) for name in fields}
            return function(run, *inputs, **values) if reads_pass else function(*inputs, **values)

        names = {"__module__": function.__module__, "__qualname__": function.__qualname__, "__doc__": function.__doc__}
        body = {**names, **defaults, "__annotations__": fields, "compute": compute}
        kind = type(function.__name__, (base,), body, name=name, **facets)

        def build(*given: Any, **named: Any) -> Data:
            inputs = given[:n_inputs]
            out = inputs[0].shape if shape is None else shape(*given, **named)
            return Data(kind(*given[n_inputs:], **named), inputs, out)

        return update_wrapper(build, function)

    return make
