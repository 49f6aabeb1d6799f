"""DiffLlama: Llama with differential attention.

Every head attends twice and subtracts the second result from the first, scaled by a learned factor per layer.
"""

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


def nothing_is_dropped(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if js.get("attention_dropout", 0.0) > 0:
        raise sizes.make_value_error(js["attention_dropout"], "attention_dropout", "0")


class DiffLlama(parts.AttentionBias, parts.AttentionDecoder):
    """Source: arXiv:2410.05258, section 2.1; DiffLlamaDecoderLayer of the reference."""

    reference = "DiffLlamaForCausalLM"
    task_heads = "GENERIC_MOVED"
    conditions = (nothing_is_dropped, sizes.padding_in_table(None))

    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.ABSENT)

    def layer(c, x: Data) -> Data:
        x = x + c.attention(c.norm(x, "input_layernorm"), "self_attn.")
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))

    def attention(c, x: Data, prefix: str) -> Data:
        """Every head reads two value heads, one of each half. The second half of the heads is subtracted from the
        first.
        """
        q = ops.linear(x, prefix + "q_proj", "qkv.q", (c.n_heads, c.d_head), bias=c.attention_bias)
        k = ops.linear(x, prefix + "k_proj", "qkv.k", (c.n_kv_heads, c.d_head), bias=c.attention_bias)
        v = ops.linear(x, prefix + "v_proj", "qkv.v", (c.n_kv_heads, c.d_head), bias=c.attention_bias)
        k, v = ops.cache(ops.rope(k, c.rope)), ops.cache(v)  # [m, n_kv_heads, d_head]
        a = ops.attend(ops.rope(q, c.rope), k, ops.to_pairs_of_heads(v), mask=ops.Causal())  # [n, n_heads, 2 · d_head]
        a = ops.differential(a, prefix, c.d_head, c.norm_eps)
        return ops.linear(a, prefix + "o_proj", "output_projection", c.d_model, bias=c.attention_bias)

    def check(c) -> None:
        if c.n_kv_heads % 2:
            raise ParamcountError(
                f"= {c.n_kv_heads}",
                where=FieldName("n_kv_heads"),
                expected="an even number, because value heads form two halves",
            )
