"""Attention over heads: multi-head, grouped-query, multi-query, cross-attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from paramcount import flow as ops
from paramcount import parts
from paramcount.flow import Data

Projections: TypeAlias = tuple[Data, Data, Data]
Prepare: TypeAlias = Callable[[Data, Data], tuple[Data, Data]]  # q and k to what meets
Mix: TypeAlias = Callable[[Data, Data, Data], Data]  # q, k and v to attended values [n, heads, d_v]


class Heads(NamedTuple):
    """How many heads of what width, where layers differ in it: stands for the config that `attention` reads."""

    n_heads: ops.Size
    n_kv_heads: ops.Size
    d_head: ops.Size


def project_heads(
    c: Any,
    x: Data,
    prefix: str,
    *,
    bias: bool = False,
    k_bias: bool | None = None,
    memory: Data | None = None,
) -> Projections:
    """q [n, n_heads, d_head], and k and v [m, n_kv_heads, d_head] of x, or of a `memory` (cross-attention).

    `k_bias`: as `bias` unless given. A config without n_kv_heads has as many as heads.
    """
    source, n_kv_heads = x if memory is None else memory, getattr(c, "n_kv_heads", c.n_heads)
    q = ops.linear(x, prefix + "q_proj", "qkv.q", (c.n_heads, c.d_head), bias=bias)  # [n, n_heads, d_head]
    k = ops.linear(source, prefix + "k_proj", "qkv.k", (n_kv_heads, c.d_head), bias=bias if k_bias is None else k_bias)
    return q, k, ops.linear(source, prefix + "v_proj", "qkv.v", (n_kv_heads, c.d_head), bias=bias)


def project_output(a: Data, name: str, d_model: ops.Size, *, bias: bool = False) -> Data:
    """Attended values [n, heads, d_v] to [n, d_model]."""
    return ops.linear(a, name, "output_projection", d_model, bias=bias)


def attention(
    c: Any,
    x: Data,
    prefix: str,
    *,
    bias: bool = False,
    o_bias: bool | None = None,
    memory: Data | None = None,
    prepare: Prepare | None = None,
    mix: Mix = ops.attend_causally,
) -> Data:
    """x to attended x, with n_heads, n_kv_heads and d_head of c.

    `o_bias`: as `bias` unless given. `memory`: see `project_heads`. `prepare`: what q and k go through before they
    meet; default: the rotation of c, unless there is a `memory`. `mix`: q, k and v to attended values.
    """
    q, k, v = project_heads(c, x, prefix, bias=bias, memory=memory)
    if prepare is not None or memory is None:
        q, k = (prepare or turn_by(parts.get_setting(c, "rope")))(q, k)
    return project_output(mix(q, k, v), prefix + "o_proj", x.shape[-1], bias=bias if o_bias is None else o_bias)


def turn_by(angles: ops.Rope | ops.Unknown) -> Prepare:
    """`prepare` with rotary positions."""
    return lambda q, k: (ops.rope(q, angles), ops.rope(k, angles))


def turn_with(rotate: Callable[[Data], Data]) -> Prepare:
    """`prepare` with the same function for q and k."""
    return lambda q, k: (rotate(q), rotate(k))


def normalise_heads(c: Any, q: Data, k: Data, prefix: str = "self_attn.") -> tuple[Data, Data]:
    """A norm of each head of q and k."""
    return parts.normalise(c, q, prefix + "q_norm"), parts.normalise(c, k, prefix + "k_norm")


def normalise_wide(c: Any, q: Data, k: Data, prefix: str = "self_attn.") -> tuple[Data, Data]:
    """One norm over all heads of q, and one over those of k."""
    return wide_norm(q, prefix + "q_norm", c.norm_eps), wide_norm(k, prefix + "k_norm", c.norm_eps)


def add_sinks(c: Any, name: str) -> ops.Weight:
    """One more learned score per head, which takes part in the softmax alone."""
    return ops.Weight(name, "other", (c.n_heads,))


def sigmoid_gate(name: str) -> Callable[[Data, Data], Data]:
    """x and attended values to gated ones: every value times a number between 0 and 1 that x gives.

    Source: arXiv:2505.06708.
    """
    return lambda x, a: a * ops.activate(ops.linear(x, name, "qkv.gate", a.shape[1:]), "sigmoid")


def relative(q: Data, bias: Data) -> Data:
    """Scores with a bias that was looked up for each distance, one for each head."""
    return Data("relative bias", (q, bias), q.shape)


def partial_rope(
    x: Data,
    d_rope: ops.Size | None,
    settings: ops.Rope | ops.Unknown = ops.Unknown("rope"),  # noqa: B008 it is immutable
    pairing: Literal["halves", "interleaved"] = "halves",
    *places: Data,
    axes: ops.Axes | ops.Unknown | None = None,
) -> Data:
    """Rotary positions on the first d_rope of every head; None: on all. `places`, `axes`: see `rope_at`."""

    def rotate(y: Data) -> Data:
        return ops.rope_at(y, places[0], settings, axes, pairing) if places and axes else ops.rope(y, settings, pairing)

    if d_rope is None:
        return rotate(x)
    turned, kept = ops.split(x, d_rope, x.shape[-1] - d_rope)
    return ops.join(rotate(turned), kept)


def wide_norm(x: Data, name: str, eps: float | ops.Unknown | None = None) -> Data:
    """One RMS norm over all heads together."""
    return ops.norm(x, name, wide=True) if eps is None else ops.rms_norm(x, name, eps, wide=True)


def fused_qkv(
    c: Any, x: Data, name: str, *, bias: bool = True, transposed: bool = False, groups: ops.Size = 1
) -> tuple[Data, ...]:
    """q, k and v of equally many heads out of one stored matrix.

    `groups`: n_heads if each head has its own q, k and v side by side.
    """
    heads = (c.n_heads, c.d_head)
    parts = {"qkv.q": heads, "qkv.k": heads, "qkv.v": heads}
    return ops.fused(x, name, parts, bias=bias, transposed=transposed, groups=groups)


def gpt_attention(c: Any, x: Data) -> Data:
    """GPT-1's and GPT-2's: one [in, out] matrix for q, k and v."""
    q, k, v = fused_qkv(c, x, "attn.c_attn", transposed=True)  # [n, n_heads, d_head]
    a = ops.attend_causally(q, k, v, scale=getattr(c, "attention_scale", None))  # [n, n_heads, d_head]
    return ops.linear(a, "attn.c_proj", "output_projection", c.d_model, bias=True, transposed=True)


def gpt_attention_scale(config: Mapping[str, Any], c: Any) -> float | None:
    """The scale of GPT-2's attention; None: 1 / √d_head. Source: modeling_gpt2.py of the reference, GPT2Attention."""
    if config.get("scale_attn_by_inverse_layer_idx"):
        raise ValueError("differs from layer to layer")
    return None if config.get("scale_attn_weights", True) else 1.0


def causal_masks(c: Any, attention: str = "attn") -> tuple[tuple[str, tuple[int, ...], int], ...]:
    """What older files of GPT-1 and GPT-2 store of every layer's attention."""
    return ((f"h.{{layer}}.{attention}.bias", (1, 1, c.n_positions, c.n_positions), c.n_layers),)
