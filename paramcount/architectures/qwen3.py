"""Qwen 3: the Llama layout with a norm over d_head on every query and key head."""

from typing import ClassVar

from paramcount.flow import Data
from paramcount.parts.decoder import AttentionDecoder
from paramcount.parts.decoders import layers_by_setting
from paramcount.sizes import Condition, Flag, Natural, Positive, equal_to, hf, rotary, setting
from paramcount.sizes.conditions import attention_words, one_rope, padding_in_table, sliding_layers_have_a_window
from paramcount.sizes.layer_types import sliding_types, used_window

SMALL_QWEN_3 = {
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
}


class Qwen3(AttentionDecoder):
    """Source: arXiv:2505.09388, section 2."""

    reference = "Qwen3ForCausalLM"
    gguf = "qwen3"
    is_section_type = True
    task_heads = "GENERIC_MOVED"
    rotated = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (
        attention_words("full_attention", "sliding_attention"),
        sliding_layers_have_a_window,
        one_rope,
        padding_in_table(None),
    )
    defaults = {"d_head": 128}

    n_kv_heads: Positive = hf(null=equal_to("n_heads"))
    d_ff: Natural = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary(positions=32768)
    layer_types: ClassVar = setting(default=sliding_types())
    window = setting(default=used_window(4096))
    kinds = layers_by_setting

    def layer(c, x: Data, kind: str = "full_attention") -> Data:
        window = c.window if kind == "sliding_attention" else None
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, window=window, bias=c.attention_bias, qk_norm=True)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"))
