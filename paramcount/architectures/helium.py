"""Helium: the Llama layout, neighbours rotated together."""

from paramcount.flow import Data, rope
from paramcount.parts.decoder import AttentionDecoder
from paramcount.sizes import Flag, Natural, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_heads_fill, check_rotated_in_pairs


class Helium(AttentionDecoder):
    """Source: modeling_helium.py of the reference."""

    reference = "HeliumForCausalLM"
    is_section_type = True
    task_heads = "GENERIC"
    rotated = "d_head"
    conditions = (padding_in_table(3),)
    defaults = {"d_head": 128}

    d_ff: Natural = hf()
    qkv_bias: Flag = hf("attention_bias")
    mlp_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-8)
    rope = rotary(100_000, positions=4096)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.qkv_bias, o_bias=False, rotate=c.rotate)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.mlp_bias)

    def rotate(c, x: Data) -> Data:
        return rope(x, c.rope, "interleaved")

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_head")
        check_heads_fill(c)  # the last matrix of attention is square
