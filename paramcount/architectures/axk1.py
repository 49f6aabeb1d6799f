"""A.X K1: DeepSeek-V3 with a norm behind every mixture of experts, inside the residual."""

from paramcount.architectures.glm4_moe_lite import Glm4MoeLite
from paramcount.flow import Data
from paramcount.sizes import Indices, Positive, derived, hf, rotary, setting
from paramcount.sizes.conditions import angles_fit, grouped_routing, latent_heads_stay_whole, not_null, padding_in_table
from paramcount.sizes.layer_types import dense_by_type, every_sparse


class AXK1(Glm4MoeLite):
    """Source: modeling_axk1.py of the reference, AXK1DecoderLayer and AXK1MoE."""

    reference = "AXK1ForCausalLM"
    is_section_type = True
    task_heads = "GENERIC"
    adapts_experts = False
    conditions = (
        grouped_routing(8, 4),
        latent_heads_stay_whole(64),
        padding_in_table(None),
        angles_fit,
        not_null("n_routed_experts", "n_group", "topk_group", "num_key_value_heads"),
    )
    defaults = {"vocab_size": 163840, "d_model": 7168, "n_layers": 61}  # fmt: skip

    d_q_lora: Positive = hf()
    d_rope: Positive = hf()
    dense_layers: Indices = derived(dense_by_type(every_sparse, checked=False))

    norm_eps = setting("rms_norm_eps", default=1e-6)
    rope = rotary(positions=32768)
    routed_scale = setting("routed_scaling_factor", default=2.5)
    n_groups = setting("n_group", default=8)
    n_active_groups = setting("topk_group", default=4)

    def moe(c, x: Data) -> Data:
        return c.norm(super().moe(x), "post_mlp_layernorm")
