"""Ministral: Mistral in whose layers a window or the full context is chosen one by one."""

from paramcount.architectures.mistral import Mistral
from paramcount.flow import Data
from paramcount.parts.decoders import layers_by_type
from paramcount.sizes import ABSENT, ConfigJson, FieldValues, Positive, Words, hf, per_layer
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_sliding_or_full


def all_sliding(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    return tuple("sliding_attention" for _ in per_layer(c))


class Ministral(Mistral):
    """Source: modeling_ministral.py of the reference, which needs head_dim and a window whatever the layers are."""

    reference = "MinistralForCausalLM"
    is_section_type = True
    task_heads = "GENERIC_MOVED"
    conditions = (padding_in_table(None),)

    d_head: Positive = hf()
    window: Positive = hf()
    layer_types: Words = hf(absent=all_sliding, null=ABSENT)

    kinds = layers_by_type
    check = check_sliding_or_full

    def layer(c, x: Data, kind: str = "sliding_attention") -> Data:
        window = c.window if kind == "sliding_attention" else None
        x = x + c.self_attention(c.norm(x, "input_layernorm"), window=window)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
