"""A.X K1: DeepSeek-V3 with a norm behind every mixture of experts, inside the residual."""

from paramcount.architectures.glm4_moe_lite import Glm4MoeLite
from paramcount.declare import Data, sizes


class AXK1(Glm4MoeLite):
    """Source: modeling_axk1.py of the reference, AXK1DecoderLayer and AXK1MoE."""

    reference = "AXK1ForCausalLM"
    task_heads = "GENERIC"
    adapts_experts = False
    conditions = (
        sizes.grouped_routing(8, 4),
        sizes.latent_heads_stay_whole(64),
        sizes.padding_in_table(None),
        sizes.angles_fit,
        sizes.not_null("n_routed_experts", "n_group", "topk_group", "num_key_value_heads"),
    )
    defaults = {"vocab_size": 163840, "d_model": 7168, "n_layers": 61}  # fmt: skip

    d_q_lora: sizes.Positive = sizes.hf()
    d_rope: sizes.Positive = sizes.hf()
    dense_layers: sizes.Indices = sizes.derived(sizes.dense_by_type(sizes.every_sparse, checked=False))

    def moe(c, x: Data) -> Data:
        return c.norm(super().moe(x), "post_mlp_layernorm")
