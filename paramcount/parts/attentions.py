"""Attention over heads: multi-head, grouped-query, multi-query, cross-attention."""

from __future__ import annotations

from typing import Any

from paramcount.flow import Data, Size, Weight, attend, fused, linear, norm, rope


def attention(
    c: Any,
    x: Data,
    prefix: str,
    *,
    bias: bool = False,
    o_bias: bool | None = None,
    qk_norm: bool = False,
    sinks: bool = False,
    window: Size | None = None,
    memory: Data | None = None,
) -> Data:
    """x to attended x, with n_heads, n_kv_heads and d_head of c. `o_bias`: as `bias` unless given.
    `memory`: where keys and values come from instead (cross-attention, which rotates nothing)."""
    source = x if memory is None else memory
    n_kv_heads = getattr(c, "n_kv_heads", c.n_heads)  # a config without it has as many as heads
    q = linear(x, prefix + "q_proj", "qkv.q", (c.n_heads, c.d_head), bias=bias)
    k = linear(source, prefix + "k_proj", "qkv.k", (n_kv_heads, c.d_head), bias=bias)
    v = linear(source, prefix + "v_proj", "qkv.v", (n_kv_heads, c.d_head), bias=bias)
    if qk_norm:
        q, k = norm(q, prefix + "q_norm"), norm(k, prefix + "k_norm")
    if memory is None:
        q, k = rope(q), rope(k)
    sink = Weight(prefix + "sinks", "other", (c.n_heads,)) if sinks else None
    a = attend(q, k, v, window=window, sinks=sink)
    return linear(a, prefix + "o_proj", "output_projection", x.shape[-1], bias=bias if o_bias is None else o_bias)


def fused_qkv(c: Any, x: Data, name: str, *, bias: bool = True, transposed: bool = False) -> tuple[Data, ...]:
    """q, k and v of equally many heads out of one stored matrix."""
    heads = (c.n_heads, c.d_head)
    return fused(x, name, {"qkv.q": heads, "qkv.k": heads, "qkv.v": heads}, bias=bias, transposed=transposed)


def gpt_attention(c: Any, x: Data) -> Data:
    """GPT-1's and GPT-2's: one [in, out] matrix for q, k and v."""
    q, k, v = fused_qkv(c, x, "attn.c_attn", transposed=True)
    return linear(attend(q, k, v), "attn.c_proj", "output_projection", c.d_model, bias=True, transposed=True)


def causal_masks(c: Any) -> tuple[tuple[str, tuple[int, ...], int], ...]:
    """What older files of GPT-1 and GPT-2 store of every layer's attention."""
    return (("h.{layer}.attn.bias", (1, 1, c.n_positions, c.n_positions), c.n_layers),)
