"""Seed-OSS: the Llama layout with a bias on q, k and v and another flag for the last matrix of attention."""

from paramcount.declare import Data, parts, sizes


class SeedOss(parts.AttentionDecoder):
    """Source: modeling_seed_oss.py of the reference."""

    reference = "SeedOssForCausalLM"
    gguf = "seed_oss"
    gguf_names = {"post_attention_layernorm": "post_attention_norm"}
    task_heads = "GENERIC_MOVED"
    conditions = (sizes.padding_in_table(1),)

    d_head: sizes.Positive = sizes.hf(null=sizes.d_model_per_head)
    qkv_bias: sizes.Flag = sizes.hf("attention_bias")
    o_bias: sizes.Flag = sizes.hf("attention_out_bias")
    mlp_bias: sizes.Flag = sizes.hf()

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.qkv_bias, o_bias=c.o_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.mlp_bias)
