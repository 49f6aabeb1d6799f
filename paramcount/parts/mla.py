"""Multi-head latent attention: keys and values through one small latent that is all the cache holds.

Source: DeepSeek-V2, arXiv:2405.04434, section 2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from paramcount.flow import (
    Data,
    Size,
    Unknown,
    Weight,
    activate,
    attend,
    join,
    linear,
    norm,
    rope,
    split,
    to_every_head,
)
from paramcount.parts.settings import get_setting, normalise


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
    turn: Callable[[Data], Data] | None = None,
    scale: float | Unknown | None = None,
) -> Data:
    """x to attended x, with n_heads, d_q_lora, d_kv_lora, d_nope, d_rope and d_v of c.

    d_q_lora is None if queries have no latent. Only d_rope of each head is rotated (`turn`: another function for that
    part). `q`, `q_latent`: queries or their latent, if the caller has computed them. `rope_norm`: a norm on the rotated
    key. `rescaled`: the KV latent is multiplied by a factor. `chosen`: the tokens that a query attends to; `index`:
    what is cached to choose them. `gate`: x and the attended values to the gated values. `sinks`: name of the
    additional logits, one per head. `output`: name of the last matrix.
    """
    turn = turn or (lambda y: rope(y, get_setting(c, "rope"), "interleaved"))
    q_nope, q_rope = split(queries(c, x, prefix, q_latent, bias=bias) if q is None else q, c.d_nope, c.d_rope)
    latent, k_rope = split(
        linear(x, prefix + "kv_a_proj_with_mqa", "qkv.kv_down", c.d_kv_lora + c.d_rope, bias=bias),
        c.d_kv_lora,
        c.d_rope,
    )
    if rope_norm:
        k_rope = normalise(c, k_rope, prefix + "k_rope_only_layernorm")
    latent, k_rope = normalise(c, latent, prefix + "kv_a_layernorm"), turn(k_rope)
    if rescaled:
        latent = activate(latent, "times a number")
    k, v = split(linear(latent, prefix + "kv_b_proj", "qkv.kv_up", (c.n_heads, c.d_nope + c.d_v)), c.d_nope, c.d_v)
    spread = to_every_head(k_rope, c.n_heads)
    k = join(k, spread)
    if chosen:
        k, v = Data("choose", (k, chosen), k.shape), Data("choose", (v, chosen), v.shape)
    sink = Weight(prefix + sinks, "other", (c.n_heads,)) if sinks else None
    a = attend(
        join(q_nope, turn(q_rope)), k, v, window=window, cached=(latent, k_rope, *index), sinks=sink, scale=scale
    )
    if gate:
        a = gate(x, a)
    return linear(a, prefix + output, "output_projection", x.shape[-1], bias=bias)


def query_latent(c: Any, x: Data, prefix: str, *, bias: bool = False) -> Data:
    """What queries are made of, and what an indexer reads."""
    down = linear(x, prefix + "q_a_proj", "qkv.q_down", c.d_q_lora, bias=bias)
    return normalise(c, down, prefix + "q_a_layernorm")


def queries(c: Any, x: Data, prefix: str, latent: Data | None = None, *, bias: bool = False) -> Data:
    """x to queries, through their latent where they have one."""
    width = (c.n_heads, c.d_nope + c.d_rope)
    if c.d_q_lora is None:
        return linear(x, prefix + "q_proj", "qkv.q", width)
    return linear(
        query_latent(c, x, prefix, bias=bias) if latent is None else latent, prefix + "q_b_proj", "qkv.q_up", width
    )


def choose_tokens(c: Any, x: Data, q_latent: Data, prefix: str) -> tuple[Data, Data]:
    """The lightning indexer of sparse attention, with n_index_heads, d_index, d_rope and n_chosen of c.

    Returns the n_chosen tokens that each token attends to and the index keys, which are cached.

    Source: DeepSeek-V3.2, arXiv:2512.02556, section 2.1.
    """
    d_rest = c.d_index - c.d_rope
    q_rope, q_rest = split(linear(q_latent, prefix + "wq_b", "other", (c.n_index_heads, c.d_index)), c.d_rope, d_rest)
    k_rope, k_rest = split(
        norm(linear(x, prefix + "wk", "other", c.d_index), prefix + "k_norm", bias=True), c.d_rope, d_rest
    )
    q, k = join(rope(q_rope), q_rest), join(rope(k_rope), k_rest)
    of_heads = linear(x, prefix + "weights_proj", "other", c.n_index_heads)
    return Data("choose tokens", (q, k, of_heads), (x.shape[0], c.n_chosen)), k


def sparse_attention(c: Any, x: Data, prefix: str, *, bias: bool = False, **options: Any) -> Data:
    """Latent attention to the tokens that an indexer of its own chooses."""
    latent = query_latent(c, x, prefix, bias=bias)
    chosen, key = choose_tokens(c, x, latent, prefix + "indexer.")
    return latent_attention(c, x, prefix, bias=bias, q_latent=latent, chosen=chosen, index=(key,), **options)
