"""DeepSeek-V3 and R1: DeepSeek-V2 with a learned routing bias, stored as a buffer, and MTP layers."""

from paramcount.flow import Data
from paramcount.parts.decoders import dense_first
from paramcount.parts.latent_decoder import LatentMixture
from paramcount.parts.mtp import next_token_layers
from paramcount.sizes import Buffers, Flag, Natural, Positive, hf, rotary, setting, unvisited
from paramcount.sizes.conditions import (
    experts_in_every_layer,
    experts_named,
    grouped_routing,
    latent_heads_stay_whole,
    not_null,
    one_of,
    padding_in_table,
)
from paramcount.sizes.rules import check_rotated_in_pairs


class DeepseekV3(LatentMixture):
    """Source: arXiv:2412.19437, section 2."""

    reference = "DeepseekV3ForCausalLM"
    gguf = "deepseek2"
    is_section_type = True
    task_heads = "GENERIC"
    copied_modules = ("modeling_deepseek",)
    adapts_experts = True
    rotated = "d_rope"
    conditions = (
        experts_named("num_local_experts"),
        not_null("n_routed_experts"),
        grouped_routing(8, 4),
        latent_heads_stay_whole(128),
        padding_in_table(None),
    )

    n_heads: Positive = hf()
    d_q_lora: Positive | None = hf()
    d_kv_lora: Positive = hf()
    d_nope: Positive = hf()
    d_rope: Positive = hf()
    d_v: Positive = hf()
    d_ff: Natural = hf()
    n_dense_layers: Natural = hf(at_most="n_layers")
    d_expert: Natural = hf()
    n_routed_experts: Positive = hf("num_local_experts", "n_routed_experts", null=256)
    n_active_experts: Natural = hf(null=unvisited)
    n_shared_experts: Natural = hf()
    n_mtp_layers: Natural = hf("num_nextn_predict_layers", "num_mtp_layers", null=0)
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary(positions=4096)
    n_groups = setting("n_group", default=8)
    n_active_groups = setting("topk_group", default=4)
    kinds = dense_first

    def check(c) -> None:
        check_rotated_in_pairs(c, "d_rope")

    def mtp(c, tokens: Data) -> Data:
        return next_token_layers(c, tokens, lambda x: c.layer(x, "moe"))

    def legacy_buffers(c) -> Buffers:
        """Rotary frequencies in Moonshot AI's files.

        They have the size of a Llama's with the same d_model and n_heads (Moonlight 27 × 64, Kimi K2 61 × 56).

        Source: github
        NVIDIA-NeMo/Megatron-Bridge@0fe9cb1dd9b1:src/megatron/bridge/models/deepseek/deepseek_v3_bridge.py.
        """
        return (("model.layers.{layer}.self_attn.rotary_emb.inv_freq", (c.d_model // c.n_heads // 2,), c.n_layers),)


class KimiK2(DeepseekV3):
    """Source: configuration_deepseek.py and modeling_deepseek.py of moonshotai/Kimi-K2-Instruct: DeepSeek-V3's own
    code.
    """

    reference = "DeepseekV3ForCausalLM of moonshotai/Kimi-K2-Instruct"
    model_types = ("kimi_k2",)
    gguf = "deepseek2"
    conditions = (
        grouped_routing(8, 4), one_of("topk_method", ("noaux_tc",), "noaux_tc"), experts_in_every_layer,
        latent_heads_stay_whole(None),
        padding_in_table(None),
    )  # fmt: skip

    n_routed_experts: Positive = hf()  # its own config class has no aliases
