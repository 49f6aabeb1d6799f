"""Falcon: attention and MLP side by side, behind one norm (7B) or one each (40B, 180B); few KV heads, tied head."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError, make_choice_error

NORMS = ("sequential", "parallel", "parallel_two_norms")


def switch(js: sizes.ConfigJson, key: str, absent: bool) -> bool:
    """A flag that may be null, which means no."""
    return js.get(key, absent) is not None and sizes.flag(js, key, absent)


def n_kv_heads(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    given = js.get("num_kv_heads")
    if given is not None and type(given) is not int:
        raise sizes.make_value_error(given, "num_kv_heads", "an integer or null")
    n: int = c["n_heads"] if given is None else given
    if switch(js, "new_decoder_architecture", False):
        return n
    if switch(js, "multi_query", True):
        return 1
    if n != c["n_heads"]:
        raise ParamcountError(
            f"= {n}, but multi_query and new_decoder_architecture are false",
            where="num_kv_heads",
            expected=f"null or n_heads = {c['n_heads']}",
        )
    return n


def arrangement(js: sizes.ConfigJson, c: sizes.FieldValues) -> str:
    """Where the norms stand. What the reference builds otherwise misses a norm as soon as it runs."""
    new, side_by_side, n = (
        switch(js, "new_decoder_architecture", False),
        switch(js, "parallel_attn", True),
        js.get("num_ln_in_parallel_attn"),
    )
    if n is not None and type(n) is not int:
        raise sizes.make_value_error(n, "num_ln_in_parallel_attn", "1, 2 or null")
    if not side_by_side:
        if new:
            raise ParamcountError("= false with new_decoder_architecture", where="parallel_attn", expected="true")
        return NORMS[0]
    n = 2 if n is None and new else n
    if n != 2 if not new else n == 1:
        return NORMS[1]
    if not new or n != 2:
        raise ParamcountError(
            f"= {n}",
            where="num_ln_in_parallel_attn",
            expected="1, 2 or null with new_decoder_architecture, otherwise not 2",
        )
    return NORMS[2]


class FalconLayers(parts.Decoder):
    """Attention and MLP of Falcon, whatever its config calls them."""

    prefix = "transformer."
    names = ("word_embeddings", "h", "ln_f")

    activation = sizes.setting("activation", default="gelu")
    norm_eps = sizes.setting("layer_norm_epsilon", default=1e-5)
    norm = parts.use_layer_norm

    def attend(c: Any, x: Data) -> Data:
        shared = (c.n_kv_heads, c.d_head)
        widths = {"qkv.q": (c.n_heads, c.d_head), "qkv.k": shared, "qkv.v": shared}
        q, k, v = ops.fused(x, "self_attention.query_key_value", widths, bias=c.bias, groups=c.n_kv_heads)
        if c.alibi:
            a = ops.attend_causally(q, k, v, ops.alibi(q, c.n_heads, over_root=c.d_head))  # [n, n_heads, d_head]
        else:
            a = ops.attend_causally(ops.rope(q, c.rope), ops.rope(k, c.rope), v)  # [n, n_heads, d_head]
        return ops.linear(a, "self_attention.dense", "output_projection", c.d_model, bias=c.bias)

    def feed_forward(c: Any, x: Data) -> Data:
        names = ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")
        return parts.plain_mlp(x, names, "mlp", c.d_ff, activation=c.activation, bias=c.bias)

    def two_norms(c, x: Data) -> Data:
        """Attention and MLP side by side, each with its own norm."""
        return x + c.attend(c.norm(x, "ln_attn")) + c.feed_forward(c.norm(x, "ln_mlp"))


class Falcon(FalconLayers):
    """Source: arXiv:2311.16867."""

    reference = "FalconForCausalLM"
    gguf = "falcon"
    task_heads = "GPT_SPAN"
    copied_modules = ("modeling_falcon",)
    linear_by_component = False
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (
        sizes.not_null("hidden_size", "layer_norm_epsilon", "activation", "attention_dropout", "hidden_dropout"),
    )

    d_model: sizes.Positive = sizes.hf("n_embed", "hidden_size", null=sizes.ABSENT)
    n_heads: sizes.Positive = sizes.hf()
    n_kv_heads: sizes.Positive = sizes.derived(n_kv_heads)
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf("ffn_hidden_size", absent=lambda js, c: 4 * c["d_model"], null=sizes.ABSENT)
    norms: sizes.Word = sizes.derived(arrangement)
    alibi: sizes.Flag = sizes.hf("alibi", null=False)
    bias: sizes.Flag = sizes.hf("bias", null=False)

    def layer(c, x: Data) -> Data:
        if c.norms == "parallel_two_norms":
            return c.two_norms(x)
        h = c.norm(x, "input_layernorm")
        if c.norms == "parallel":
            return x + c.attend(h) + c.feed_forward(h)
        x = x + c.attend(h)
        return x + c.feed_forward(c.norm(x, "post_attention_layernorm"))

    def check(c) -> None:
        sizes.check_heads_fill(c)
        if c.norms not in NORMS:
            raise make_choice_error(c.norms, NORMS, where=FieldName("norms"))
        if not c.alibi:
            sizes.check_even(c, "d_head")
