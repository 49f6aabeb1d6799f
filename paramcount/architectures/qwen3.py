"""Qwen 3: the Llama layout with a norm over d_head on every query and key head."""

from typing import ClassVar

from paramcount.declare import Data, parts, sizes

SMALL_QWEN_3 = {
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
}


class Qwen3(parts.AttentionBias, parts.AttentionDecoder):
    """Source: arXiv:2505.09388, section 2."""

    reference = "Qwen3ForCausalLM"
    gguf = "qwen3"
    task_heads = "GENERIC_MOVED"
    published_heads = "QWEN3"
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (
        sizes.attention_words("full_attention", "sliding_attention"),
        sizes.sliding_layers_have_a_window,
        sizes.one_rope,
        sizes.padding_in_table(None),
    )
    defaults = {"d_head": 128}

    layer_types: ClassVar = sizes.setting(default=sizes.sliding_types())
    window = sizes.setting(default=sizes.used_window(4096))
    kinds = parts.layers_by_setting
    norms_heads = True

    def layer(c, x: Data, kind: str = "full_attention") -> Data:
        window = c.window if kind == "sliding_attention" else None
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, window=window, bias=c.attention_bias)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
