"""Attention of layers that may read the keys and values of an earlier layer: Gemma 3n and 4."""

from __future__ import annotations

from typing import Any

from paramcount import flow as ops
from paramcount import parts
from paramcount.flow import Data

OWN, SHARED = "own", "shared"


def find_shared(kv: tuple[Data, ...], word: str) -> tuple[Data, Data]:
    """The last keys and values of layers of a type: `kv` has those of full layers, then of sliding ones."""
    at = 0 if word == "full_attention" else 2
    return kv[at], kv[at + 1]


def replace_shared(kv: tuple[Data, ...], word: str, k: Data, v: Data) -> tuple[Data, ...]:
    """What is passed on behind a layer of a type with keys and values of its own."""
    if not kv:
        return ()
    return (k, v, *kv[2:]) if word == "full_attention" else (*kv[:2], k, v)


def sharing_attention(
    c: Any,
    x: Data,
    heads: parts.Heads,
    kinds: tuple[str, str],
    kv: tuple[Data, ...],
    *,
    angles: ops.Rope | ops.Unknown,
    mask: ops.Mask,
    v_is_k: bool = False,
) -> tuple[Data, tuple[Data, ...]]:
    """x to attended x, and what is passed on: keys and values of the last full and of the last sliding layer.

    `kinds`: the type of the layer, and whether its keys and values are "shared": then it has none and takes the last
    ones of its type. `v_is_k`: values are the keys before their norm and rotation. Scores are not scaled.
    """
    word, whose = kinds
    q = ops.linear(x, "self_attn.q_proj", "qkv.q", (heads.n_heads, heads.d_head), bias=c.attention_bias)
    q = ops.rope(c.norm(q, "self_attn.q_norm"), angles)  # [n, n_heads, d_head]
    if whose == SHARED:
        k, v = find_shared(kv, word)
    else:
        shape = (heads.n_kv_heads, heads.d_head)
        k = ops.linear(x, "self_attn.k_proj", "qkv.k", shape, bias=c.attention_bias)
        v = k if v_is_k else ops.linear(x, "self_attn.v_proj", "qkv.v", shape, bias=c.attention_bias)
        k = ops.cache(ops.rope(c.norm(k, "self_attn.k_norm"), angles), mask)  # [m, n_kv_heads, d_head]
        v = ops.cache(ops.plain_norm(v, "rms", c.norm_eps), mask)
        kv = replace_shared(kv, word, k, v)
    a = ops.attend(q, k, v, mask=mask, scale=c.attention_scale)  # [n, n_heads, d_head]
    return ops.linear(a, "self_attn.o_proj", "output_projection", c.d_model, bias=c.attention_bias), kv
