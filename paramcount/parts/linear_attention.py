"""Attention without a softmax, which keeps a state of fixed size in place of keys and values."""

from __future__ import annotations

from typing import Any

from paramcount import flow as ops
from paramcount import parts
from paramcount.flow import Data

L2_EPS = 1e-6  # l2norm in the modeling files of the reference
NORM_EPS = ops.Unknown("norm_eps")


def lightning_attention(c: Any, x: Data, prefix: str, *decays: ops.Weight) -> Data:
    """MiniMax-01's lightning attention, with n_heads, d_head and activation of c.

    One matrix gives q, k and v with equal numbers of heads; the decay of each head is not learned; the normalized
    output is gated. `decays`: what the checkpoint stores of them.

    Source: arXiv:2501.08313, section 2.2; MiniMaxLightningAttention of the reference.
    """
    qkv = {"mixer.q": (c.n_heads, c.d_head), "mixer.k": (c.n_heads, c.d_head), "mixer.v": (c.n_heads, c.d_head)}
    q, k, v = (
        ops.activate(each, parts.get_setting(c, "activation"))
        for each in ops.fused(x, prefix + "qkv_proj", qkv, groups=c.n_heads)
    )
    operation = ops.LinearAttention(c.n_heads, c.d_head, c.d_head, None if decays else c.n_layers)
    y = Data(operation, (q, k, v), v.shape, decays)
    y = ops.rms_norm(y, prefix + "norm", 1e-6, wide=True)  # whatever rms_norm_eps is
    gate = ops.activate(ops.linear(x, prefix + "output_gate", "mixer.gate", (c.n_heads, c.d_head)), "sigmoid")
    return ops.linear(gate * y, prefix + "out_proj", "mixer.out", x.shape[-1])


def delta_rule(
    q: Data, k: Data, v: Data, step: Data, beta: Data, *held: ops.Weight, floor: float | ops.Unknown | None = None
) -> Data:
    """The gated delta rule with q and k of length 1. `held`: the base of the decay and the bias of the step."""
    q, k = ops.plain_norm(q, "l2", L2_EPS), ops.plain_norm(k, "l2", L2_EPS)
    operation = ops.DeltaRule(v.shape[1], k.shape[2], v.shape[2], floor)
    return Data(operation, (q, k, v, step, beta), v.shape, held)


def decay(prefix: str, n_heads: ops.Size) -> tuple[ops.Weight, ops.Weight]:
    return ops.Weight(prefix + "A_log", "mixer.state", (n_heads,)), ops.Weight(
        prefix + "dt_bias", "mixer.state", (n_heads,)
    )


def gated_output(
    y: Data,
    z: Data,
    norm_name: str,
    out_name: str,
    d_model: ops.Size,
    *,
    eps: float | ops.Unknown = NORM_EPS,
    activation: str = "silu",
) -> Data:
    """A norm of every head, times its gate, and the output projection."""
    return ops.linear(ops.rms_norm(y, norm_name, eps) * ops.activate(z, activation), out_name, "mixer.out", d_model)


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
        q, k, v, z = ops.fused(x, prefix + "in_proj_qkvz", {**streams, "mixer.gate": d_v}, groups=n_k)
        beta, step = ops.fused(x, prefix + "in_proj_ba", {"mixer.beta": n_v, "mixer.step": n_v}, groups=n_k)
    else:
        q, k, v = ops.fused(x, prefix + "in_proj_qkv", streams)
        z = ops.linear(x, prefix + "in_proj_z", "mixer.gate", d_v)
        beta = ops.linear(x, prefix + "in_proj_b", "mixer.beta", n_v)
        step = ops.linear(x, prefix + "in_proj_a", "mixer.step", n_v)
    qkv = ops.convolve(ops.join(ops.join(q, k), v), prefix + "conv1d", c.d_conv, bias=False)
    q, k, v = ops.split(ops.activate(qkv, parts.get_setting(c, "activation")), d_k, d_k, d_v)
    q, k = ops.to_heads(q, n_k, c.d_linear_k), ops.to_heads(k, n_k, c.d_linear_k)
    v, z = ops.to_heads(v, n_v, c.d_linear_v), ops.to_heads(z, n_v, c.d_linear_v)
    y = delta_rule(q, k, v, step, ops.activate(beta, "sigmoid"), *decay(prefix, n_v))
    return gated_output(y, z, prefix + "norm", prefix + "out_proj", c.d_model, eps=parts.get_setting(c, "norm_eps"))


def kimi_delta_attention(
    c: Any, x: Data, prefix: str, *, rate: tuple[ops.Size, ...] = (), floor: float | ops.Unknown | None = None
) -> Data:
    """The delta rule with a decay for each channel of the keys, out of a narrow matrix; so is the gate.

    Reads n_linear_heads, d_linear_head, d_conv, activation and norm_eps of c. `rate`: the shape of A_log, if it is not
    one value per head. `floor`: of the logarithm of the decay.

    Source: arXiv:2510.26692, section 3.
    """
    heads = (c.n_linear_heads, c.d_linear_head)
    width = c.n_linear_heads * c.d_linear_head
    q, k, v = streams_apart(c, x, prefix, heads, heads)
    step = ops.linear(x, prefix + "f_a_proj", "mixer.step", c.d_linear_head)
    step = ops.to_heads(ops.linear(step, prefix + "f_b_proj", "mixer.step", width), *heads)
    beta = ops.activate(ops.linear(x, prefix + "b_proj", "mixer.beta", c.n_linear_heads), "sigmoid")
    base = ops.Weight(prefix + "A_log", "mixer.state", rate or heads[:1])
    y = delta_rule(q, k, v, step, beta, base, ops.Weight(prefix + "dt_bias", "mixer.state", (width,)), floor=floor)
    z = ops.linear(x, prefix + "g_a_proj", "mixer.gate", c.d_linear_head)
    z = ops.to_heads(ops.linear(z, prefix + "g_b_proj", "mixer.gate", width), *heads)
    names = (prefix + "o_norm", prefix + "o_proj")
    return gated_output(y, z, *names, x.shape[-1], eps=parts.get_setting(c, "norm_eps"), activation="sigmoid")


def streams_apart(
    c: Any, x: Data, prefix: str, q: tuple[ops.Size, ops.Size], v: tuple[ops.Size, ops.Size]
) -> tuple[Data, ...]:
    """q, k and v, each with a matrix and a convolution of its own. `q`, `v`: (number, size) of their heads."""

    def stream(name: str, heads: tuple[ops.Size, ops.Size]) -> Data:
        y = ops.linear(x, f"{prefix}{name}_proj", f"mixer.{name}", heads[0] * heads[1])
        y = ops.convolve(y, f"{prefix}{name}_conv1d", c.d_conv, bias=False)
        return ops.to_heads(ops.activate(y, parts.get_setting(c, "activation")), *heads)

    return stream("q", q), stream("k", q), stream("v", v)
