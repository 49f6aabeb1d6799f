"""Falcon: attention and MLP side by side, behind one norm (7B) or one each (40B, 180B); few KV heads, tied head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value, make_choice_error
from paramcount.flow import Data, attend, fused, linear, norm, rope
from paramcount.parts.attentions import alibi
from paramcount.parts.decoders import decoder, parallel, pre_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ABSENT, Condition, Flag, Positive, Sizes, Word, d_model_per_head, derived, flag, hf
from paramcount.sizes.conditions import not_null
from paramcount.sizes.rules import check_even, check_heads_fill

NORMS = ("sequential", "parallel", "parallel_two_norms")
NAMES = ("word_embeddings", "h", "ln_f")


def switch(js: Mapping[str, Any], key: str, absent: bool) -> bool:
    """A flag that may be null, which means no."""
    return js.get(key, absent) is not None and flag(js, key, absent)


def n_kv_heads(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    given = js.get("num_kv_heads")
    if given is not None and type(given) is not int:
        raise ParamcountError(f"= {describe_value(given)}", where="num_kv_heads", expected="an integer or null")
    n: int = c["n_heads"] if given is None else given
    if switch(js, "new_decoder_architecture", False):
        return n
    if switch(js, "multi_query", True):
        return 1
    if n != c["n_heads"]:
        raise ParamcountError(
            f"= {n} without multi_query and the new decoder",
            where="num_kv_heads",
            expected=f"null or n_heads = {c['n_heads']}",
        )
    return n


def arrangement(js: Mapping[str, Any], c: Mapping[str, Any]) -> str:
    """Where the norms stand. What the reference builds otherwise misses a norm as soon as it runs."""
    new, side_by_side, n = (
        switch(js, "new_decoder_architecture", False),
        switch(js, "parallel_attn", True),
        js.get("num_ln_in_parallel_attn"),
    )
    if n is not None and type(n) is not int:
        raise ParamcountError(f"= {describe_value(n)}", where="num_ln_in_parallel_attn", expected="1, 2 or null")
    if not side_by_side:
        if new:
            raise ParamcountError("= false in the new decoder", where="parallel_attn", expected="true")
        return NORMS[0]
    n = 2 if n is None and new else n
    if n != 2 if not new else n == 1:
        return NORMS[1]
    if not new or n != 2:
        raise ParamcountError(
            f"= {n}", where="num_ln_in_parallel_attn", expected="1, 2 or null in the new decoder, else not 2"
        )
    return NORMS[2]


class Falcon(Sizes):
    """Source: arXiv:2311.16867."""

    reference: ClassVar[str] = "FalconForCausalLM"
    linear_by_component: ClassVar[bool] = False
    conditions: ClassVar[tuple[Condition, ...]] = (not_null("hidden_size"),)

    vocab_size: Positive = hf(absent=65024)
    d_model: Positive = hf("n_embed", "hidden_size", absent=4544, null=ABSENT)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=71)
    n_kv_heads: Positive = derived(n_kv_heads)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf("ffn_hidden_size", absent=lambda js, c: 4 * c["d_model"], null=ABSENT)
    norms: Word = derived(arrangement)
    alibi: Flag = hf("alibi", absent=False, null=False)
    bias: Flag = hf("bias", absent=False, null=False)
    tie_word_embeddings: Flag = hf(absent=True)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, prefix="transformer.", names=NAMES, norm_bias=True)

    def check(c) -> None:
        check_heads_fill(c)
        if c.norms not in NORMS:
            raise make_choice_error(c.norms, NORMS, where="norms")
        if not c.alibi:
            check_even(c, "d_head")


def layer(c: Any, kind: str, x: Data) -> Data:
    if c.norms == NORMS[2]:
        return two_norms(c, x)
    arrange = pre_norm if c.norms == NORMS[0] else parallel
    return arrange(x, lambda h: attention(c, h), lambda h: mlp(c, h), bias=True)


def two_norms(c: Any, x: Data) -> Data:
    """Attention and MLP side by side, each with its own norm."""
    return x + attention(c, norm(x, "ln_attn", bias=True)) + mlp(c, norm(x, "ln_mlp", bias=True))


def attention(c: Any, x: Data) -> Data:
    shared = (c.n_kv_heads, c.d_head)
    widths = {"qkv.q": (c.n_heads, c.d_head), "qkv.k": shared, "qkv.v": shared}
    q, k, v = fused(x, "self_attention.query_key_value", widths, bias=c.bias)
    a = attend(alibi(q), k, v) if c.alibi else attend(rope(q), rope(k), v)
    return linear(a, "self_attention.dense", "output_projection", c.d_model, bias=c.bias)


def mlp(c: Any, x: Data) -> Data:
    return plain_mlp(x, ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"), "mlp", c.d_ff, bias=c.bias)
