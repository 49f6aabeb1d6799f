"""Orion-14B: Llama's layers with LayerNorms that have a bias."""

from __future__ import annotations

from typing import ClassVar

from paramcount.flow import Data, layer_norm
from paramcount.parts.attentions import attention
from paramcount.parts.decoder import Decoder
from paramcount.parts.feed_forward import gated_mlp
from paramcount.sizes import Condition, Flag, Positive, d_model_per_head, derived, equal_to, hf
from paramcount.sizes.conditions import without_experts
from paramcount.sizes.rules import check_heads_fill
from paramcount.sizes.setting_fields import rotary, setting


class Orion(Decoder):
    """Source: modeling_orion.py of OrionStarAI/Orion-14B-Base."""

    reference: ClassVar[str] = "OrionForCausalLM of OrionStarAI/Orion-14B-Base"
    rotated: ClassVar[str | None] = "d_head"
    conditions: ClassVar[tuple[Condition, ...]] = (without_experts,)

    vocab_size: Positive = hf(absent=84608)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=40)
    n_heads: Positive = hf(absent=40)
    n_kv_heads: Positive = hf(absent=40, null=equal_to("n_heads"))
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=15360)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    norm_eps: ClassVar = setting("rms_norm_eps", default=1e-5)
    rope: ClassVar = rotary(positions=4096)

    def layer(c, x: Data) -> Data:
        x = x + attention(c, c.norm(x, "input_layernorm"), "self_attn.", bias=c.attention_bias)
        h = c.norm(x, "post_attention_layernorm")
        return x + gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation)

    def norm(c, x: Data, name: str) -> Data:
        return layer_norm(x, name, c.norm_eps)

    def check(c) -> None:
        check_heads_fill(c)
