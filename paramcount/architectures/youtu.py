"""Youtu-LLM: a dense decoder with latent attention in every layer and a tied head."""

from paramcount.flow import Data
from paramcount.parts.latent_decoder import LatentDecoder
from paramcount.parts.mla import latent_attention
from paramcount.sizes import Flag, Natural, Positive, hf, rotary
from paramcount.sizes.conditions import latent_heads_stay_whole, not_null, padding_in_table


class Youtu(LatentDecoder):
    """Source: modeling_youtu.py of the reference, YoutuDecoderLayer; the attention arXiv:2405.04434, section 2.1."""

    reference = "YoutuForCausalLM"
    gguf = "deepseek2"
    is_section_type = True
    rotated = "d_rope"
    conditions = (not_null("num_key_value_heads"), latent_heads_stay_whole(16), padding_in_table(None))

    n_heads: Positive = hf()
    d_q_lora: Positive | None = hf()
    d_kv_lora: Positive = hf()
    d_nope: Positive = hf()
    d_rope: Positive = hf()
    d_v: Positive = hf()
    d_ff: Natural = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary(positions=131072)

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + latent_attention(c, h, "self_attn.", bias=c.attention_bias, scale=c.attention_scale)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
