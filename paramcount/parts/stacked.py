"""Experts of which a layer stores one tensor for each projection, with the experts in front, gate and up together."""

from __future__ import annotations

from typing import Any

from paramcount import flow as ops
from paramcount import parts
from paramcount.flow import Data

PACKED = ("gate_up_proj", "down_proj")


def packed_mlp(
    x: Data,
    component: str,
    d_ff: ops.Size,
    names: tuple[str, str] = PACKED,
    *,
    activation: str | ops.Unknown = parts.feed_forward.ACTIVATION,
    transposed: bool = False,
    alternating: bool = False,
) -> Data:
    """A gated MLP of two tensors. `names`: of gate and up, of down, whole. `transposed`: stored [in, out].

    `alternating`: every row of gate is followed by one of up.
    """
    halves, groups = {component + ".gate": d_ff, component + ".up": d_ff}, d_ff if alternating else 1
    gate, up = ops.fused(x, names[0], halves, transposed=transposed, suffixes=("", ""), groups=groups)
    h, out = ops.activate(gate, activation) * up, {component + ".down": x.shape[-1]}
    return ops.fused(h, names[1], out, transposed=transposed, suffixes=("", ""))[0]


def stacked_experts(
    c: Any,
    x: Data,
    scores: Data,
    prefix: str,
    names: tuple[str, str] = PACKED,
    *,
    transposed: bool = False,
) -> Data:
    """x through the experts that the scores choose, with n_routed_experts, n_active_experts and d_expert of c."""
    activation = parts.get_setting(c, "activation")

    def expert(x: Data) -> Data:
        return packed_mlp(x, "experts", c.d_expert, names, activation=activation, transposed=transposed)

    return ops.experts(x, scores, prefix, c.n_routed_experts, c.n_active_experts, expert, stored="stacked")
