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
    defaults = {"vocab_size": 155136, "d_model": 4096, "n_layers": 64, "n_heads": 80}

    n_kv_heads: Positive = hf(absent=8, null=equal_to("n_heads"))
    d_head: Positive = hf(absent=128, null=d_model_per_head)
    d_ff: Natural = hf(absent=27648)
    qkv_bias: Flag = hf("attention_bias", absent=True)
    o_bias: Flag = hf("attention_out_bias", absent=False)
    mlp_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    rope = rotary(positions=524288)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.qkv_bias, o_bias=c.o_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.mlp_bias)
