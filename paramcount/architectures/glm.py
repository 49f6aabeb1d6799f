"""GLM-4: half of every head is rotated, q, k and v have a bias, gate and up are stored as one matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.attentions import partial_rope
from paramcount.parts.decoders import decoder, pre_norm, sandwich, usual_layer
from paramcount.parts.feed_forward import fused_gated_mlp
from paramcount.sizes import Condition, Flag, Natural, Positive, Sizes, derived, hf, rotary_part
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rules import check_at_most


def whole_pairs(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    width: int = rotary_part(0.5)(js, c)
    return width + width % 2


class Glm(Sizes):
    """Source: arXiv:2406.12793, section 2."""

    reference: ClassVar[str] = "GlmForCausalLM"
    conditions: ClassVar[tuple[Condition, ...]] = (padding_in_table(151329),)

    vocab_size: Positive = hf(absent=151552)
    d_model: Positive = hf(absent=4096)
    n_layers: Positive = hf(absent=40)
    n_heads: Positive = hf(absent=32)
    n_kv_heads: Positive = hf(absent=2)
    d_head: Positive = hf(absent=128)
    d_rope: Natural = derived(whole_pairs)
    d_ff: Positive = hf(absent=13696)
    qkv_bias: Flag = hf("attention_bias", absent=True)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, lambda c, kind, x: layer(c, x, pre_norm))

    def check(c) -> None:
        check_at_most(c, "d_rope", "d_head")


class Glm4(Glm):
    """GLM-4-0414: norms behind attention and MLP too. Source: modeling_glm4.py of the reference."""

    reference: ClassVar[str] = "Glm4ForCausalLM"

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, lambda c, kind, x: layer(c, x, four_norms))


def layer(c: Any, x: Data, arrange: Any) -> Data:
    def prepare(q: Data, k: Data) -> tuple[Data, Data]:
        return partial_rope(q, c.d_rope), partial_rope(k, c.d_rope)

    return usual_layer(
        c,
        x,
        lambda h: fused_gated_mlp(h, "mlp.", "mlp", c.d_ff),
        arrange=arrange,
        bias=c.qkv_bias,
        o_bias=False,
        prepare=prepare,
    )


def four_norms(x: Data, attention: Any, feed_forward: Any, *, bias: bool) -> Data:
    names = ("input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm")
    return sandwich(x, attention, feed_forward, names)
