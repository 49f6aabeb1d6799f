"""GLM-4.7-Flash: DeepSeek-V3's latent attention and experts, layer by layer dense or not."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data
from paramcount.parts.decoders import decoder, dense_or_moe, usual_layer
from paramcount.parts.feed_forward import corrected_mixture
from paramcount.parts.mla import latent_attention
from paramcount.sizes import Condition, Flag, Indices, Natural, Positive, Sizes, derived, hf
from paramcount.sizes.conditions import grouped_routing, latent_heads_stay_whole, not_null, padding_in_table
from paramcount.sizes.layer_types import dense_by_type, needed
from paramcount.sizes.rules import check_experts_exist, check_rotated_in_pairs


class Glm4MoeLite(Sizes):
    """Source: modeling_glm4_moe_lite.py of the reference."""

    reference: ClassVar[str] = "Glm4MoeLiteForCausalLM"
    rotated: ClassVar[str | None] = "d_rope"
    conditions: ClassVar[tuple[Condition, ...]] = (
        grouped_routing(1, 1),
        latent_heads_stay_whole(20),
        padding_in_table(None),
        not_null("n_routed_experts", "n_group", "topk_group", "num_key_value_heads"),
    )

    vocab_size: Positive = hf(absent=154880)
    d_model: Positive = hf(absent=2048)
    n_layers: Positive = hf(absent=47)
    n_heads: Positive = hf(absent=20)
    d_q_lora: Positive | None = hf(absent=768)
    d_kv_lora: Positive = hf(absent=512)
    d_nope: Positive = hf(absent=192)
    d_rope: Positive = hf("head_dim", "qk_rope_head_dim", absent=64)
    d_v: Positive = hf(absent=256)
    d_ff: Positive = hf(absent=10240)
    dense_layers: Indices = derived(dense_by_type(lambda js, c: (0,), checked=False))
    d_expert: Positive = hf(absent=1536)
    n_routed_experts: Natural = hf("num_local_experts", "n_routed_experts", absent=64, null=needed("num_local_experts"))
    n_active_experts: Positive = hf(absent=4)
    n_shared_experts: Natural = hf(absent=1)
    attention_bias: Flag = hf(absent=False)
    tie_word_embeddings: Flag = hf(absent=False)

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, dense_or_moe(c.dense_layers, c.n_layers))

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_rope")
        check_experts_exist(c)


def layer(c: Any, kind: str, x: Data) -> Data:
    mixture = (lambda h: corrected_mixture(c, h, "mlp.")) if kind == "moe" else None
    return usual_layer(c, x, mixture, attend=latent_attention, bias=c.attention_bias)
