"""Qwen 3: the Llama layout with a norm over d_head on every query and key head."""

from __future__ import annotations

from typing import ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import attention
from paramcount.parts.decoder import Decoder
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes import Condition, Flag, Positive, equal_to, hf
from paramcount.sizes.conditions import attention_words, padding_in_table, sliding_layers_have_a_window
from paramcount.sizes.setting_fields import rotary


class Qwen3(Decoder):
    """Source: arXiv:2505.09388, section 2."""

    reference: ClassVar[str] = "Qwen3ForCausalLM"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (
        attention_words("full_attention", "sliding_attention"),
        sliding_layers_have_a_window,
        padding_in_table(None),
    )

    vocab_size: Positive = hf(absent=151936)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=32)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=32, null=equal_to("n_heads"))
    d_head: Positive = hf(absent=128)
    d_ff: Positive = hf(absent=22016)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    rope: ClassVar = rotary(positions=32768)

    def layer(c, x: Data) -> Data:
        x = x + attention(c, c.norm(x, "input_layernorm"), "self_attn.", bias=c.attention_bias, qk_norm=True)
        return x + gated_mlp(c.norm(x, "post_attention_layernorm"), "mlp.", "mlp", c.d_ff, activation=c.activation)
