"""What every operation states: its parameters, its name, how to compute it, and its cost."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias, TypeVar, dataclass_transform

from paramcount.errors import ParamcountError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]
else:

    class _NumPy:
        """NumPy, imported when an operation is computed: counting needs none."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            return getattr(numpy, name)

    np = _NumPy()
    Array: TypeAlias = Any

Shape: TypeAlias = tuple[int, ...]
Value = TypeVar("Value")

__all__ = [
    "NOT_DESCRIBED", "Array", "Form", "Move", "Operation", "Pass", "Shape", "Stage", "Unknown", "Value", "is_known",
    "np", "require",
]  # fmt: skip

NOT_DESCRIBED = "not described"


class Unknown:
    """A setting that nothing states, such as the activation of a zoo entry without settings."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<unknown {self.name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unknown)

    def __hash__(self) -> int:
        return hash(Unknown)

    def __neg__(self) -> Unknown:
        return self


def is_known(*values: object) -> bool:
    return not any(isinstance(value, Unknown) for value in values)


def require(value: Any) -> Any:
    """The value of a setting.

    Raises: ParamcountError if it is unknown.
    """
    if isinstance(value, Unknown):
        raise ParamcountError(
            f"the setting {value.name} is unknown",
            expected="a config.json, or a zoo entry whose `settings` state it",
        )
    return value


class Form(Enum):
    """What a step is to a reader who cares for more than its name: how it is drawn, and what it belongs to."""

    PLAIN = auto()  # its name, with its weights
    LINEAR = auto()  # data times a matrix
    LINEAR_PER_HEAD = auto()
    LOOKUP = auto()
    CONVOLUTION = auto()
    SUM = auto()
    DIFFERENCE = auto()
    PRODUCT = auto()
    CONCATENATION = auto()
    SPLIT = auto()
    RESHAPE = auto()
    SCORES = auto()  # of attention
    MASK = auto()
    ATTENTION_WEIGHTS = auto()
    WEIGHTED_VALUES = auto()
    KV_CACHE = auto()
    STATE_SPACE = auto()  # a recurrent state
    LINEAR_ATTENTION = auto()  # likewise
    SUM_OF_EXPERTS = auto()
    LAST_POSITION = auto()


class Stage(NamedTuple):
    """What a trace shows as one step: an operation, or a part of one that computes several things in turn."""

    label: str
    note: str = ""
    form: Form = Form.PLAIN


class Pass(Protocol):
    """What an operation may know of the forward pass besides its inputs and weights."""

    positions: Array  # of the new tokens, int64 [n]
    layer: int  # index of the innermost layer; 0 outside of layers
    state: dict[str, Array]  # what this operation keeps for later tokens; empty before the first


@dataclass_transform(frozen_default=True)
class Parameters:
    """A value made of named parameters, which are the fields of a subclass; its header sets what else the class states:
    `class Clip(Operation, name="clip")`.
    """

    fields: ClassVar[tuple[str, ...]] = ()  # names of its parameters
    required: ClassVar[frozenset[str]] = frozenset()  # those without a default

    def __init_subclass__(cls, **facets: object) -> None:
        for facet, value in facets.items():
            if not hasattr(cls, facet):
                raise TypeError(f"{cls.__name__}: no class before it has {facet}")
            setattr(cls, facet, value)
        own = (name for name, kind in cls.__annotations__.items() if not str(kind).startswith("ClassVar"))
        cls.fields = (*cls.fields, *own)
        cls.required = frozenset(name for name in cls.fields if not hasattr(cls, name))

    def __init__(self, *values: Any, **named: Any) -> None:
        # Not a dataclass: generating the methods of all operations would take a tenth of the time of a count.
        named.update(zip(self.fields, values, strict=False))
        if not self.required <= named.keys() <= set(self.fields) or len(values) > len(self.fields):
            raise TypeError(f"{type(self).__name__} takes {', '.join(self.fields)}")
        self.__dict__.update(named)

    def with_changes(self, **changes: Any) -> Self:
        """The same with these parameters."""
        return type(self)(**{**vars(self), **changes})

    def fill_in(self, text: str, plain: str = "") -> str:
        """A text with the parameters in it; the plain one if any of them is unknown."""
        values = {name: getattr(self, name) for name in self.fields if "{" + name in text}
        return text.format(**values) if is_known(*values.values()) else plain


class Operation(Parameters):
    """One kind of step of a forward pass. The fields of a subclass are its parameters.

    Shapes and weights are those of the `Data` that it returns; the function beside each class builds both. Texts may
    contain parameters: "at {cap:g}".
    """

    name: ClassVar[str] = ""  # in traces and drawings
    phrase: ClassVar[str] = ""  # what it does, for a trace; "" if its name says all
    plain: ClassVar[str] = ""  # the same if a parameter in it is unknown
    state: ClassVar[tuple[str, ...]] = ()  # the parameters that are the shape of what it keeps for later tokens
    form: ClassVar[Form] = Form.PLAIN
    named_by_weights: ClassVar[bool] = False  # "queries" rather than "linear"
    reads_only_lengths: ClassVar[bool] = False  # of its inputs, so that it is equal for all texts of a length
    only_moves: ClassVar[bool] = False  # its output holds values of its inputs or weights: it computes none
    saves_inputs: ClassVar[bool] = True  # for the backward pass, if it computes: False if it is linear in them
    of_prompt: ClassVar[bool] = False  # what it adds to its first input came with the prompt
    needs: ClassVar[int | None] = None  # how many of its inputs it needs; the others may be missing. None: all
    runs: ClassVar[bool] = True  # whether `compute` exists
    row_axis: ClassVar[int] = 0  # of its first input: along which its tokens lie
    state_in_float32: ClassVar[bool] = False  # whether its state is, in the reference, whatever the model's dtype

    @property
    def label(self) -> str:
        """Its name with what distinguishes it from others of its class: "silu" rather than "activation"."""
        return self.fill_in(self.name)

    @property
    def state_shapes(self) -> tuple[tuple[Any, ...], ...]:
        """Shapes of what it keeps for later tokens, if their size does not depend on the number of tokens."""
        return (tuple(getattr(self, name) for name in self.state),) if self.state else ()

    def describe(self) -> str:
        """Its phrase, with its parameters."""
        return self.fill_in(self.phrase, self.plain)

    def multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape) -> int:
        """Multiply-adds of its matrix products; a FLOP count is twice that."""
        return 0

    def visible_multiply_adds(self, inputs: Sequence[Shape], weights: Sequence[Shape], out: Shape, end: int) -> int:
        """The same without the pairs of a query and a key that a mask hides: a kernel may skip them.

        `end`: the position behind the last row.
        """
        return self.multiply_adds(inputs, weights, out)

    def list_saved(self, inputs: Sequence[Value]) -> Sequence[Value]:
        """The inputs whose values the backward pass needs."""
        return inputs if self.saves_inputs and not self.only_moves else ()

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        """Its output. All arrays are float32, or int64 for ids; `shape`: of the output.

        Raises: ParamcountError for a setting that is unknown.
        """
        raise NotImplementedError(self.label)


class Move(Operation):
    """A step whose output holds values of its inputs or weights: it computes none."""

    only_moves: ClassVar[bool] = True
