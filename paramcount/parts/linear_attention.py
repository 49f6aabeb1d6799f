"""Attention without a softmax, which keeps a state of fixed size in place of keys and values."""

from __future__ import annotations

from typing import Any

from paramcount.flow import (
    Data,
    DeltaRule,
    LinearAttention,
    Size,
    Unknown,
    Weight,
    activate,
    convolve,
    fused,
    join,
    linear,
    plain_norm,
    rms_norm,
    split,
    to_heads,
)
from paramcount.parts.settings import get_setting

L2_EPS = 1e-6  # l2norm in the modeling files of the reference
NORM_EPS = Unknown("norm_eps")


def lightning_attention(c: Any, x: Data, prefix: str, *decays: Weight) -> Data:
    """MiniMax-01's lightning attention, with n_heads, d_head and activation of c.

    One matrix gives q, k and v with equal numbers of heads; the decay of each head is not learned; the normalized
    output is gated. `decays`: what the checkpoint stores of them.

    Source: arXiv:2501.08313, section 2.2; MiniMaxLightningAttention of the reference.
    """
    qkv = {"mixer.q": (c.n_heads, c.d_head), "mixer.k": (c.n_heads, c.d_head), "mixer.v": (c.n_heads, c.d_head)}
    q, k, v = (
        activate(each, get_setting(c, "activation")) for each in fused(x, prefix + "qkv_proj", qkv, groups=c.n_heads)
    )
    operation = LinearAttention(c.n_heads, c.d_head, c.d_head, None if decays else c.n_layers)
    y = Data(operation, (q, k, v), v.shape, decays)
    y = rms_norm(y, prefix + "norm", 1e-6, wide=True)  # whatever rms_norm_eps is
    gate = activate(linear(x, prefix + "output_gate", "mixer.gate", (c.n_heads, c.d_head)), "sigmoid")
    return linear(gate * y, prefix + "out_proj", "mixer.out", x.shape[-1])


def delta_rule(
    q: Data, k: Data, v: Data, step: Data, beta: Data, *held: Weight, floor: float | Unknown | None = None
) -> Data:
    """The gated delta rule with q and k of length 1. `held`: the base of the decay and the bias of the step."""
    q, k = plain_norm(q, "l2", L2_EPS), plain_norm(k, "l2", L2_EPS)
    operation = DeltaRule(v.shape[1], k.shape[2], v.shape[2], floor)
    return Data(operation, (q, k, v, step, beta), v.shape, held)


def decay(prefix: str, n_heads: Size) -> tuple[Weight, Weight]:
    return Weight(prefix + "A_log", "mixer.state", (n_heads,)), Weight(prefix + "dt_bias", "mixer.state", (n_heads,))


def gated_output(
    y: Data,
    z: Data,
    norm_name: str,
    out_name: str,
    d_model: Size,
    *,
    eps: float | Unknown = NORM_EPS,
    activation: str = "silu",
) -> Data:
    """A norm of every head, times its gate, and the output projection."""
    return linear(rms_norm(y, norm_name, eps) * activate(z, activation), out_name, "mixer.out", d_model)


def gated_delta_net(c: Any, x: Data, prefix: str, *, together: bool) -> Data:
    """Qwen's gated delta net: one convolution over q, k and v.

    Reads n_linear_k_heads, d_linear_k, n_linear_v_heads, d_linear_v, d_conv, activation and norm_eps of c. `together`:
    the gate is stored with q, k and v, head by head, and beta with the step.

    Source: Qwen3NextGatedDeltaNet and Qwen3_5GatedDeltaNet of the reference.
    """
    n_k, n_v = c.n_linear_k_heads, c.n_linear_v_heads
    d_k, d_v = n_k * c.d_linear_k, n_v * c.d_linear_v
    streams = {"mixer.q": d_k, "mixer.k": d_k, "mixer.v": d_v}
    if together:
        q, k, v, z = fused(x, prefix + "in_proj_qkvz", {**streams, "mixer.gate": d_v}, groups=n_k)
        beta, step = fused(x, prefix + "in_proj_ba", {"mixer.beta": n_v, "mixer.step": n_v}, groups=n_k)
    else:
        q, k, v = fused(x, prefix + "in_proj_qkv", streams)
        z = linear(x, prefix + "in_proj_z", "mixer.gate", d_v)
        beta = linear(x, prefix + "in_proj_b", "mixer.beta", n_v)
        step = linear(x, prefix + "in_proj_a", "mixer.step", n_v)
    qkv = convolve(join(join(q, k), v), prefix + "conv1d", c.d_conv, bias=False)
    q, k, v = split(activate(qkv, get_setting(c, "activation")), d_k, d_k, d_v)
    q, k = to_heads(q, n_k, c.d_linear_k), to_heads(k, n_k, c.d_linear_k)
    v, z = to_heads(v, n_v, c.d_linear_v), to_heads(z, n_v, c.d_linear_v)
    y = delta_rule(q, k, v, step, activate(beta, "sigmoid"), *decay(prefix, n_v))
    return gated_output(y, z, prefix + "norm", prefix + "out_proj", c.d_model, eps=get_setting(c, "norm_eps"))


def kimi_delta_attention(
    c: Any, x: Data, prefix: str, *, rate: tuple[Size, ...] = (), floor: float | Unknown | None = None
) -> Data:
    """The delta rule with a decay for each channel of the keys, out of a narrow matrix; so is the gate.

    Reads n_linear_heads, d_linear_head, d_conv, activation and norm_eps of c. `rate`: the shape of A_log, if it is not
    one value per head. `floor`: of the logarithm of the decay.

    Source: arXiv:2510.26692, section 3.
    """
    heads = (c.n_linear_heads, c.d_linear_head)
    width = c.n_linear_heads * c.d_linear_head
    q, k, v = streams_apart(c, x, prefix, heads, heads)
    step = linear(x, prefix + "f_a_proj", "mixer.step", c.d_linear_head)
    step = to_heads(linear(step, prefix + "f_b_proj", "mixer.step", width), *heads)
    beta = activate(linear(x, prefix + "b_proj", "mixer.beta", c.n_linear_heads), "sigmoid")
    base = Weight(prefix + "A_log", "mixer.state", rate or heads[:1])
    y = delta_rule(q, k, v, step, beta, base, Weight(prefix + "dt_bias", "mixer.state", (width,)), floor=floor)
    z = linear(x, prefix + "g_a_proj", "mixer.gate", c.d_linear_head)
    z = to_heads(linear(z, prefix + "g_b_proj", "mixer.gate", width), *heads)
    names = (prefix + "o_norm", prefix + "o_proj")
    return gated_output(y, z, *names, x.shape[-1], eps=get_setting(c, "norm_eps"), activation="sigmoid")


def streams_apart(c: Any, x: Data, prefix: str, q: tuple[Size, Size], v: tuple[Size, Size]) -> tuple[Data, ...]:
    """q, k and v, each with a matrix and a convolution of its own. `q`, `v`: (number, size) of their heads."""

    def stream(name: str, heads: tuple[Size, Size]) -> Data:
        y = linear(x, f"{prefix}{name}_proj", f"mixer.{name}", heads[0] * heads[1])
        y = convolve(y, f"{prefix}{name}_conv1d", c.d_conv, bias=False)
        return to_heads(activate(y, get_setting(c, "activation")), *heads)

    return stream("q", q), stream("k", q), stream("v", v)
