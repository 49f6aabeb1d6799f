"""GLM-4.7-Flash: DeepSeek-V3's latent attention and experts, layer by layer dense or not."""

from typing import ClassVar

from paramcount.declare import parts, sizes


class Glm4MoeLite(parts.LatentMixture):
    """Source: modeling_glm4_moe_lite.py of the reference, Glm4MoeLiteDecoderLayer."""

    reference = "Glm4MoeLiteForCausalLM"
    gguf = "deepseek2"
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (
        sizes.grouped_routing(1, 1),
        sizes.latent_heads_stay_whole(20),
        sizes.padding_in_table(None),
        sizes.not_null("n_routed_experts", "n_group", "topk_group", "num_key_value_heads"),
    )

    d_rope: sizes.Positive = sizes.hf("head_dim", "qk_rope_head_dim")
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(lambda js, c: (0,), checked=False))
    n_routed_experts: sizes.Natural = sizes.hf(
        "num_local_experts", "n_routed_experts", null=sizes.needed("num_local_experts"), late=True
    )
    n_shared_experts: sizes.Natural = sizes.hf()

    rope = sizes.rotary()
    kinds = parts.layers_by_mlp
