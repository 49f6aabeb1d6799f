"""Multi-head latent attention: keys and values through one small latent that is all the cache holds.

Source: DeepSeek-V2, arXiv:2405.04434, section 2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from paramcount.flow import (
    Data,
    Size,
    Unknown,
    Weight,
    attend,
    choose_tokens,
    join,
    layer_norm,
    linear,
    rms_norm,
    rope,
    scale_by_root,
    split,
    to_every_head,
)
from paramcount.parts.settings import get_setting

LATENT_EPS = 1e-6  # of norms of latents in DeepSeek's code, whatever rms_norm_eps is
Rotate = Callable[[Data], Data]


class Latent(NamedTuple):
    """Sizes of one layer's MLA, for models whose layers differ: `latent_attention` reads it instead of the config."""

    n_heads: Size
    d_q_lora: Size | None
    d_kv_lora: Size
    d_nope: Size
    d_rope: Size
    d_v: Size


def latent_attention(
    c: Any,
    x: Data,
    prefix: str,
    *,
    bias: bool = False,
    q: Data | None = None,
    q_latent: Data | None = None,
    rope_norm: bool = False,
    rescaled: bool = False,
    chosen: Data | None = None,
    index: tuple[Data, ...] = (),
    window: Size | None = None,
    gate: Callable[[Data, Data], Data] | None = None,
    sinks: str = "",
    output: str = "o_proj",
    turn: Rotate | None = None,
    scale: float | Unknown | None = None,
    eps: float | Unknown = LATENT_EPS,
) -> Data:
    """x to attended x, with n_heads, d_q_lora, d_kv_lora, d_nope, d_rope and d_v of c.

    d_q_lora is None if queries have no latent. Only d_rope of each head is rotated (`turn`: another function for that
    part); without d_rope nothing is. `q`, `q_latent`: queries or their latent, if the caller has computed them.
    `rope_norm`: a norm on the rotated key. `rescaled`: the KV latent is multiplied by √(d_model / d_kv_lora).
    `chosen`: the tokens that a query attends to; `index`: what is cached to choose them. `gate`: x and the attended
    values to the gated values. `sinks`: name of the additional logits, one per head. `output`: name of the last matrix.
    `eps`: of the norms of latents.
    """
    turn = turn or rotate_pairs(c)
    d_rope = getattr(c, "d_rope", None)
    d_down = c.d_kv_lora if d_rope is None else c.d_kv_lora + d_rope
    if q is None:
        q = queries(c, x, prefix, q_latent, bias=bias, eps=eps)
    latent = linear(x, prefix + "kv_a_proj_with_mqa", "qkv.kv_down", d_down, bias=bias)
    rotated: list[Data] = []
    if d_rope is not None:
        latent, k_rope = split(latent, c.d_kv_lora, d_rope)
        if rope_norm:
            k_rope = rms_norm(k_rope, prefix + "k_rope_only_layernorm", eps)
        rotated = [turn(k_rope)]
    latent = rms_norm(latent, prefix + "kv_a_layernorm", eps)
    if rescaled:
        latent = rescale(latent, x.shape[-1])
    k, v = split(linear(latent, prefix + "kv_b_proj", "qkv.kv_up", (c.n_heads, c.d_nope + c.d_v)), c.d_nope, c.d_v)
    if d_rope is not None:
        q_nope, q_rope = split(q, c.d_nope, d_rope)
        q, k = join(q_nope, turn(q_rope)), join(k, to_every_head(rotated[0], c.n_heads))
    a = attend(
        q,
        k,
        v,
        window=window,
        cached=(latent, *rotated, *index),
        sinks=Weight(prefix + sinks, "other", (c.n_heads,)) if sinks else None,
        scale=scale,
        chosen=chosen,
    )
    if gate:
        a = gate(x, a)
    return linear(a, prefix + output, "output_projection", x.shape[-1], bias=bias)


def rotate_pairs(c: Any, pairing: Literal["halves", "interleaved"] | None = None) -> Rotate:
    """The rotation of c: of neighbouring values unless a setting or `pairing` says otherwise."""
    found: Any = pairing or getattr(c, "pairing", "interleaved")
    return lambda x: rope(x, get_setting(c, "rope"), found)


def rescale(latent: Data, d_model: Size) -> Data:
    """A latent times √(d_model / its size). Source: arXiv:2509.01322, section 2.3.2."""
    return scale_by_root(latent, d_model, "times √(d_model / rank)", over=latent.shape[-1])


def query_latent(c: Any, x: Data, prefix: str, *, bias: bool = False, eps: float | Unknown = LATENT_EPS) -> Data:
    """What queries are made of, and what an indexer reads."""
    return rms_norm(linear(x, prefix + "q_a_proj", "qkv.q_down", c.d_q_lora, bias=bias), prefix + "q_a_layernorm", eps)


def queries(
    c: Any,
    x: Data,
    prefix: str,
    latent: Data | None = None,
    *,
    bias: bool = False,
    eps: float | Unknown = LATENT_EPS,
) -> Data:
    """x to queries, through their latent if they have one."""
    d_rope = getattr(c, "d_rope", None)
    width = (c.n_heads, c.d_nope if d_rope is None else c.d_nope + d_rope)
    if c.d_q_lora is None:
        return linear(x, prefix + "q_proj", "qkv.q", width)
    if latent is None:
        latent = query_latent(c, x, prefix, bias=bias, eps=eps)
    return linear(latent, prefix + "q_b_proj", "qkv.q_up", width)


def index_tokens(
    c: Any,
    x: Data,
    q_latent: Data,
    prefix: str,
    *,
    turn: Rotate | None = None,
    rotates_end: bool = False,
    eps: float | Unknown = LATENT_EPS,
) -> tuple[Data, Data]:
    """The lightning indexer of sparse attention, with n_index_heads, d_index, d_rope and n_chosen of c.

    Returns the n_chosen tokens that each token attends to and the index keys, which are cached. `turn`: the rotation
    (default: in halves, whatever that of the attention is). `rotates_end`: of the last d_rope of a head, not the first.

    Source: DeepSeek-V3.2, arXiv:2512.02556, section 2.1.
    """
    turn = turn or rotate_pairs(c, "halves")

    def rotate(y: Data) -> Data:
        if rotates_end:
            kept, turned = split(y, c.d_index - c.d_rope, c.d_rope)
            return join(kept, turn(turned))
        turned, kept = split(y, c.d_rope, c.d_index - c.d_rope)
        return join(turn(turned), kept)

    q = rotate(linear(q_latent, prefix + "wq_b", "other", (c.n_index_heads, c.d_index)))
    k = rotate(layer_norm(linear(x, prefix + "wk", "other", c.d_index), prefix + "k_norm", eps))
    of_heads = linear(x, prefix + "weights_proj", "other", c.n_index_heads)
    return choose_tokens(q, k, of_heads, c.n_chosen), k


def sparse_attention(c: Any, x: Data, prefix: str, *, bias: bool = False, **options: Any) -> Data:
    """Latent attention to the tokens that an indexer of its own chooses."""
    latent = query_latent(c, x, prefix, bias=bias)
    chosen, key = index_tokens(c, x, latent, prefix + "indexer.")
    return latent_attention(c, x, prefix, bias=bias, q_latent=latent, chosen=chosen, index=(key,), **options)
