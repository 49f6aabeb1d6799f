"""Attention without a softmax, which keeps a state of fixed size in place of keys and values."""

from __future__ import annotations

from typing import Any

from paramcount.flow import Data, act, fused, linear
from paramcount.parts.attentions import wide_norm
from paramcount.parts.state_space import Recurring


def lightning_attention(c: Any, x: Data, prefix: str) -> Data:
    """MiniMax-01's, with n_heads and d_head of c: q, k and v of equally many heads out of one matrix, each head with a decay that is
    not learned; a gate on the normalized outcome.

    Source: arXiv:2501.08313, section 2.2.
    """
    heads = (c.n_heads, c.d_head)
    q, k, v = (act(each, "silu") for each in fused(x, prefix + "qkv_proj", {"mixer.q": heads, "mixer.k": heads, "mixer.v": heads}))
    y = wide_norm(Data("scan", (q, k, v), v.shape, detail=Recurring((c.n_heads, c.d_head, c.d_head))), prefix + "norm")
    gated = act(linear(x, prefix + "output_gate", "mixer.gate", heads), "sigmoid") * y
    return linear(gated, prefix + "out_proj", "mixer.out", x.shape[-1])
