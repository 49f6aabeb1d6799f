"""GLM-4.7-Flash: DeepSeek-V3's latent attention and experts, layer by layer dense or not."""

from typing import ClassVar

from paramcount.parts.decoders import layers_by_mlp
from paramcount.parts.latent_decoder import LatentMixture
from paramcount.sizes import Condition, Flag, Indices, Natural, Positive, derived, hf, rotary, setting
from paramcount.sizes.conditions import grouped_routing, latent_heads_stay_whole, not_null, padding_in_table
from paramcount.sizes.layer_types import dense_by_type, needed
from paramcount.sizes.rules import check_experts_exist, check_rotated_in_pairs


class Glm4MoeLite(LatentMixture):
    """Source: modeling_glm4_moe_lite.py of the reference, Glm4MoeLiteDecoderLayer."""

    reference = "Glm4MoeLiteForCausalLM"
    gguf = "deepseek2"
    is_section_type = True
    adapts_experts = True
    rotated = "d_rope"
    conditions: ClassVar[tuple[Condition, ...]] = (
        grouped_routing(1, 1),
        latent_heads_stay_whole(20),
        padding_in_table(None),
        not_null("n_routed_experts", "n_group", "topk_group", "num_key_value_heads"),
    )

    n_heads: Positive = hf()
    d_q_lora: Positive | None = hf()
    d_kv_lora: Positive = hf()
    d_nope: Positive = hf()
    d_rope: Positive = hf("head_dim", "qk_rope_head_dim")
    d_v: Positive = hf()
    d_ff: Natural = hf()
    dense_layers: Indices = derived(dense_by_type(lambda js, c: (0,), checked=False))
    d_expert: Natural = hf()
    n_routed_experts: Natural = hf("num_local_experts", "n_routed_experts", null=needed("num_local_experts"))
    n_active_experts: Natural = hf()
    n_shared_experts: Natural = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(positions=202752)
    routed_scale = setting("routed_scaling_factor", default=1.8)
    kinds = layers_by_mlp

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_rope")
        check_experts_exist(c)
