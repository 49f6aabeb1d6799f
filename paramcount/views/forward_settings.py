"""The settings of a forward pass: what its operations do besides their matrices, and no parameter depends on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from paramcount.counting.sum_weights import list_flows
from paramcount.flow import Activation, Data, Hide, Norm, OtherNorm, Rotation, Scores, SoftCap, Unknown, is_known
from paramcount.flow.walk import ENCODERS, list_steps
from paramcount.zoo import Model

Value: TypeAlias = "int | float | str | None"  # None: nothing states it

USUAL_SCALE = "1/√d_head"


def list_forward_settings(model: Model) -> dict[str, tuple[Value, ...]]:
    """{setting: its values in the order of the forward pass, each once} of the text's layers, not of encoders of images
    and sound. They are read off the operations, so a setting that no operation has is not listed.

    >>> from paramcount.api import load
    >>> list_forward_settings(load("llama-3.1-8b"))["rope_base"], list_forward_settings(load("gpt2-small"))["norm"]
    ((500000,), ('layer norm',))
    """
    out, _ = next(iter(list_flows(model.sizes, model.reading.head)))
    found: dict[str, dict[Value, None]] = {}
    for data, _, _, part in list_steps(out):
        if part not in ENCODERS:
            for name, value in read_settings(data):
                found.setdefault(name, {})[simplify(value)] = None
    if hasattr(model.sizes, "window"):  # then it is one of the sizes
        found.pop("window", None)
    return {name: tuple(values) for name, values in found.items()}


def read_settings(data: Data) -> Iterator[tuple[str, Any]]:
    """The settings of one operation."""
    match data.operation:
        case Norm(kind=kind, eps=eps):
            yield "norm", f"{kind if kind == 'layer' else 'RMS'} norm" if is_known(kind) else kind
            yield "norm_eps", eps
        case OtherNorm(eps=eps):
            yield "norm_eps", eps
        case Activation() as activation:
            is_known_function = is_known(activation.function, activation.alpha)
            yield (
                "router_activation" if reads_router(data) else "activation",
                activation.label if is_known_function else activation.function,
            )
        case Rotation(rope=rope, pairing=pairing):
            yield "rope_base", rope if isinstance(rope, Unknown) else rope.base
            yield "rope_scaling", rope if isinstance(rope, Unknown) else describe_scaling(rope)
            yield "rope_pairing", pairing
        case Hide(mask=mask) if mask.trim is not None:
            yield "window", mask.trim
        case Scores(scale=scale):
            yield "attention_scale", USUAL_SCALE if scale is None else scale
        case SoftCap(cap=cap):
            yield "soft_cap", cap


def reads_router(data: Data) -> bool:
    """Whether the input is what a router computes."""
    return any(weight.component.startswith("router") for x in data.inputs for weight in x.weights)


def describe_scaling(rope: Any) -> str:
    """Such as "yarn × 40"; "none" if positions are not scaled."""
    if rope.scaling is None:
        return "none"
    factor = getattr(rope.scaling, "factor", None)
    return rope.kind if factor is None else f"{rope.kind} × {factor:g}"


def simplify(value: Any) -> Value:
    """A number without a fraction as an integer, since 10000.0 is the same base as 10000; None for what is unknown."""
    if not is_known(value):
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def format_setting(values: tuple[Value, ...]) -> str:
    """The values as text.

    >>> format_setting((10000, 1000000)), format_setting((1e-06,)), format_setting(("silu", None))
    ('10,000, 1,000,000', '1e-06', 'silu, unknown')
    """
    return ", ".join(format_value(value) for value in values)


def format_value(value: Value) -> str:
    if value is None:
        return "unknown"
    return value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
