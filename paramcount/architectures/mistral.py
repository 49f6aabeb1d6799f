"""Mistral: the Llama layout without biases, every layer looking back over a window where one is set."""

from typing import ClassVar

from paramcount.declare import Data, parts, sizes


class Mistral(parts.AttentionDecoder):
    """Source: arXiv:2310.06825, section 2."""

    reference = "MistralForCausalLM"
    gguf = "llama mistral3"
    gguf_rope_factors = "llama3"
    task_heads = "GENERIC_SPAN"
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (sizes.padding_in_table(None), sizes.one_mask())

    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.ABSENT)
    window: sizes.Positive | None = sizes.hf()

    def layer(c, x: Data) -> Data:
        x = x + c.self_attention(c.norm(x, "input_layernorm"), window=c.window)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
