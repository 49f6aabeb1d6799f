"""Multi-head latent attention: keys and values through one small latent that is all the cache holds.

Source: DeepSeek-V2, arXiv:2405.04434, section 2.1.
"""

from __future__ import annotations

from typing import Any

from paramcount.flow import Data, attend, join, linear, norm, rope, split


def latent_attention(c: Any, x: Data, prefix: str, *, bias: bool = False) -> Data:
    """x to attended x, with n_heads, d_q_lora, d_kv_lora, d_nope, d_rope and d_v of c.
    d_q_lora is None where queries have no latent of their own. Only d_rope of each head is rotated."""
    d_q = c.d_nope + c.d_rope
    if c.d_q_lora is None:
        q = linear(x, prefix + "q_proj", "qkv.q", (c.n_heads, d_q))
    else:
        latent = norm(linear(x, prefix + "q_a_proj", "qkv.q_down", c.d_q_lora, bias=bias), prefix + "q_a_layernorm")
        q = linear(latent, prefix + "q_b_proj", "qkv.q_up", (c.n_heads, d_q))
    q_nope, q_rope = split(q, c.d_nope, c.d_rope)
    latent, k_rope = split(linear(x, prefix + "kv_a_proj_with_mqa", "qkv.kv_down", c.d_kv_lora + c.d_rope, bias=bias), c.d_kv_lora, c.d_rope)
    latent, k_rope = norm(latent, prefix + "kv_a_layernorm"), rope(k_rope)
    k, v = split(linear(latent, prefix + "kv_b_proj", "qkv.kv_up", (c.n_heads, c.d_nope + c.d_v)), c.d_nope, c.d_v)
    spread = Data("to every head", (k_rope,), (*k.shape[:-1], c.d_rope))
    a = attend(join(q_nope, rope(q_rope)), join(k, spread), v, cached=(latent, k_rope))
    return linear(a, prefix + "o_proj", "output_projection", x.shape[-1], bias=bias)
