"""OLMo: the Llama layout with LayerNorms that have no parameters.

Queries, keys and values are clipped if the config sets clip_qkv.
"""

from typing import ClassVar

from paramcount.flow import Data, plain_norm
from paramcount.parts.decoder import AttentionDecoder
from paramcount.sizes import ABSENT, Flag, Natural, Positive, equal_to, hf, setting
from paramcount.sizes.conditions import padding_in_table


class Olmo(AttentionDecoder):
    """Source: arXiv:2402.00838, section 2.1."""

    reference = "OlmoForCausalLM"
    gguf = "olmo"
    is_section_type = True
    task_heads = "SCORED"
    linear_by_component = False
    rotated = "d_head"
    conditions = (padding_in_table(1),)

    n_kv_heads: Positive = hf(absent=equal_to("n_heads"), null=ABSENT)
    d_ff: Natural = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_eps: ClassVar[float] = 1e-5
    clip_qkv = setting("clip_qkv", default=None)

    def layer(c, x: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias, clip_qkv=c.clip_qkv)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))

    def norm(c, x: Data, name: str) -> Data:
        return plain_norm(x, "layer", c.norm_eps)
