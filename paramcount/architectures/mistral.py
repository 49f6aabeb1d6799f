"""Mistral: the Llama layout without biases, every layer looking back over a window where one is set."""

from typing import ClassVar

from paramcount.flow import Data
from paramcount.parts.decoder import AttentionDecoder
from paramcount.sizes import ABSENT, Condition, Flag, Natural, Positive, d_model_per_head, hf, rotary
from paramcount.sizes.conditions import one_mask, padding_in_table


class Mistral(AttentionDecoder):
    """Source: arXiv:2310.06825, section 2."""

    reference = "MistralForCausalLM"
    gguf = "llama mistral3"
    is_section_type = True
    task_heads = "GENERIC_SPAN"
    rotated = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(None), one_mask())

    d_head: Positive = hf(absent=d_model_per_head, null=ABSENT)
    d_ff: Natural = hf()
    window: Positive | None = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary(positions=131072)

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), window=c.window)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
