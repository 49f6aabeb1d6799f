"""Helium: the Llama layout, neighbours rotated together."""

from paramcount.declare import Data, ops, parts, sizes


class Helium(parts.AttentionDecoder):
    """Source: modeling_helium.py of the reference."""

    reference = "HeliumForCausalLM"
    task_heads = "GENERIC"
    conditions = (sizes.padding_in_table(3),)
    defaults = {"d_head": 128}

    qkv_bias: sizes.Flag = sizes.hf("attention_bias")
    mlp_bias: sizes.Flag = sizes.hf()

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.qkv_bias, o_bias=False)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.mlp_bias)

    def rotate(c, x: Data) -> Data:
        return ops.rope(x, c.rope, "interleaved")

    def check(c) -> None:
        sizes.check_rotated_in_pairs(c, "d_head")
        sizes.check_heads_fill(c)  # the last matrix of attention is square
