"""Attention without a softmax, which keeps a state of fixed size in place of keys and values."""

from __future__ import annotations

from typing import Any

from paramcount.flow import Data, Size, Weight, activate, convolve, fused, join, linear, norm, split, to_heads
from paramcount.parts.attentions import wide_norm


def lightning_attention(c: Any, x: Data, prefix: str, *held: Weight) -> Data:
    """MiniMax-01's lightning attention, with n_heads and d_head of c.

    One matrix gives q, k and v with equal numbers of heads; the decay of each head is not learned; the normalized
    output is gated. `held`: what the file stores of the decays.

    Source: arXiv:2501.08313, section 2.2.
    """
    heads = (c.n_heads, c.d_head)
    q, k, v = (
        activate(each, "silu")
        for each in fused(x, prefix + "qkv_proj", {"mixer.q": heads, "mixer.k": heads, "mixer.v": heads})
    )
    y = wide_norm(Data("scan", (q, k, v), v.shape, held, states=((c.n_heads, c.d_head, c.d_head),)), prefix + "norm")
    gated = activate(linear(x, prefix + "output_gate", "mixer.gate", heads), "sigmoid") * y
    return linear(gated, prefix + "out_proj", "mixer.out", x.shape[-1])


def delta_rule(q: Data, k: Data, v: Data, step: Data, beta: Data, *held: Weight) -> Data:
    """A state for each head of v, key by value, that decays and takes in v where it differs from what it holds under k.

    Heads of v share those of q and k in groups. `step`: how fast it decays; `beta`: how much it takes in; `held`: the
    decay's base and bias.

    Source: arXiv:2412.06464, section 3.
    """
    return Data("delta rule", (q, k, v, step, beta), v.shape, held, states=((v.shape[1], k.shape[2], v.shape[2]),))


def decay(prefix: str, n_heads: Size) -> tuple[Weight, Weight]:
    return Weight(prefix + "A_log", "mixer.state", (n_heads,)), Weight(prefix + "dt_bias", "mixer.state", (n_heads,))


def gated_output(y: Data, z: Data, norm_name: str, out_name: str, d_model: Size, *, activation: str = "silu") -> Data:
    """Every head normalized, times its gate, and led back."""
    return linear(norm(y, norm_name) * activate(z, activation), out_name, "mixer.out", d_model)


def gated_delta_net(c: Any, x: Data, prefix: str, *, together: bool) -> Data:
    """Qwen's gated delta net: one convolution over q, k and v.

    Reads n_linear_k_heads, d_linear_k, n_linear_v_heads, d_linear_v and d_conv of c. `together`: the gate is stored
    with q, k and v, head by head, and beta with the step.
    """
    d_k, d_v = c.n_linear_k_heads * c.d_linear_k, c.n_linear_v_heads * c.d_linear_v
    streams = {"mixer.q": d_k, "mixer.k": d_k, "mixer.v": d_v}
    if together:
        q, k, v, z = fused(x, prefix + "in_proj_qkvz", {**streams, "mixer.gate": d_v})
        beta, step = fused(
            x, prefix + "in_proj_ba", {"mixer.beta": c.n_linear_v_heads, "mixer.step": c.n_linear_v_heads}
        )
    else:
        q, k, v = fused(x, prefix + "in_proj_qkv", streams)
        z = linear(x, prefix + "in_proj_z", "mixer.gate", d_v)
        beta = linear(x, prefix + "in_proj_b", "mixer.beta", c.n_linear_v_heads)
        step = linear(x, prefix + "in_proj_a", "mixer.step", c.n_linear_v_heads)
    q, k, v = split(
        activate(convolve(join(join(q, k), v), prefix + "conv1d", c.d_conv, bias=False), "silu"), d_k, d_k, d_v
    )
    q, k = to_heads(q, c.n_linear_k_heads, c.d_linear_k), to_heads(k, c.n_linear_k_heads, c.d_linear_k)
    v, z = to_heads(v, c.n_linear_v_heads, c.d_linear_v), to_heads(z, c.n_linear_v_heads, c.d_linear_v)
    y = delta_rule(q, k, v, step, activate(beta, "sigmoid"), *decay(prefix, c.n_linear_v_heads))
    return gated_output(y, z, prefix + "norm", prefix + "out_proj", c.d_model)


def streams_apart(c: Any, x: Data, prefix: str, q: tuple[Size, Size], v: tuple[Size, Size]) -> tuple[Data, ...]:
    """q, k and v, each out of a matrix and a convolution of its own. `q`, `v`: how many heads how wide."""

    def stream(name: str, heads: tuple[Size, Size]) -> Data:
        y = linear(x, f"{prefix}{name}_proj", f"mixer.{name}", heads[0] * heads[1])
        return to_heads(activate(convolve(y, f"{prefix}{name}_conv1d", c.d_conv, bias=False), "silu"), *heads)

    return stream("q", q), stream("k", q), stream("v", v)
