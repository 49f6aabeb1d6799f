"""Emu3's language model: the Llama layout over one token embedding of words and image tokens."""

from paramcount.flow import Data
from paramcount.parts.decoder import AttentionDecoder
from paramcount.sizes import Flag, Positive, hf, rotary, setting
from paramcount.sizes.conditions import not_null, padding_in_table


class Emu3Text(AttentionDecoder):
    """Source: Emu3DecoderLayer of the reference, modeling_emu3.py; arXiv:2409.18869."""

    reference = "Emu3ForCausalLM"
    base_model = "Emu3TextModel"
    rotated = "d_head"
    conditions = (padding_in_table(151643), not_null("pad_token_id"))
    defaults = {"vocab_size": 184622, "d_model": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8}

    d_ff: Positive = hf(absent=14336)
    attention_bias: Flag = hf(absent=False, null=False)
    mlp_bias: Flag = hf(absent=False, null=False)
    tie_word_embeddings: Flag = hf(absent=False)

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(1_000_000, 9216)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.attention_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.mlp_bias)


class Emu3TextOf(Emu3Text):
    """The language model of a config that says how images become tokens too."""

    base_model = ""
    section = "text_config"
    unused_keys = ("/vq_config",)
