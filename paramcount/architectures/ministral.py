"""Ministral: Mistral in whose layers a window or the full context is chosen one by one."""

from paramcount.architectures.mistral import Mistral
from paramcount.declare import Data, parts, sizes


class Ministral(parts.SlidingLayers, Mistral):
    """Source: modeling_ministral.py of the reference, which needs head_dim and a window whatever the layers are."""

    reference = "MinistralForCausalLM"
    task_heads = "GENERIC_MOVED"
    conditions = (sizes.padding_in_table(None),)

    d_head: sizes.Positive = sizes.hf()
    window: sizes.Positive = sizes.hf()
    layer_types: sizes.Words = sizes.hf(absent=sizes.words_by(lambda i, n: 0), null=sizes.ABSENT)

    def layer(c, x: Data, kind: str = "sliding_attention") -> Data:
        window = c.window if kind == "sliding_attention" else None
        x = x + c.self_attention(c.norm(x, "input_layernorm"), window=window)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
