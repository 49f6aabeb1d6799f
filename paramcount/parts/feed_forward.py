"""Feed-forward networks: plain and gated."""

from __future__ import annotations

from typing import Any

from paramcount.flow import (
    Data,
    Size,
    Unknown,
    activate,
    clip,
    fused,
    linear,
)
from paramcount.parts.settings import get_setting

ACTIVATION = Unknown("activation")
GATED = ("gate_proj", "up_proj", "down_proj")


def plain_mlp(
    x: Data,
    names: tuple[str, str],
    component: str,
    d_ff: Size,
    *,
    activation: str | Unknown = ACTIVATION,
    bias: bool = False,
    transposed: bool = False,
) -> Data:
    """Up, activation, down. `names`: of the two matrices."""
    h = activate(linear(x, names[0], component + ".up", d_ff, bias=bias, transposed=transposed), activation)
    return linear(h, names[1], component + ".down", x.shape[-1], bias=bias, transposed=transposed)


def gpt_mlp(c: Any, x: Data) -> Data:
    """GPT-1's and GPT-2's: plain, biased, stored [in, out]."""
    names, activation = ("mlp.c_fc", "mlp.c_proj"), get_setting(c, "activation")
    return plain_mlp(x, names, "mlp", c.d_ff, activation=activation, bias=True, transposed=True)


def gated_mlp(
    x: Data,
    prefix: str,
    component: str,
    d_ff: Size,
    *,
    bias: bool = False,
    activation: str | Unknown = ACTIVATION,
    names: tuple[str, str, str] = GATED,
    limit: float | Unknown | None = None,
) -> Data:
    """activation(gate) · up, then down: SwiGLU and its relatives. `names`: of gate, up and down. `limit`: the largest
    value of gate, and of up on either side.

    Source: Shazeer, arXiv:2002.05202.
    """
    gate, up, down = names
    gated = linear(x, prefix + gate, component + ".gate", d_ff, bias=bias)
    raised = linear(x, prefix + up, component + ".up", d_ff, bias=bias)
    if limit is not None:
        gated, raised = clip(gated, None, limit), clip(raised, -limit, limit)
    gated = activate(gated, activation)
    return linear(gated * raised, prefix + down, component + ".down", x.shape[-1], bias=bias)


def fused_gated_mlp(
    x: Data,
    prefix: str,
    component: str,
    d_ff: Size,
    *,
    activation: str | Unknown = ACTIVATION,
    bias: bool = False,
    names: tuple[str, str] = ("gate_up_proj", "down_proj"),
    up_first: bool = False,
) -> Data:
    """The same with gate and up out of one stored matrix. `up_first`: it holds them in the other order."""
    order = (component + ".up", component + ".gate") if up_first else (component + ".gate", component + ".up")
    halves = fused(x, prefix + names[0], dict.fromkeys(order, d_ff), bias=bias)
    gate, up = halves[::-1] if up_first else halves
    return linear(activate(gate, activation) * up, prefix + names[1], component + ".down", x.shape[-1], bias=bias)
