"""Element-wise operations: activations, products, multipliers, norms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, sqrt
from typing import Any

from paramcount.errors import ParamcountError
from paramcount.flow.graph import Data, Weight
from paramcount.flow.operation import NOT_DESCRIBED, Array, Operation, Pass, Shape, Unknown, is_known, np, require


class Rescaling(Operation):
    """What changes only how large vectors are: a norm or a multiplier."""


class Clip(Operation, name="clip"):
    """x limited to an interval; None has no limit."""

    least: float | Unknown | None
    most: float | Unknown | None

    def describe(self) -> str:
        if not is_known(self.least, self.most):
            return ""
        return f"at most {self.most:g}" if self.least is None else f"from {self.least:g} to {self.most:g}"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return np.clip(inputs[0], require(self.least), require(self.most))


def clip(x: Data, least: Any, most: Any) -> Data:
    return Data(Clip(least, most), (x,), x.shape)


class ClipToStored(Operation, name="clip", phrase="to stored bounds"):
    """x between two stored values."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return np.clip(inputs[0], *weights)


def clip_to_stored(x: Data, name: str) -> Data:
    bounds = tuple(Weight(name + end, "other", (), role="buffer") for end in ("min", "max"))
    return Data(ClipToStored(), (x,), x.shape, bounds)


LEAST_FLOAT32 = -(2 - 2**-23) * 2.0**127  # without NumPy, which counting does not load


class MaskTokens(Operation, name="mask tokens"):
    """Logits [n, vocabulary], of which those of some tokens are as small as possible."""

    ids: tuple[int, ...] | Unknown

    def describe(self) -> str:
        return f"{len(self.ids):,} tokens that are never written" if isinstance(self.ids, tuple) else ""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        y = inputs[0].copy()
        y[:, list(require(self.ids))] = LEAST_FLOAT32
        return y


def mask_tokens(logits: Data, ids: tuple[int, ...] | Unknown) -> Data:
    return Data(MaskTokens(ids), (logits,), logits.shape)


class SoftCap(Operation, name="soft cap", phrase="at {cap:g}", plain="smooth limit on the magnitude"):
    """cap · tanh(x / cap)."""

    cap: float | Unknown

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        cap = np.float32(require(self.cap))
        return np.tanh(inputs[0] / cap) * cap


def soft_cap(x: Data, cap: float | Unknown | None) -> Data:
    """A smooth limit; None is no step."""
    return x if cap is None else Data(SoftCap(cap), (x,), x.shape)


# ---- activations


def softmax_rows(x: Array) -> Array:
    with np.errstate(under="ignore"):  # whatever the caller of the package does about it
        y = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(y / y.sum(-1, keepdims=True))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def erf(x: Array) -> Array:
    """The error function, to 1.5e-7. Source: Abramowitz and Stegun 1964, formula 7.1.26."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    tail = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return np.sign(x) * (1 - tail * np.exp(-x * x))


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + erf(x / sqrt(2)))


def gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)))


def softplus(x: Array) -> Array:
    return np.logaddexp(x, np.float32(0))


def xielu(x: Array, positive: Array, negative: Array, beta: Array, eps: Array) -> Array:
    """Source: arXiv:2411.13010; XIELUActivation in activations.py of the reference."""
    right = softplus(positive) * x * x
    left = (np.expm1(np.minimum(x, eps)) - x) * (beta + softplus(negative))
    return np.asarray(np.where(x > 0, right, left) + beta * x, dtype=np.float32)


QUICK_GELU = 1.702

# {name in config.json: (name in words, function)}. Source: ACT2CLS in activations.py of the reference.
FUNCTIONS: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "silu": ("SiLU", lambda x: x * sigmoid(x)),
    "swish": ("SiLU", lambda x: x * sigmoid(x)),
    "gelu": ("GELU", gelu),
    "gelu_python": ("GELU", gelu),
    "gelu_10": ("GELU, from -10 to 10", lambda x: np.clip(gelu(x), -10, 10)),
    "gelu_new": ("GELU (tanh)", gelu_tanh),
    "gelu_fast": ("GELU (tanh)", gelu_tanh),
    "gelu_accurate": ("GELU (tanh)", gelu_tanh),
    "gelu_pytorch_tanh": ("GELU (tanh)", gelu_tanh),
    "gelu_python_tanh": ("GELU (tanh)", gelu_tanh),
    "quick_gelu": ("quick GELU", lambda x: x * sigmoid(QUICK_GELU * x)),
    "relu": ("ReLU", lambda x: np.maximum(x, 0)),
    "relu2": ("ReLU²", lambda x: np.square(np.maximum(x, 0))),
    "relu6": ("ReLU6", lambda x: np.clip(x, 0, 6)),
    "elu": ("ELU", lambda x: np.where(x > 0, x, np.expm1(x))),
    "leaky_relu": ("leaky ReLU", lambda x: np.where(x > 0, x, x * np.float32(0.01))),
    "sigmoid": ("sigmoid", sigmoid),
    "tanh": ("tanh", lambda x: np.tanh(x)),
    "mish": ("Mish", lambda x: x * np.tanh(softplus(x))),
    "linear": ("identity", lambda x: x),
    "hardswish": ("hard swish", lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "laplace": ("Laplace", lambda x: 0.5 * (1 + erf((x - 0.707107) / (0.282095 * sqrt(2))))),
    "softplus": ("softplus", softplus),
    "sqrtsoftplus": ("√softplus", lambda x: np.sqrt(softplus(x))),
    "exp": ("exp", lambda x: np.exp(x)),
}


def snake(x: Array, alpha: Array, beta: Array) -> Array:
    """x + sin²(x · exp(alpha)) / exp(beta), with learned values for each channel. Source: arXiv:2006.08195."""
    return x + np.sin(x * np.exp(alpha)) ** 2 / (np.exp(beta) + np.float32(1e-9))


def make_low_pass() -> Array:
    """12 values of a windowed sinc that halves a rate. Source: arXiv:2206.04658; kaiser_sinc_filter1d in
    modeling_qwen2_5_omni.py of the reference."""
    attenuation = 2.285 * 5 * np.pi * 1.2 + 7.95
    window = np.kaiser(12, 0.1102 * (attenuation - 8.7))
    values = 0.5 * window * np.sinc(0.5 * (np.arange(12) - 5.5))
    return (values / values.sum()).astype(np.float32)


def snake_at_twice_the_rate(x: Array, alpha: Array, beta: Array) -> Array:
    """The same between two low-pass filters, of rows that are doubled before and halved after it: [n, d] to [n, d]."""
    low_pass, n = make_low_pass(), len(x)
    padded = np.pad(x, ((5, 5), (0, 0)), "edge")
    doubled = np.zeros((2 * len(padded) + 10, x.shape[1]), np.float32)
    for i in range(12):
        doubled[i : i + 2 * len(padded) - 1 : 2] += 2 * padded * low_pass[i]
    found = np.pad(snake(doubled[15 : 15 + 2 * n], alpha, beta), ((5, 6), (0, 0)), "edge")
    return np.asarray(sum(found[i : i + 2 * n : 2] * low_pass[i] for i in range(12)))


class Activation(Operation):
    """A function of each element, by its name in config.json."""

    function: str | Unknown
    alpha: float | Unknown = 1.0  # x · sigmoid(alpha · x), if the function is "silu"

    @property
    def label(self) -> str:
        if not is_known(self.function, self.alpha):
            return "activation"
        return str(self.function) if self.alpha == 1 else "quick_gelu" if self.alpha == QUICK_GELU else "swish"

    def describe(self) -> str:
        if not is_known(self.function, self.alpha):
            return ""
        if self.alpha not in (1, QUICK_GELU):
            return f"x · sigmoid({self.alpha:g} x)"
        return FUNCTIONS[self.label][0] if self.label in FUNCTIONS else NOT_DESCRIBED

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        name, alpha = require(self.function), require(self.alpha)
        if name not in FUNCTIONS:
            raise ParamcountError(f"activation {name} is not supported")
        with np.errstate(over="ignore"):
            return (FUNCTIONS[name][1](x) if alpha == 1 else x * sigmoid(np.float32(alpha) * x)).astype(np.float32)


class SparseActivation(Activation):
    """The same of the largest values of each token: a threshold is subtracted and what is below 0 becomes 0, before the
    function."""

    sparsity: float | Unknown = 0.0  # share of values below the threshold, if they have a normal distribution

    def describe(self) -> str:
        if not isinstance(self.sparsity, float) or not is_known(self.function):
            return ""
        return f"{FUNCTIONS[self.label][0]} of the largest {1 - self.sparsity:.0%} of the values"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        from statistics import NormalDist  # counting does not need it

        (x,) = inputs
        sigmas = np.float32(NormalDist().inv_cdf(require(self.sparsity)))
        x = np.maximum(x - x.mean(-1, keepdims=True) - sigmas * x.std(-1, keepdims=True), 0)
        return super().compute(run, [x], weights, shape)


class RowSoftmax(Operation, name="softmax", phrase="softmax"):
    """The softmax of each vector."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return softmax_rows(inputs[0])


class XIELU(Operation, name="xielu", phrase="xIELU"):
    """An activation with learned slopes. Source: arXiv:2411.13010."""

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return xielu(inputs[0], *weights)


class Snake(Operation, name="snake"):
    """x + sin²(αx) / β, with learned values for each channel. Source: arXiv:2006.08195."""

    doubles_rate: bool = False  # while it is computed, between two low-pass filters

    def describe(self) -> str:
        return "x + sin²(αx) / β" + (", at twice the rate" if self.doubles_rate else "")

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        return (snake_at_twice_the_rate if self.doubles_rate else snake)(inputs[0], *weights)


def activate(
    x: Data, function: str | Unknown, *, alpha: float | Unknown = 1.0, sparsity: float | Unknown = 0.0
) -> Data:
    """A function of each element; "softmax": of each vector. `sparsity`: share of the values that become 0 before."""
    operation = RowSoftmax() if function == "softmax" else Activation(function, alpha)
    if not isinstance(sparsity, float) or sparsity:
        operation = SparseActivation(function, alpha, sparsity)
    return Data(operation, (x,), x.shape)


def activate_by_snake(x: Data, prefix: str, *, doubles_rate: bool = False) -> Data:
    """Snake with its two learned values for each channel of [n, d]."""
    weights = tuple(Weight(prefix + name, "other", x.shape[-1:]) for name in ("alpha", "beta"))
    return Data(Snake(doubles_rate), (x,), x.shape, weights)
