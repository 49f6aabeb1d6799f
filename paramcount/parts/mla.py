"""Multi-head latent attention: keys and values through one small latent that is all the cache holds.

Source: DeepSeek-V2, arXiv:2405.04434, section 2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from paramcount import flow as ops
from paramcount import parts
from paramcount.flow import Data

LATENT_EPS = 1e-6  # of norms of latents in DeepSeek's code, whatever rms_norm_eps is
DOWN = "kv_a_proj_with_mqa"
NO_MASK = ops.Mask()
Rotate = Callable[[Data], Data]


class Latent(NamedTuple):
    """Sizes of one layer's MLA, for models whose layers differ: `latent_attention` reads it instead of the config."""

    n_heads: ops.Size
    d_q_lora: ops.Size | None
    d_kv_lora: ops.Size
    d_nope: ops.Size
    d_rope: ops.Size
    d_v: ops.Size


def latent_attention(
    c: Any,
    x: Data,
    prefix: str,
    *,
    bias: bool = False,
    q: Data | None = None,
    turn: Rotate | None = None,
    chosen: Data | None = None,
    gate: Callable[[Data, Data], Data] | None = None,
) -> Data:
    """x to attended x, with n_heads, d_q_lora, d_kv_lora, d_nope, d_rope and d_v of c, and its attention_scale.

    `q`: queries, if the caller has computed them. `turn`: another rotation. `chosen`: the tokens that a query attends
    to. `gate`: x and the attended values to the gated values.
    """
    q = queries(c, x, prefix, bias=bias) if q is None else q
    latents = cache_latents(c, x, prefix, bias=bias, turn=turn)
    k, v = expand_latents(c, latents, prefix)  # [m, n_heads, d_nope + d_rope] and [m, n_heads, d_v]
    q = turn_queries(c, q, turn)  # [n, n_heads, d_nope + d_rope]
    a = attend_to_chosen(q, k, v, chosen, scale=getattr(c, "attention_scale", None))  # [n, n_heads, d_v]
    return parts.project_output(gate(x, a) if gate else a, prefix + "o_proj", x.shape[-1], bias=bias)


def cache_latents(
    c: Any,
    x: Data,
    prefix: str,
    *,
    bias: bool = False,
    eps: float | ops.Unknown = LATENT_EPS,
    turn: Rotate | None = None,
    mask: ops.Mask = NO_MASK,
    rescaled: bool = False,
) -> tuple[Data, ...]:
    """The KV latent [m, d_kv_lora] and, if d_rope is not None, the rotated key [m, d_rope] of earlier tokens, too.

    `eps`: of the norm of the latent. `mask`: through which later tokens see them. `rescaled`: the latent is multiplied
    by √(d_model / d_kv_lora).
    """
    d_rope = getattr(c, "d_rope", None)
    down = ops.linear(
        x, prefix + DOWN, "qkv.kv_down", c.d_kv_lora if d_rope is None else c.d_kv_lora + d_rope, bias=bias
    )
    latent, *k_rope = (down,) if d_rope is None else ops.split(down, c.d_kv_lora, d_rope)
    latent = ops.rms_norm(latent, prefix + "kv_a_layernorm", eps)
    latent = rescale(latent, x.shape[-1]) if rescaled else latent
    return ops.cache(latent, mask), *(ops.cache((turn or rotate_pairs(c))(y), mask) for y in k_rope)


def expand_latents(c: Any, latents: tuple[Data, ...], prefix: str) -> tuple[Data, Data]:
    """Keys [m, n_heads, d_nope + d_rope] and values [m, n_heads, d_v] of the KV latent and of the rotated key, if there
    is one."""
    latent, *rotated = latents
    k, v = ops.split(
        ops.linear(latent, prefix + "kv_b_proj", "qkv.kv_up", (c.n_heads, c.d_nope + c.d_v)), c.d_nope, c.d_v
    )
    return (ops.join(k, ops.to_every_head(rotated[0], c.n_heads)) if rotated else k), v


def turn_queries(c: Any, q: Data, turn: Rotate | None = None) -> Data:
    """Queries whose last d_rope are rotated."""
    if getattr(c, "d_rope", None) is None:
        return q
    q_nope, q_rope = ops.split(q, c.d_nope, c.d_rope)
    return ops.join(q_nope, (turn or rotate_pairs(c))(q_rope))


def attend_to_chosen(
    q: Data, k: Data, v: Data, chosen: Data | None = None, *, scale: float | ops.Unknown | None = None
) -> Data:
    """Causal attention, without a cache of its own, to the tokens that were chosen for each query."""
    s = ops.scores(q, k, scale)  # [n_heads, n, m]
    s = s if chosen is None else ops.hide(s, ops.Chosen(chosen))
    return ops.weighted_sum(ops.softmax(s, mask=ops.Causal()), v)


def rotate_pairs(c: Any, pairing: Literal["halves", "interleaved"] | None = None) -> Rotate:
    """The rotation of c: of neighbouring values unless a setting or `pairing` says otherwise."""
    found: Any = pairing or getattr(c, "pairing", "interleaved")
    return lambda x: ops.rope(x, parts.get_setting(c, "rope"), found)


def rescale(latent: Data, d_model: ops.Size) -> Data:
    """A latent times √(d_model / its size). Source: arXiv:2509.01322, section 2.3.2."""
    return ops.scale_by_root(latent, d_model, "times √(d_model / rank)", over=latent.shape[-1])


def query_latent(c: Any, x: Data, prefix: str, *, bias: bool = False, eps: float | ops.Unknown = LATENT_EPS) -> Data:
    """What queries are made of, and what an indexer reads."""
    return ops.rms_norm(
        ops.linear(x, prefix + "q_a_proj", "qkv.q_down", c.d_q_lora, bias=bias), prefix + "q_a_layernorm", eps
    )


def queries(
    c: Any,
    x: Data,
    prefix: str,
    latent: Data | None = None,
    *,
    bias: bool = False,
    eps: float | ops.Unknown = LATENT_EPS,
) -> Data:
    """x to queries, through their latent if they have one."""
    d_rope = getattr(c, "d_rope", None)
    width = (c.n_heads, c.d_nope if d_rope is None else c.d_nope + d_rope)
    if c.d_q_lora is None:
        return ops.linear(x, prefix + "q_proj", "qkv.q", width)
    if latent is None:
        latent = query_latent(c, x, prefix, bias=bias, eps=eps)
    return ops.linear(latent, prefix + "q_b_proj", "qkv.q_up", width)


def index_tokens(
    c: Any,
    x: Data,
    q_latent: Data,
    prefix: str,
    *,
    turn: Rotate | None = None,
    rotates_end: bool = False,
    eps: float | ops.Unknown = LATENT_EPS,
) -> Data:
    """The lightning indexer of sparse attention, with n_index_heads, d_index, d_rope and n_chosen of c: [n, n_chosen].

    Its keys are cached. `turn`: the rotation
    (default: in halves, whatever that of the attention is). `rotates_end`: of the last d_rope of a head, not the first.

    Source: DeepSeek-V3.2, arXiv:2512.02556, section 2.1.
    """
    turn = turn or rotate_pairs(c, "halves")

    def rotate(y: Data) -> Data:
        if rotates_end:
            kept, turned = ops.split(y, c.d_index - c.d_rope, c.d_rope)
            return ops.join(kept, turn(turned))
        turned, kept = ops.split(y, c.d_rope, c.d_index - c.d_rope)
        return ops.join(turn(turned), kept)

    q = rotate(ops.linear(q_latent, prefix + "wq_b", "other", (c.n_index_heads, c.d_index)))
    k = ops.cache(rotate(ops.layer_norm(ops.linear(x, prefix + "wk", "other", c.d_index), prefix + "k_norm", eps)))
    of_heads = ops.linear(x, prefix + "weights_proj", "other", c.n_index_heads)
    return ops.choose_tokens(q, k, of_heads, c.n_chosen)


def sparse_attention(c: Any, x: Data, prefix: str, *, bias: bool = False) -> Data:
    """Latent attention to the tokens that an indexer of its own chooses."""
    latent = query_latent(c, x, prefix, bias=bias)
    chosen = index_tokens(c, x, latent, prefix + "indexer.")
    return latent_attention(c, x, prefix, bias=bias, q=queries(c, x, prefix, latent, bias=bias), chosen=chosen)
