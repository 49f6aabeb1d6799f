"""Youtu-LLM: a dense decoder with latent attention in every layer and a tied head."""

from paramcount.declare import Data, parts, sizes


class Youtu(parts.LatentDecoder):
    """Source: modeling_youtu.py of the reference, YoutuDecoderLayer; the attention arXiv:2405.04434, section 2.1."""

    reference = "YoutuForCausalLM"
    gguf = "deepseek2"
    conditions = (
        sizes.not_null("num_key_value_heads"),
        sizes.latent_heads_stay_whole(16),
        sizes.padding_in_table(None),
    )

    rope = sizes.rotary()

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + parts.latent_attention(c, h, "self_attn.", bias=c.attention_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
