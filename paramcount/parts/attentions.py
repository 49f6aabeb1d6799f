"""Attention over heads: multi-head, grouped-query, multi-query, cross-attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from paramcount.flow import (
    Axes,
    Data,
    Rope,
    Size,
    Unknown,
    Weight,
    activate,
    attend,
    clip,
    fused,
    join,
    linear,
    norm,
    rms_norm,
    rope,
    rope_at,
    scale_by,
    split,
)  # fmt: skip
from paramcount.parts.settings import get_setting, normalise


class Heads(NamedTuple):
    """How many heads of what width, where layers differ in it: stands for the config that `attention` reads."""

    n_heads: Size
    n_kv_heads: Size
    d_head: Size


def attention(
    c: Any,
    x: Data,
    prefix: str,
    *,
    bias: bool = False,
    o_bias: bool | None = None,
    k_bias: bool | None = None,
    qk_norm: bool | Literal["wide"] = False,
    clip_qkv: float | Unknown | None = None,
    sinks: bool | str = False,
    window: Size | None = None,
    keeps_all: bool = False,
    memory: Data | None = None,
    prepare: Callable[[Data, Data], tuple[Data, Data]] | None = None,
    gate: Callable[[Data, Data], Data] | None = None,
    d_v: Size | None = None,
    value_scale: float | Unknown = 1.0,
    o_name: str = "o_proj",
    cached: bool = True,
    rotate: Callable[[Data], Data] | bool = True,
    angles: Rope | Unknown | None = None,
    scale: float | Unknown | None = None,
    soft_cap: float | Unknown | None = None,
    chunk: Size | None = None,
    causal: bool | None = None,
) -> Data:
    """x to attended x, with n_heads, n_kv_heads and d_head of c.

    `o_bias`, `k_bias`: as `bias` unless given. `memory`: where keys and values come from instead (cross-attention,
    which rotates nothing). `prepare`: what q and k go through before they meet, where that is not the usual norms and
    rotation. `gate`: x and the attended values to the gated ones. `d_v`: width of a value head that is not d_head.
    `cached`:
    whether later tokens look back on keys and values. `keeps_all`: also on those out of the `window`, which are masked.
    `o_name`: of the last matrix. `sinks`: whether there are any, or their name. `qk_norm`: of every head, or one
    over all heads ("wide"). `clip_qkv`: the limit of the magnitude of q, k and v. `rotate`: whether, or how.
    `angles`: of the rotation, if they are not those of c. `causal`: as in `attend`.
    """
    source = x if memory is None else memory
    n_kv_heads = getattr(c, "n_kv_heads", c.n_heads)  # a config without it has as many as heads
    q = linear(x, prefix + "q_proj", "qkv.q", (c.n_heads, c.d_head), bias=bias)
    k = linear(source, prefix + "k_proj", "qkv.k", (n_kv_heads, c.d_head), bias=bias if k_bias is None else k_bias)
    v = linear(source, prefix + "v_proj", "qkv.v", (n_kv_heads, c.d_head if d_v is None else d_v), bias=bias)
    v = scale_by(v, value_scale)
    if prepare:
        q, k = prepare(q, k)
    else:
        if qk_norm == "wide":
            q, k = wide_norm(q, prefix + "q_norm", c.norm_eps), wide_norm(k, prefix + "k_norm", c.norm_eps)
        elif qk_norm:
            q, k = normalise(c, q, prefix + "q_norm"), normalise(c, k, prefix + "k_norm")
        if isinstance(clip_qkv, (int, float)):
            q, k, v = (clip(y, -clip_qkv, clip_qkv) for y in (q, k, v))
        if rotate and memory is None:
            turn = rotate if callable(rotate) else lambda y: rope(y, angles or get_setting(c, "rope"))
            q, k = turn(q), turn(k)
    sink = Weight(prefix + (sinks if isinstance(sinks, str) else "sinks"), "other", (c.n_heads,)) if sinks else None
    a = attend(
        q, k, v, window=window, cached=None if cached else (), sinks=sink, keeps_all=keeps_all, scale=scale,
        soft_cap=soft_cap, chunk=chunk, causal=causal,
    )  # fmt: skip
    if gate:
        a = gate(x, a)
    return linear(a, prefix + o_name, "output_projection", x.shape[-1], bias=bias if o_bias is None else o_bias)


def sigmoid_gate(name: str) -> Callable[[Data, Data], Data]:
    """`gate` of an attention: every attended value times a number between 0 and 1 that x gives.

    Source: arXiv:2505.06708.
    """
    return lambda x, a: a * activate(linear(x, name, "qkv.gate", a.shape[1:]), "sigmoid")


def relative(q: Data, bias: Data) -> Data:
    """Scores with a bias that was looked up for each distance, one for each head."""
    return Data("relative bias", (q, bias), q.shape)


def partial_rope(
    x: Data,
    d_rope: Size | None,
    settings: Rope | Unknown = Unknown("rope"),  # noqa: B008 it is immutable
    pairing: Literal["halves", "interleaved"] = "halves",
    *places: Data,
    axes: Axes | Unknown | None = None,
) -> Data:
    """Rotary positions on the first d_rope of every head; None: on all. `places`, `axes`: see `rope_at`."""

    def rotate(y: Data) -> Data:
        return rope_at(y, places[0], settings, axes, pairing) if places and axes else rope(y, settings, pairing)

    if d_rope is None:
        return rotate(x)
    turned, kept = split(x, d_rope, x.shape[-1] - d_rope)
    return join(rotate(turned), kept)


def wide_norm(x: Data, name: str, eps: float | Unknown | None = None) -> Data:
    """One RMS norm over all heads together."""
    return norm(x, name, wide=True) if eps is None else rms_norm(x, name, eps, wide=True)


def fused_qkv(
    c: Any, x: Data, name: str, *, bias: bool = True, transposed: bool = False, groups: Size = 1
) -> tuple[Data, ...]:
    """q, k and v of equally many heads out of one stored matrix.

    `groups`: n_heads if each head has its own q, k and v side by side.
    """
    heads = (c.n_heads, c.d_head)
    parts = {"qkv.q": heads, "qkv.k": heads, "qkv.v": heads}
    return fused(x, name, parts, bias=bias, transposed=transposed, groups=groups)


def gpt_attention(c: Any, x: Data) -> Data:
    """GPT-1's and GPT-2's: one [in, out] matrix for q, k and v."""
    q, k, v = fused_qkv(c, x, "attn.c_attn", transposed=True)
    a = attend(q, k, v, scale=getattr(c, "attention_scale", None))
    return linear(a, "attn.c_proj", "output_projection", c.d_model, bias=True, transposed=True)


def gpt_attention_scale(config: Mapping[str, Any], c: Any) -> float | None:
    """The scale of GPT-2's attention; None: 1 / √d_head. Source: modeling_gpt2.py of the reference, GPT2Attention."""
    if config.get("scale_attn_by_inverse_layer_idx"):
        raise ValueError("differs from layer to layer")
    return None if config.get("scale_attn_weights", True) else 1.0


def causal_masks(c: Any, attention: str = "attn") -> tuple[tuple[str, tuple[int, ...], int], ...]:
    """What older files of GPT-1 and GPT-2 store of every layer's attention."""
    return ((f"h.{{layer}}.{attention}.bias", (1, 1, c.n_positions, c.n_positions), c.n_layers),)
