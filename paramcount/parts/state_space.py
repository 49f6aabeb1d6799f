"""Mixers that carry a state from token to token: Mamba 1 and 2, and the short convolution before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paramcount.flow import (
    Data,
    SelectiveScan,
    Size,
    StateSpaceDual,
    Weight,
    activate,
    convolve,
    fused,
    linear,
    norm,
    split,
)


def mamba(c: Any, x: Data, prefix: str, *, inner_norm: Callable[[Data, str], Data] | None = None) -> Data:
    """Mamba 1, with d_inner, d_state, d_conv, dt_rank, mixer_bias and conv_bias of c.

    `inner_norm`: what step, B and C go through under the names dt, b and c. The step's softplus stands in the scan.

    Source: arXiv:2312.00752, section 3.
    """
    u, z = fused(x, prefix + "in_proj", {"mixer.x": c.d_inner, "mixer.gate": c.d_inner}, bias=c.mixer_bias)
    u = activate(convolve(u, prefix + "conv1d", c.d_conv, bias=c.conv_bias), "silu")
    dt, b, out = fused(u, prefix + "x_proj", {"mixer.step": c.dt_rank, "mixer.b": c.d_state, "mixer.c": c.d_state})
    if inner_norm:
        dt, b, out = inner_norm(dt, prefix + "dt"), inner_norm(b, prefix + "b"), inner_norm(out, prefix + "c")
    dt = linear(dt, prefix + "dt_proj", "mixer.step", c.d_inner, bias=True)
    state = (
        Weight(prefix + "A_log", "mixer.state", (c.d_inner, c.d_state)),
        Weight(prefix + "D", "mixer.state", (c.d_inner,)),
    )
    y = Data(SelectiveScan(c.d_inner, c.d_state), (u, dt, b, out), u.shape, state)
    return linear(y * activate(z, "silu"), prefix + "out_proj", "mixer.out", x.shape[-1], bias=c.mixer_bias)


def mamba2(
    c: Any,
    x: Data,
    prefix: str,
    *,
    out_bias: bool | None = None,
    gated_norm: Callable[[Data, Data, str], Data] | None = None,
) -> Data:
    """Mamba 2: heads share one decay each, groups of heads share B and C.

    Reads n_mamba_heads, d_mamba_head, n_groups, d_state, d_conv, mixer_bias and conv_bias of c. `gated_norm`: the
    function that combines the output of the scan with the gate, if not a norm of their product.

    Source: arXiv:2405.21060, section 7.
    """
    d_inner, d_group = c.n_mamba_heads * c.d_mamba_head, c.n_groups * c.d_state
    parts = {"mixer.gate": d_inner, "mixer.xbc": d_inner + 2 * d_group, "mixer.step": c.n_mamba_heads}
    z, u, dt = fused(x, prefix + "in_proj", parts, bias=c.mixer_bias)
    u, b, out = split(
        activate(convolve(u, prefix + "conv1d", c.d_conv, bias=c.conv_bias), "silu"), d_inner, d_group, d_group
    )
    state = tuple(Weight(prefix + name, "mixer.state", (c.n_mamba_heads,)) for name in ("dt_bias", "A_log", "D"))
    scan = StateSpaceDual(c.n_mamba_heads, c.d_mamba_head, c.d_state)
    y = Data(scan, (u, dt, b, out), u.shape, state)
    y = (gated_norm or norm_of_product)(y, z, prefix + "norm")
    return linear(y, prefix + "out_proj", "mixer.out", x.shape[-1], bias=c.mixer_bias if out_bias is None else out_bias)


def norm_of_product(y: Data, z: Data, name: str) -> Data:
    """Group by group; the weight is of the full width."""
    return norm(y * activate(z, "silu"), name)


def short_convolution(x: Data, prefix: str, d_conv: Size, *, bias: bool = False) -> Data:
    """A convolution over few tokens between two gates, all as wide as x: LFM2."""
    width = x.shape[-1]
    b, c, u = fused(x, prefix + "in_proj", {"mixer.b": width, "mixer.c": width, "mixer.x": width}, bias=bias)
    y = c * convolve(b * u, prefix + "conv", d_conv, bias=bias)
    return linear(y, prefix + "out_proj", "mixer.out", width, bias=bias)
