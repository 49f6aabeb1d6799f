"""ERNIE 4.5, dense: the Llama layout, neighbours rotated together, one flag for all biases."""

from paramcount.flow import Data, rope
from paramcount.parts.decoder import AttentionDecoder
from paramcount.sizes import Flag, Natural, Positive, d_model_per_head, equal_to, hf, rotary, setting
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_rotated_in_pairs


class Ernie45(AttentionDecoder):
    """Source: modeling_ernie4_5.py of the reference."""

    reference = "Ernie4_5ForCausalLM"
    gguf = "ernie4_5"
    is_section_type = True
    rotated = "d_head"
    conditions = (padding_in_table(0),)

    n_kv_heads: Positive = hf(null=equal_to("n_heads"))
    d_head: Positive = hf(null=d_model_per_head)
    d_ff: Natural = hf()
    bias: Flag = hf("use_bias", null=False)
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(500_000, positions=131072)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), bias=c.bias, rotate=c.rotate)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.bias)

    def rotate(c, x: Data) -> Data:
        return rope(x, c.rope, "interleaved")

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_head")
