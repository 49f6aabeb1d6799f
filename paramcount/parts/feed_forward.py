"""Feed-forward networks: plain and gated."""

from __future__ import annotations

from typing import Any

from paramcount import flow as ops
from paramcount import parts
from paramcount.flow import Data

ACTIVATION: ops.Unknown = ops.Unknown("activation")
GATED: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")


def plain_mlp(
    x: Data,
    names: tuple[str, str],
    component: str,
    d_ff: ops.Size,
    *,
    activation: str | ops.Unknown = ACTIVATION,
    bias: bool = False,
    transposed: bool = False,
) -> Data:
    """Up, activation, down. `names`: of the two matrices."""
    h = ops.activate(ops.linear(x, names[0], component + ".up", d_ff, bias=bias, transposed=transposed), activation)
    return ops.linear(h, names[1], component + ".down", x.shape[-1], bias=bias, transposed=transposed)


def gpt_mlp(c: Any, x: Data) -> Data:
    """GPT-1's and GPT-2's: plain, biased, stored [in, out]."""
    names, activation = ("mlp.c_fc", "mlp.c_proj"), parts.get_setting(c, "activation")
    return plain_mlp(x, names, "mlp", c.d_ff, activation=activation, bias=True, transposed=True)


def gated_mlp(
    x: Data,
    prefix: str,
    component: str,
    d_ff: ops.Size,
    *,
    bias: bool = False,
    activation: str | ops.Unknown = ACTIVATION,
    names: tuple[str, str, str] = GATED,
    limit: float | ops.Unknown | None = None,
) -> Data:
    """activation(gate) · up, then down: SwiGLU and its relatives. `names`: of gate, up and down. `limit`: the largest
    value of gate, and of up on either side.

    Source: Shazeer, arXiv:2002.05202.
    """
    gate, up, down = names
    gated = ops.linear(x, prefix + gate, component + ".gate", d_ff, bias=bias)
    raised = ops.linear(x, prefix + up, component + ".up", d_ff, bias=bias)
    if limit is not None:
        gated, raised = ops.clip(gated, None, limit), ops.clip(raised, -limit, limit)
    gated = ops.activate(gated, activation)
    return ops.linear(gated * raised, prefix + down, component + ".down", x.shape[-1], bias=bias)


def fused_gated_mlp(
    x: Data,
    prefix: str,
    component: str,
    d_ff: ops.Size,
    *,
    activation: str | ops.Unknown = ACTIVATION,
    bias: bool = False,
    names: tuple[str, str] = ("gate_up_proj", "down_proj"),
    up_first: bool = False,
) -> Data:
    """The same with gate and up out of one stored matrix. `up_first`: it holds them in the other order."""
    order = (component + ".up", component + ".gate") if up_first else (component + ".gate", component + ".up")
    halves = ops.fused(x, prefix + names[0], dict.fromkeys(order, d_ff), bias=bias)
    gate, up = halves[::-1] if up_first else halves
    return ops.linear(
        ops.activate(gate, activation) * up, prefix + names[1], component + ".down", x.shape[-1], bias=bias
    )
