"""Attention of layers that may read the keys and values of an earlier layer: Gemma 3n and 4."""

from __future__ import annotations

from typing import Any

from paramcount.flow import Data, Rope, Size, Unknown, attend, linear, plain_norm, rope
from paramcount.parts.attentions import Heads

OWN, SHARED = "own", "shared"


def sharing_attention(
    c: Any,
    x: Data,
    heads: Heads,
    word: str,
    whose: str,
    kv: tuple[Data, ...],
    *,
    angles: Rope | Unknown,
    window: Size | None,
    v_is_k: bool = False,
) -> tuple[Data, tuple[Data, ...]]:
    """x to attended x, and what is passed on: keys and values of the last full and of the last sliding layer.

    A layer whose keys and values are "shared" has none and takes the last ones of its type. `v_is_k`: values are the
    keys before their norm and rotation. Scores are not scaled.
    """
    at = 0 if word == "full_attention" else 2
    q = linear(x, "self_attn.q_proj", "qkv.q", (heads.n_heads, heads.d_head), bias=c.attention_bias)
    q = rope(c.norm(q, "self_attn.q_norm"), angles)
    if whose == SHARED:
        a = attend(q, kv[at], kv[at + 1], window=window, cached=(), causal=True, scale=c.attention_scale)
    else:
        shape = (heads.n_kv_heads, heads.d_head)
        k = linear(x, "self_attn.k_proj", "qkv.k", shape, bias=c.attention_bias)
        v = k if v_is_k else linear(x, "self_attn.v_proj", "qkv.v", shape, bias=c.attention_bias)
        k, v = rope(c.norm(k, "self_attn.k_norm"), angles), plain_norm(v, "rms", c.norm_eps)
        a = attend(q, k, v, window=window, scale=c.attention_scale)
        kv = (*kv[:at], k, v, *kv[at + 2 :]) if kv else ()
    return linear(a, "self_attn.o_proj", "output_projection", c.d_model, bias=c.attention_bias), kv
