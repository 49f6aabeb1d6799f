"""A.X K1: DeepSeek-V3 with a norm behind every mixture of experts, inside the residual."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.architectures.glm4_moe_lite import Glm4MoeLite
from paramcount.flow import Data, norm
from paramcount.parts.decoders import decoder, dense_or_moe, usual_layer
from paramcount.parts.feed_forward import corrected_mixture
from paramcount.parts.mla import latent_attention
from paramcount.sizes import Condition, Indices, Positive, derived, hf
from paramcount.sizes.conditions import angles_fit, grouped_routing, latent_heads_stay_whole, not_null, padding_in_table
from paramcount.sizes.layer_types import dense_by_type, every_sparse


class AXK1(Glm4MoeLite):
    """Source: modeling_axk1.py of the reference."""

    reference: ClassVar[str] = "AXK1ForCausalLM"
    conditions: ClassVar[tuple[Condition, ...]] = (
        grouped_routing(8, 4),
        latent_heads_stay_whole(64),
        padding_in_table(None),
        angles_fit,
        not_null("n_routed_experts", "n_group", "topk_group", "num_key_value_heads"),
    )
    defaults: ClassVar = {
        "vocab_size": 163840, "d_model": 7168, "n_layers": 61, "n_heads": 64, "d_q_lora": 1536, "d_kv_lora": 512,
        "d_nope": 128, "d_rope": 64, "d_v": 128,
        "d_ff": 18432, "d_expert": 2048, "n_routed_experts": 192, "n_active_experts": 8,
    }  # fmt: skip

    d_q_lora: Positive = hf()
    d_rope: Positive = hf()
    dense_layers: Indices = derived(dense_by_type(every_sparse, checked=False))

    def forward(c, tokens: Data) -> Data:
        return decoder(c, tokens, layer, dense_or_moe(c.dense_layers, c.n_layers))


def layer(c: Any, kind: str, x: Data) -> Data:
    mixture = (lambda h: norm(corrected_mixture(c, h, "mlp."), "post_mlp_layernorm")) if kind == "moe" else None
    return usual_layer(c, x, mixture, attend=latent_attention, bias=c.attention_bias)
