"""Element-wise operations: activations, products, multipliers, norms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, sqrt
from typing import Any, ClassVar, Literal

from paramcount.errors import ParamcountError
from paramcount.flow.graph import Data, Multiply, Size, Weight, last_size
from paramcount.flow.operation import NOT_DESCRIBED, Array, Operation, Pass, Shape, Unknown, is_known, np, require


def scale(x: Data, by: Data) -> Data:
    """x scaled per token."""
    if type(by.shape[-1]) is int and by.shape[-1] != 1:
        raise ParamcountError(f"shape {list(by.shape)} is not one number per row", where="scale")
    return Data(Multiply(per_token=True), (x, by), x.shape)


def project_onto(x: Data, unit: Data) -> Data:
    """The part of each vector of x along one of length 1."""
    return Data(Multiply(is_projection=True), (x, unit), x.shape)


class Scale(Operation):
    """x times a constant and the square root of a size or of a ratio of sizes, plus a constant.

    By depth: the residual before the i-th addition times √((i − 1) / i), what is added to it times 1 / √i.
    Learned: x times a learned vector, scalar or value per head, or times a function of it; or times √(1 − f²), so that
    the sum with f times another vector keeps its magnitude. Of unmasked tokens, whose
    ids are the second input: masked ones are 0, the others as large as if the usual share were masked.
    """

    factor: float | Unknown = 1.0
    shift: float = 0.0
    text: str = "scale"  # in traces: "times √d_model"
    root: Size | None = None  # the size
    over: Size = 1  # what it is divided by
    inverse: bool = False  # one over the root
    rounded: bool = False  # the root, to bfloat16
    depth: Literal["residual", "update"] | None = None
    addition: int = 0  # of the two additions of a layer, the first or the second; before the first layer is one, too
    learned: Literal["no", "vector", "value per head"] = "no"
    function: str = "linear"  # of the learned values; its name in config.json
    temperature: float | Unknown = 1.0  # what the learned values are divided by before
    complement: bool = False  # √(1 − f²) instead of the function f
    least: float = 0.0  # of 1 − f²
    masked_id: int | Unknown | None = None
    masked_share: float = 0.0  # the usual one

    @property
    def saves_inputs(self) -> bool:  # type: ignore[override]
        return self.learned != "no"

    @property
    def label(self) -> str:
        return self.text

    def describe(self) -> str:
        if self.depth:
            return "× √((i − 1) / i)" if self.depth == "residual" else "× 1 / √i, for the i-th addition"
        if self.complement:
            return f"times √(1 − {self.function}²) of a learned {self.learned}"
        if self.learned != "no":
            return f"times {'a' if self.function == 'linear' else f'{self.function} of a'} learned {self.learned}"
        if self.masked_id is not None:
            return f"masked tokens are 0, the others × {1 - self.masked_share:g} / (share of unmasked tokens)"
        if self.root is not None:
            return ""
        if not is_known(self.factor):
            return "times a constant"
        if self.factor == 1 and self.shift:
            return ""
        return f"× {self.factor:g}" + (f" + {self.shift:g}" if self.shift else "")

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        if self.depth:
            i = 2 * run.layer + 1 + self.addition
            return inputs[0] * np.float32(sqrt((i - 1 if self.depth == "residual" else 1) / i))
        if self.learned != "no":
            x, learned = inputs[0], FUNCTIONS[self.function][1](weights[0] / np.float32(require(self.temperature)))
            if self.complement:
                learned = np.sqrt(np.maximum((1 - learned) * (1 + learned), np.float32(self.least)))
            if self.learned == "value per head":
                return x * learned[:, None]
            return x * (learned.reshape(x.shape[1:]) if learned.size == x[:1].size else learned)
        if self.masked_id is not None:
            is_masked = inputs[1] == require(self.masked_id)
            factor = np.float32((1 - self.masked_share) / (1 - is_masked.mean()))
            return np.where(is_masked[:, None], np.float32(0), inputs[0] * factor)
        if self.root is not None:
            root = self.find_root()
            return inputs[0] / root if self.inverse else inputs[0] * root
        y: Array = inputs[0] * np.float32(require(self.factor))
        return y + np.float32(self.shift) if self.shift else y

    def find_root(self) -> Any:
        root = np.float32(sqrt(self.root / self.over))
        if not self.rounded:
            return root
        bits = int(root.view(np.uint32))  # the nearest float32 with 16 zero bits; ties to even
        return np.uint32((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).view(np.float32)


def scale_by(x: Data, factor: float | Unknown, text: str = "scale", *, shift: float = 0.0) -> Data:
    """x times a constant. A factor of exactly 1 is no step."""
    return (
        x
        if type(factor) in (int, float) and factor == 1 and not shift
        else Data(Scale(factor, shift, text), (x,), x.shape)
    )


def scale_unmasked(x: Data, tokens: Data, masked_id: int | Unknown, share: float) -> Data:
    """Vectors of tokens, of which masked ones are 0 and the others stand for them. `share`: of tokens that are usually
    masked.
    """
    return Data(Scale(text="token dropout", masked_id=masked_id, masked_share=share), (x, tokens), x.shape)


def scale_by_root(
    x: Data,
    size: Size,
    text: str = "times √d_model",
    *,
    inverse: bool = False,
    over: Size = 1,
    rounded: bool = False,
) -> Data:
    """x times √(size / over), or one over it."""
    return Data(Scale(text=text, root=size, over=over, inverse=inverse, rounded=rounded), (x,), x.shape)


def add_by_depth(x: Data, y: Data, addition: int) -> Data:
    """x + y, scaled so that the sum keeps its magnitude. `addition`: 1 or 2, of a layer."""
    x = Data(Scale(text="depth scale", depth="residual", addition=addition), (x,), x.shape)
    return x + Data(Scale(text="depth scale", depth="update", addition=addition), (y,), y.shape)


class ScaleByPosition(Operation):
    """x times a factor that grows with the position of the token.

    "steps": 1 + beta · log(1 + floor((first + position) / span));
    "logarithm": log(position + 1) / log(span), at least 1;
    "log of ratio": 1 + beta · log((first + position) / span), at least 1;
    "power": (1 + (first + position) / span) ^ beta;
    "learned": a · log((first + position) / span) + b, with a learned a and b for each head.
    """

    name: ClassVar[str] = "scale"
    rule: Literal["steps", "logarithm", "log of ratio", "power", "learned"]
    span: int | Unknown
    beta: float | Unknown = 1.0
    first: int = 0  # what the first position counts as

    @property
    def saves_inputs(self) -> bool:  # type: ignore[override]
        return self.rule == "learned"

    def describe(self) -> str:
        if self.rule == "learned":
            return "a · log(position) + b, learned per head"
        if not is_known(self.span):
            return "times a constant per position"
        return f"increases with the position, from position {self.span:,}"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        if self.rule == "steps":
            factor = 1 + require(self.beta) * np.log1p(np.floor((run.positions + self.first) / require(self.span)))
        elif self.rule == "log of ratio":
            ratio = (run.positions + self.first) / require(self.span)
            factor = 1 + require(self.beta) * np.log(np.maximum(ratio, 1))
        elif self.rule == "power":
            factor = (1 + (run.positions + self.first) / require(self.span)) ** require(self.beta)
        elif self.rule == "learned":
            logarithms = np.log((run.positions + self.first) / require(self.span))
            return x * (np.outer(logarithms, weights[0]) + weights[1]).astype(np.float32)[:, :, None]
        else:
            factor = np.maximum(1, np.log(run.positions + 1) / np.log(require(self.span)))
        return x * factor.astype(np.float32).reshape(-1, *(1,) * (x.ndim - 1))


def scale_by_position(
    x: Data,
    rule: Literal["steps", "logarithm", "log of ratio", "power"],
    span: int | Unknown | None,
    beta: float | Unknown = 1.0,
    *,
    first: int = 0,
) -> Data:
    """x times a factor that grows with the position; a span of None is no step."""
    return x if span is None else Data(ScaleByPosition(rule, span, beta, first), (x,), x.shape)


def scale_by_log_position(x: Data, prefix: str, names: tuple[str, str]) -> Data:
    """Heads times a · log(position) + b, with a learned a and b for each head; the first position is 1."""
    weights = tuple(Weight(prefix + name, "other", (x.shape[1],)) for name in names)
    return Data(ScaleByPosition("learned", 1, first=1), (x,), x.shape, weights)


class Clip(Operation):
    """x limited to an interval; None has no limit. If smooth: most · tanh(x / most). Stored bounds are two weights."""

    least: float | Unknown | None
    most: float | Unknown | None
    smooth: bool = False
    only: tuple[int, ...] | Unknown | None = None  # indices of the last axis: the other values have no limit

    @property
    def label(self) -> str:
        return "soft cap" if self.smooth else "clip" if self.only is None else "mask tokens"

    def describe(self) -> str:
        if isinstance(self.only, tuple):
            return f"{len(self.only):,} tokens that are never written"
        if self.least is self.most is None:
            return "to stored bounds"
        if not is_known(self.least, self.most):
            return "smooth limit on the magnitude" if self.smooth else ""
        if self.smooth:
            return f"at {self.most:g}"
        return f"at most {self.most:g}" if self.least is None else f"from {self.least:g} to {self.most:g}"

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        if self.smooth:
            cap = np.float32(require(self.most))
            return np.tanh(inputs[0] / cap) * cap
        if weights:
            return np.clip(inputs[0], *weights)
        if self.only is not None:
            y, ids = inputs[0].copy(), list(require(self.only))
            y[:, ids] = np.clip(y[:, ids], require(self.least), require(self.most))
            return y
        return np.clip(inputs[0], require(self.least), require(self.most))


def clip(x: Data, least: Any, most: Any) -> Data:
    return Data(Clip(least, most), (x,), x.shape)


LEAST_FLOAT32 = -(2 - 2**-23) * 2.0**127  # without NumPy, which counting does not load


def mask_tokens(logits: Data, ids: tuple[int, ...] | Unknown) -> Data:
    """Logits [n, vocabulary], of which those of some tokens are as small as possible."""
    return Data(Clip(None, LEAST_FLOAT32, only=ids), (logits,), logits.shape)


def clip_to_stored(x: Data, name: str) -> Data:
    """x between two stored values."""
    bounds = tuple(Weight(name + end, "other", (), role="buffer") for end in ("min", "max"))
    return Data(Clip(None, None), (x,), x.shape, bounds)


def soft_cap(x: Data, cap: float | Unknown | None) -> Data:
    """A smooth limit; None is no step."""
    return x if cap is None else Data(Clip(None, cap, smooth=True), (x,), x.shape)


# ---- activations


def softmax(x: Array) -> Array:
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
    """A function of each element, by its name in config.json; or the softmax of each vector; or "snake", with learned
    values for each channel."""

    function: str | Unknown
    alpha: float | Unknown = 1.0  # x · sigmoid(alpha · x), if the function is "silu"
    # Share of the values of a token that are below the threshold, if they have a normal distribution. The threshold is
    # subtracted and what is below 0 becomes 0, before the function.
    sparsity: float | Unknown = 0.0
    doubles_rate: bool = False  # while it is computed, between two low-pass filters

    @property
    def label(self) -> str:
        if not is_known(self.function, self.alpha):
            return "activation"
        return str(self.function) if self.alpha == 1 else "quick_gelu" if self.alpha == QUICK_GELU else "swish"

    def describe(self) -> str:
        if not is_known(self.function, self.alpha, self.sparsity):
            return ""
        if isinstance(self.sparsity, float) and self.sparsity:
            return f"{FUNCTIONS[self.label][0]} of the largest {1 - self.sparsity:.0%} of the values"
        if self.alpha not in (1, QUICK_GELU):
            return f"x · sigmoid({self.alpha:g} x)"
        if self.function == "snake":
            return "x + sin²(αx) / β" + (", at twice the rate" if self.doubles_rate else "")
        if self.function in ("xielu", "softmax"):
            return "xIELU" if self.function == "xielu" else "softmax"
        return FUNCTIONS[self.label][0] if self.label in FUNCTIONS else NOT_DESCRIBED

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        name = require(self.function)
        if name == "xielu":
            return xielu(x, *weights)
        if name == "snake":
            return (snake_at_twice_the_rate if self.doubles_rate else snake)(x, *weights)
        if name == "softmax":
            return softmax(x)
        if name not in FUNCTIONS:
            raise ParamcountError(f"activation {name} is not supported")
        if require(self.sparsity):
            from statistics import NormalDist  # counting does not need it

            sigmas = np.float32(NormalDist().inv_cdf(require(self.sparsity)))
            x = np.maximum(x - x.mean(-1, keepdims=True) - sigmas * x.std(-1, keepdims=True), 0)
        with np.errstate(over="ignore"):
            alpha = require(self.alpha)
            if alpha != 1:
                return (x * sigmoid(np.float32(alpha) * x)).astype(np.float32)
            return FUNCTIONS[name][1](x).astype(np.float32)


def activate(
    x: Data, function: str | Unknown, *, alpha: float | Unknown = 1.0, sparsity: float | Unknown = 0.0
) -> Data:
    return Data(Activation(function, alpha, sparsity), (x,), x.shape)


def activate_by_snake(x: Data, prefix: str, *, doubles_rate: bool = False) -> Data:
    """Snake with its two learned values for each channel of [n, d]."""
    weights = tuple(Weight(prefix + name, "other", x.shape[-1:]) for name in ("alpha", "beta"))
    return Data(Activation("snake", doubles_rate=doubles_rate), (x,), x.shape, weights)


# ---- norms


class Norm(Operation):
    """Values divided by their root mean square (after subtracting their mean: layer norm), times a learned vector.

    Batch norm: the mean and the variance of each value are stored, with the number of batches that they come from.
    """

    name: ClassVar[str] = "norm"
    kind: Literal["rms", "layer", "l2", "batch"] | Unknown
    eps: float | Unknown
    offset: float = 0.0  # added to the learned vector: 1 in Gemma
    groups: Size = 1  # norms of equal parts of the last axis
    to_first: bool = False  # of [n, streams, d], to the root mean square of the first stream, which is not changed
    over_rows: bool = False  # of each group of channels, over all rows: those of an image
    cumulative: bool = False  # over all axes and all rows so far, from whose means so far their variance is measured
    scales_input: bool = False  # the learned vector scales what the norm reads, not what it returns

    @property
    def label(self) -> str:
        return "L2 norm" if self.kind == "l2" else "norm"

    def describe(self) -> str:
        if not isinstance(self.kind, str):
            return ""
        if self.to_first:
            return "scaled to the RMS of the first stream"
        kind = {"rms": "RMS norm", "layer": "layer norm", "l2": "L2 norm", "batch": "batch norm"}[self.kind]
        if self.cumulative:
            kind += " over all rows so far"
        eps = f", ε = {self.eps:g}".replace("e-0", "e-") if is_known(self.eps) else ""
        if self.over_rows:
            return f"group norm of {self.groups} groups of channels{eps}"
        if self.scales_input:
            return f"{kind} of x · ({'1 + ' if self.offset else ''}weight){eps}"
        return kind + (", scaled by 1 + weight" if self.offset else "") + eps

    def compute(self, run: Pass, inputs: Sequence[Array], weights: Sequence[Array], shape: Shape) -> Array:
        (x,) = inputs
        kind, eps = require(self.kind), np.float32(require(self.eps))
        if kind == "batch":
            scale, shift, mean, variance = weights[:4]
            return (x - mean) / np.sqrt(variance + eps) * scale + shift
        if self.to_first:
            squares = (x * x).mean(-1, keepdims=True)
            factors = np.sqrt(squares[:, :1]) / np.sqrt(np.maximum(squares, eps))
            return np.concatenate((x[:, :1], x[:, 1:] * factors[:, 1:]), axis=1)
        if self.cumulative:
            return self.norm_so_far(x, eps) * weights[0]
        if self.scales_input:
            x, weights = x * (weights[0] + np.float32(self.offset)), ()
        whole = bool(weights) and weights[0].shape[-1] != x.shape[-1]  # over all heads together
        flat = x.reshape(len(x), -1) if whole else x
        y = flat.reshape(*flat.shape[:-1], int(self.groups), flat.shape[-1] // int(self.groups))
        axes = (0, -1) if self.over_rows else -1
        if kind == "layer":
            y = y - y.mean(axes, keepdims=True)
        squares = (y * y).sum(-1, keepdims=True) if kind == "l2" else (y * y).mean(axes, keepdims=True)
        y = (y / np.sqrt(squares + eps)).reshape(flat.shape)
        if weights:
            y = y * (weights[0] + np.float32(self.offset)) if self.offset else y * weights[0]
        if len(weights) > 1:
            y = y + weights[1]
        return y.reshape(x.shape)

    def norm_so_far(self, x: Array, eps: Any) -> Array:
        axes = tuple(range(1, x.ndim))
        count = x[0].size * np.arange(1, len(x) + 1, dtype=np.float32).reshape(-1, *(1,) * (x.ndim - 1))
        y = x - x.sum(axes, keepdims=True).cumsum(0) / count
        return np.asarray(y / np.sqrt((y * y).sum(axes, keepdims=True).cumsum(0) / count + eps))


def norm(
    x: Data,
    name: str,
    *,
    bias: bool = False,
    kind: Literal["rms", "layer"] | Unknown = Unknown("norm"),  # noqa: B008 it is immutable
    eps: float | Unknown = Unknown("norm_eps"),  # noqa: B008
    offset: float = 0.0,
    groups: Size = 1,
    wide: bool = False,
    per_head: bool = False,
) -> Data:
    """A norm over the last axis, or over all axes but the first if `wide`. `per_head`: with weights for each head."""
    width = (last_size(x),) if wide else x.shape[1:] if per_head else x.shape[-1:]
    weights: tuple[Weight, ...] = (Weight(name + ".weight", "norm", width),)
    if bias:
        weights += (Weight(name + ".bias", "norm", width),)
    return Data(Norm(kind, eps, offset, groups), (x,), x.shape, weights)


def rms_norm(
    x: Data, name: str, eps: float | Unknown, *, offset: float = 0.0, groups: Size = 1, wide: bool = False
) -> Data:
    """Source: arXiv:1910.07467."""
    return norm(x, name, kind="rms", eps=eps, offset=offset, groups=groups, wide=wide)


def norm_of_scaled(x: Data, name: str, eps: float | Unknown) -> Data:
    """An RMS norm of x times 1 + a learned vector."""
    weight = Weight(name + ".weight", "norm", x.shape[-1:])
    return Data(Norm("rms", eps, offset=1.0, scales_input=True), (x,), x.shape, (weight,))


def layer_norm(
    x: Data, name: str, eps: float | Unknown, *, bias: bool = True, offset: float = 0.0, wide: bool = False
) -> Data:
    """Source: arXiv:1607.06450."""
    return norm(x, name, kind="layer", eps=eps, bias=bias, offset=offset, wide=wide)


def group_norm(x: Data, name: str, groups: Size, eps: float | Unknown) -> Data:
    """Each group of channels over all rows of an image. Source: arXiv:1803.08494."""
    weights = tuple(Weight(f"{name}.{end}", "norm", x.shape[-1:]) for end in ("weight", "bias"))
    return Data(Norm("layer", eps, groups=groups, over_rows=True), (x,), x.shape, weights)


def batch_norm(x: Data, name: str, eps: float) -> Data:
    """Source: arXiv:1502.03167."""
    learned = tuple(Weight(name + end, "norm", x.shape[-1:]) for end in (".weight", ".bias"))
    stored = [(".running_mean", x.shape[-1:]), (".running_var", x.shape[-1:]), (".num_batches_tracked", ())]
    buffers = tuple(Weight(name + end, "norm", shape, role="buffer") for end, shape in stored)
    return Data(Norm("batch", eps), (x,), x.shape, learned + buffers)


def cumulative_norm(x: Data, name: str, eps: float | Unknown) -> Data:
    """A layer norm of each row with the mean and variance of all rows so far, over all axes."""
    weight = Weight(name + ".weight", "norm", x.shape[-1:])
    return Data(Norm("layer", eps, cumulative=True), (x,), x.shape, (weight,))


def norm_to_first(x: Data, least: float) -> Data:
    """Streams of the same root mean square as the first. `least`: of what a mean square is taken for."""
    return Data(Norm("rms", least, to_first=True), (x,), x.shape)


def plain_norm(x: Data, kind: Literal["rms", "layer", "l2"], eps: float | Unknown) -> Data:
    """A norm without learned values, over the last axis."""
    return Data(Norm(kind, eps), (x,), x.shape)
