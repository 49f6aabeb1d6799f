"""Mixers that carry a state from token to token: Mamba 1 and 2, and the short convolution of LFM2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramcount import flow as ops
from paramcount import parts
from paramcount.flow import Data


def mamba(c: Any, x: Data, prefix: str, *, inner_norm: Callable[[Data, str], Data] | None = None) -> Data:
    """Mamba 1, with d_inner, d_state, d_conv, dt_rank, mixer_bias, conv_bias and activation of c.

    `inner_norm`: the norm of step, B and C, whose names begin with dt, b and c. The gate is a SiLU whatever the
    activation after the convolution. The softplus of the step is part of the scan.

    Source: arXiv:2312.00752, section 3.
    """
    u, z = ops.fused(x, prefix + "in_proj", {"mixer.x": c.d_inner, "mixer.gate": c.d_inner}, bias=c.mixer_bias)
    u = ops.activate(ops.convolve(u, prefix + "conv1d", c.d_conv, bias=c.conv_bias), parts.get_setting(c, "activation"))
    dt, b, out = ops.fused(u, prefix + "x_proj", {"mixer.step": c.dt_rank, "mixer.b": c.d_state, "mixer.c": c.d_state})
    if inner_norm:
        dt, b, out = inner_norm(dt, prefix + "dt"), inner_norm(b, prefix + "b"), inner_norm(out, prefix + "c")
    dt = ops.linear(dt, prefix + "dt_proj", "mixer.step", c.d_inner, bias=True)
    state = (
        ops.Weight(prefix + "A_log", "mixer.state", (c.d_inner, c.d_state)),
        ops.Weight(prefix + "D", "mixer.state", (c.d_inner,)),
    )
    y = Data(ops.SelectiveScan(c.d_inner, c.d_state), (u, dt, b, out), u.shape, state)
    return ops.linear(y * ops.activate(z, "silu"), prefix + "out_proj", "mixer.out", x.shape[-1], bias=c.mixer_bias)


def mamba2(
    c: Any,
    x: Data,
    prefix: str,
    *,
    multiply: Callable[[Data, Data, Data], tuple[Data, Data, Data]] | None = None,
    gate: Callable[[Data, Data], Data] | None = None,
    activation: str | ops.Unknown | None = None,
    eps: float | None = None,
    out_bias: bool | None = None,
) -> Data:
    """Mamba 2: heads have one decay each; groups of heads share B and C.

    Reads n_mamba_heads, d_mamba_head, n_groups, d_state, d_conv, mixer_bias, conv_bias, activation and time_step_limit
    of c. `eps`: of the norm of each group of heads. `multiply`: multipliers of
    the gate, of x, B and C together, and of the step. `gate`: what combines the output of the scan with the gate, if
    not a norm of their product.

    Source: arXiv:2405.21060, section 7.
    """
    d_inner, d_group = c.n_mamba_heads * c.d_mamba_head, c.n_groups * c.d_state
    shares = {"mixer.gate": d_inner, "mixer.xbc": d_inner + 2 * d_group, "mixer.step": c.n_mamba_heads}
    z, u, dt = ops.fused(x, prefix + "in_proj", shares, bias=c.mixer_bias)
    if multiply:
        z, u, dt = multiply(z, u, dt)
    u = ops.activate(
        ops.convolve(u, prefix + "conv1d", c.d_conv, bias=c.conv_bias), activation or parts.get_setting(c, "activation")
    )
    u, b, out = ops.split(u, d_inner, d_group, d_group)
    state = tuple(ops.Weight(prefix + name, "mixer.state", (c.n_mamba_heads,)) for name in ("dt_bias", "A_log", "D"))
    scan = ops.StateSpaceDual(c.n_mamba_heads, c.d_mamba_head, c.d_state, parts.get_setting(c, "time_step_limit"))
    y = Data(scan, (u, dt, b, out), u.shape, state)
    y = (
        gate(y, z)
        if gate
        else ops.rms_norm(
            y * ops.activate(z, "silu"), prefix + "norm", eps or parts.get_setting(c, "norm_eps"), groups=c.n_groups
        )
    )
    return ops.linear(
        y, prefix + "out_proj", "mixer.out", x.shape[-1], bias=c.mixer_bias if out_bias is None else out_bias
    )


def short_convolution(x: Data, prefix: str, d_conv: ops.Size, *, bias: bool = False) -> Data:
    """A convolution over few tokens between two gates, all as wide as x: LFM2."""
    width = x.shape[-1]
    b, c, u = ops.fused(x, prefix + "in_proj", {"mixer.b": width, "mixer.c": width, "mixer.x": width}, bias=bias)
    y = c * ops.convolve(b * u, prefix + "conv", d_conv, bias=bias)
    return ops.linear(y, prefix + "out_proj", "mixer.out", width, bias=bias)
