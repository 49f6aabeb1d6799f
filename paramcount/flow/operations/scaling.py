"""Multiplications and additions of constants, of learned values, and of factors that grow with the position."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, ClassVar, Literal

from paramcount.errors import ParamcountError
from paramcount.flow.graph import Data, Size, Weight, make_step
from paramcount.flow.operation import Array, Form, Operation, Pass, Shape, Unknown, is_known, np, require
from paramcount.flow.operations.elementwise import FUNCTIONS, Rescaling, sigmoid

# ---- one factor per token


class ScalePerToken(Operation, name="scale", phrase="scaled per token", form=Form.PRODUCT):
    """x times one number per token, such as a shared expert's gate."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0] * inputs[1]


def scale(x: Data, by: Data) -> Data:
    if type(by.shape[-1]) is int and by.shape[-1] != 1:
        raise ParamcountError(f"shape {list(by.shape)} is not one number per row", where="scale")
    return Data(ScalePerToken(), (x, by), x.shape)


@make_step("project", phrase="the part along a vector of length 1", form=Form.PRODUCT)
def project_onto(x: Array, unit: Array) -> Array:
    """The part of each vector x along a vector y of length 1: (x · y) y."""
    return np.asarray((x * unit).sum(-1, keepdims=True) * unit)


# ---- constants


class Scale(Rescaling, name="{text}", saves_inputs=False):
    """x times a constant, plus a constant."""

    factor: float | Unknown
    shift: float = 0.0
    text: str = "scale"  # in traces: "times √d_model"

    def describe(self) -> str:
        if not is_known(self.factor):
            return "times a constant"
        if self.factor == 1 and self.shift:
            return ""
        return f"× {self.factor:g}" + (f" + {self.shift:g}" if self.shift else "")

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        y: Array = inputs[0] * np.float32(require(self.factor))
        return y + np.float32(self.shift) if self.shift else y


def scale_by(x: Data, factor: float | Unknown, text: str = "scale", *, shift: float = 0.0) -> Data:
    """x times a constant. A factor of exactly 1 is no step."""
    is_same = type(factor) in (int, float) and factor == 1 and not shift
    return x if is_same else Data(Scale(factor, shift, text), (x,), x.shape)


@make_step("{text}", Rescaling, saves_inputs=False)
def scale_by_root(
    x: Array, size: int, text: str = "times √d_model", *, inverse: bool = False, over: int = 1, rounded: bool = False
) -> Array:
    """x times √(size / over), or one over it. `rounded`: the root, to bfloat16."""
    root: Any = np.float32(sqrt(size / over))
    if rounded:
        bits = int(root.view(np.uint32))  # the nearest float32 with 16 zero bits; ties to even
        root = np.uint32((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).view(np.float32)
    return np.asarray(x / root if inverse else x * root)


class ScaleByDepth(Rescaling, name="depth scale", saves_inputs=False):
    """Of the i-th addition to the residual stream: the residual times √((i − 1) / i), or the update times 1 / √i."""

    of: Literal["residual", "update"]
    addition: int  # of the two additions of a layer, the first or the second; before the first layer is one, too

    def describe(self) -> str:
        return "× √((i − 1) / i)" if self.of == "residual" else "× 1 / √i, for the i-th addition"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        i = 2 * run.layer + 1 + self.addition
        return inputs[0] * np.float32(sqrt((i - 1 if self.of == "residual" else 1) / i))


def add_by_depth(x: Data, y: Data, addition: int) -> Data:
    """x + y, scaled so that the sum keeps its magnitude. `addition`: 1 or 2, of a layer."""
    x = Data(ScaleByDepth("residual", addition), (x,), x.shape)
    return x + Data(ScaleByDepth("update", addition), (y,), y.shape)


class TokenDropout(Rescaling, name="token dropout", saves_inputs=False):
    """Vectors of tokens, whose ids are the second input: those of masked tokens are 0, the others as large as if the
    usual share were masked."""

    masked_id: int | Unknown
    share: float  # of tokens that are usually masked

    def describe(self) -> str:
        return f"masked tokens are 0, the others × {1 - self.share:g} / (share of unmasked tokens)"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        x, ids = inputs
        is_masked = ids == require(self.masked_id)
        factor = np.float32((1 - self.share) / (1 - is_masked.mean()))
        return np.where(is_masked[:, None], np.float32(0), x * factor)


def scale_unmasked(x: Data, tokens: Data, masked_id: int | Unknown, share: float) -> Data:
    return Data(TokenDropout(masked_id, share), (x, tokens), x.shape)


# ---- learned values


class LearnedSum(Operation, name="add bias", form=Form.SUM, saves_inputs=False):
    """x plus or minus a learned value."""


class AddVector(LearnedSum):
    """x plus a learned vector."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0] + fit_vector(weights[0], inputs[0])


class SubtractVector(LearnedSum, name="subtract"):
    """x minus a learned vector."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0] - fit_vector(weights[0], inputs[0])


class AddPerHead(LearnedSum):
    """x, [n, heads, d], plus a learned value per head."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0] + weights[0][:, None]


class AddPositions(LearnedSum, name="position embedding", phrase="adds one learned vector per position"):
    """x plus one learned vector per row."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        table = weights[0].reshape(-1, *x.shape[1:])
        if len(table) != len(x):
            raise ParamcountError(f"{len(x):,} positions", where="pixels", expected=f"{len(table):,}")
        return x + table


class MultiplyVector(Rescaling, name="scale"):
    """x times a function of a learned vector or scalar."""

    function: str = "linear"  # its name in config.json

    def describe(self) -> str:
        return f"times {'a' if self.function == 'linear' else f'{self.function} of a'} learned vector"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0] * fit_vector(FUNCTIONS[self.function][1](weights[0]), inputs[0])


class MultiplyPerHead(Rescaling, name="scale"):
    """x, [n, heads, d], times a function of a learned value per head."""

    function: str = "linear"

    def describe(self) -> str:
        return f"times {'a' if self.function == 'linear' else f'{self.function} of a'} learned value per head"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return inputs[0] * FUNCTIONS[self.function][1](weights[0])[:, None]


class ScaleByGate(Rescaling, name="scale"):
    """x times g, the sigmoid of a learned vector / temperature; or times √(1 − g²), so that the sum with g times
    another vector keeps its magnitude."""

    temperature: float | Unknown
    complement: bool = False
    least: float = 0.0  # of 1 − g²

    def describe(self) -> str:
        return f"times {'√(1 − sigmoid²)' if self.complement else 'sigmoid'} of a learned vector"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        gate = sigmoid(weights[0] / np.float32(require(self.temperature)))
        if self.complement:
            gate = np.sqrt(np.maximum((1 - gate) * (1 + gate), np.float32(self.least)))
        return inputs[0] * gate


def fit_vector(vector: Array, x: Array) -> Array:
    """A stored vector in the shape of a row of x, if it has as many values."""
    return vector.reshape(x.shape[1:]) if vector.size == x[:1].size else vector


def add_vector(
    x: Data, name: str, component: str, *shape: Size, role: str = "parameter", is_negative: bool = False
) -> Data:
    """x plus a learned vector, or minus one."""
    operation = SubtractVector() if is_negative else AddVector()
    return Data(operation, (x,), x.shape, (Weight(name, component, shape, role=role),))


def add_per_head(x: Data, name: str, component: str) -> Data:
    """Heads [n, heads, d] plus a learned value for each."""
    return Data(AddPerHead(), (x,), x.shape, (Weight(name, component, x.shape[1:2]),))


def add_positions(x: Data, name: str, *shape: Size) -> Data:
    """x plus one learned vector per row."""
    return Data(AddPositions(), (x,), x.shape, (Weight(name, "position", shape),))


def multiply_vector(
    x: Data, name: str, component: str, *shape: Size, role: str = "parameter", function: str = "linear"
) -> Data:
    """x times a learned vector or scalar, or times a function of it."""
    return Data(MultiplyVector(function), (x,), x.shape, (Weight(name, component, shape, role=role),))


def multiply_per_head(x: Data, name: str, component: str, *, function: str = "linear") -> Data:
    """Heads [n, heads, d] times a learned value for each, or times a function of it."""
    return Data(MultiplyPerHead(function), (x,), x.shape, (Weight(name, component, x.shape[1:2]),))


def add_by_gate(x: Data, y: Data, name: str, stored: str, temperature: float | Unknown, *, least: float) -> Data:
    """√(1 − g²) · x + g · y, where g is the sigmoid of a learned vector / temperature.

    `stored`: the name of the vector from the root on, because it is read twice. `least`: of 1 − g².
    """
    gate = Weight(name, "other", x.shape[-1:])
    kept = Data(ScaleByGate(temperature, complement=True, least=least), (x,), x.shape, (gate,))
    return kept + Data(ScaleByGate(temperature), (y,), y.shape, (gate._replace(tied_to=stored),))


# ---- factors that grow with the position


class ScaleByPosition(Operation, name="scale", saves_inputs=False):
    """x times a factor that grows with the position of the token."""

    phrase: ClassVar[str] = "increases with the position, from position {span:,}"
    plain: ClassVar[str] = "times a constant per position"
    span: int | Unknown
    beta: float | Unknown = 0.0
    first: int = 0  # what the first position counts as

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        factors = self.find_factors(run.positions + self.first, require(self.span), require(self.beta))
        return inputs[0] * factors.astype(np.float32).reshape(-1, *(1,) * (inputs[0].ndim - 1))

    def find_factors(self, positions: Array, span: int, beta: float) -> Array:
        raise NotImplementedError(self.label)


class ScaleInSteps(ScaleByPosition):
    """x times 1 + beta · log(1 + floor(position / span))."""

    def find_factors(self, positions: Array, span: int, beta: float) -> Array:
        return 1 + beta * np.log1p(np.floor(positions / span))


class ScaleByLogarithm(ScaleByPosition):
    """x times log(position + 1) / log(span), at least 1."""

    def find_factors(self, positions: Array, span: int, beta: float) -> Array:
        return np.maximum(1, np.log(positions + 1) / np.log(span))


class ScaleByLogOfRatio(ScaleByPosition):
    """x times 1 + beta · log(position / span), at least 1."""

    def find_factors(self, positions: Array, span: int, beta: float) -> Array:
        return 1 + beta * np.log(np.maximum(positions / span, 1))


class ScaleByPower(ScaleByPosition):
    """x times (1 + position / span) ^ beta."""

    def find_factors(self, positions: Array, span: int, beta: float) -> Array:
        return np.asarray((1 + positions / span) ** beta)


class ScaleByLearnedLogarithm(Operation, name="scale", phrase="a · log(position) + b, learned per head"):
    """x, [n, heads, d], times a · log(position + 1) + b, with a learned a and b for each head."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        factors = np.outer(np.log(run.positions + 1), weights[0]) + weights[1]
        return inputs[0] * factors.astype(np.float32)[:, :, None]


def scale_in_steps(x: Data, span: int | Unknown | None, beta: float | Unknown, *, first: int = 0) -> Data:
    """A span of None is no step, here and below. `first`: what the first position counts as."""
    return x if span is None else Data(ScaleInSteps(span, beta, first), (x,), x.shape)


def scale_by_logarithm(x: Data, span: int | Unknown | None) -> Data:
    return x if span is None else Data(ScaleByLogarithm(span), (x,), x.shape)


def scale_by_log_of_ratio(x: Data, span: int | Unknown | None, beta: float | Unknown, *, first: int = 0) -> Data:
    return x if span is None else Data(ScaleByLogOfRatio(span, beta, first), (x,), x.shape)


def scale_by_power(x: Data, span: int | Unknown | None, beta: float | Unknown, *, first: int = 0) -> Data:
    return x if span is None else Data(ScaleByPower(span, beta, first), (x,), x.shape)


def scale_by_log_position(x: Data, prefix: str, names: tuple[str, str]) -> Data:
    """Heads times a · log(position) + b, with a learned a and b for each head; the first position is 1."""
    weights = tuple(Weight(prefix + name, "other", (x.shape[1],)) for name in names)
    return Data(ScaleByLearnedLogarithm(), (x,), x.shape, weights)
