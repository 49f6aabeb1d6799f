"""Seed-OSS: the Llama layout with a bias on q, k and v and another flag for the last matrix of attention."""

from paramcount.flow import Data
from paramcount.parts.decoder import AttentionDecoder
from paramcount.sizes import Flag, Natural, Positive, d_model_per_head, equal_to, hf, rotary
from paramcount.sizes.conditions import padding_in_table


class SeedOss(AttentionDecoder):
    """Source: modeling_seed_oss.py of the reference."""

    reference = "SeedOssForCausalLM"
    gguf = "seed_oss"
    is_section_type = True
    task_heads = "GENERIC_MOVED"
    rotated = "d_head"
    conditions = (padding_in_table(1),)

    n_kv_heads: Positive = hf(null=equal_to("n_heads"))
    d_head: Positive = hf(null=d_model_per_head)
    d_ff: Natural = hf()
    qkv_bias: Flag = hf("attention_bias")
    o_bias: Flag = hf("attention_out_bias")
    mlp_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary(positions=524288)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.qkv_bias, o_bias=c.o_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.mlp_bias)
