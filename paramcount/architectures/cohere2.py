"""Command R7B and Command A: Command R, three of four layers looking back over a window; the others rotate nothing."""

from typing import Any

from paramcount.flow import Data, layer_norm, rope, scale_by
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_type
from paramcount.sizes import ABSENT, SLIDING, Flag, Natural, Positive, Words, equal_to, hf
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.derivations import full_every_stated
from paramcount.sizes.rotary_settings import rotary
from paramcount.sizes.rules import check_layer_types, check_rotated_in_pairs
from paramcount.sizes.setting_fields import setting


class Cohere2(AttentionDecoder):
    """Source: modeling_cohere2.py of the reference; layers without positions arXiv:2501.18795."""

    reference = "Cohere2ForCausalLM"
    gguf = "cohere2"
    is_section_type = True
    rotated = "d_head"
    conditions = (padding_in_table(0),)

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_ff: Natural = hf()
    layer_types: Words = hf(absent=full_every_stated(4), null=ABSENT)
    window: Positive = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("layer_norm_eps", default=1e-5)
    rope = rotary(positions=8192)
    logit_scale = setting("logit_scale", default=0.0625)
    kinds = layers_by_type

    def layer(c, x: Data, kind: str) -> Data:
        h = c.norm(x, "input_layernorm")
        local: Any = {"window": c.window, "rotate": c.rotate} if kind == "sliding_attention" else {"rotate": False}
        a = c.self_attention(h, bias=c.attention_bias, **local)
        return x + a + c.gated_mlp(h)

    def rotate(c, x: Data) -> Data:
        return rope(x, c.rope, "interleaved")

    def norm(c, x: Data, name: str) -> Data:
        return layer_norm(x, name, c.norm_eps, bias=False)

    def head(c, x: Data) -> Data:
        return scale_by(super().head(x), c.logit_scale, "times logit_scale")

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_head")
        check_layer_types(c, "layer_types", "n_layers", SLIDING)
