"""DeepSeek-V3 and R1: DeepSeek-V2 with a learned routing bias, stored as a buffer, and MTP layers."""

from paramcount.declare import Data, parts, sizes


class DeepseekV3(parts.LatentMixture):
    """Source: arXiv:2412.19437, section 2."""

    reference = "DeepseekV3ForCausalLM"
    gguf = "deepseek2"
    task_heads = "GENERIC"
    copied_modules = ("modeling_deepseek",)
    conditions = (
        sizes.experts_named("num_local_experts"),
        sizes.not_null("n_routed_experts"),
        sizes.grouped_routing(8, 4),
        sizes.latent_heads_stay_whole(128),
        sizes.padding_in_table(None),
    )

    n_dense_layers: sizes.Natural = sizes.hf(at_most="n_layers")
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "n_routed_experts", null=256)
    n_active_experts: sizes.Natural = sizes.hf(null=sizes.unvisited, late=True)
    n_shared_experts: sizes.Natural = sizes.hf()
    n_mtp_layers: sizes.Natural = sizes.hf("num_nextn_predict_layers", "num_mtp_layers", null=0)

    rope = sizes.rotary()
    kinds = parts.dense_first

    def mtp(c, tokens: Data) -> Data:
        return parts.next_token_layers(c, tokens, lambda x: c.layer(x, "moe"))

    def legacy_buffers(c) -> sizes.Buffers:
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
        sizes.grouped_routing(8, 4),
        sizes.one_of("topk_method", ("noaux_tc",), "noaux_tc"),
        sizes.experts_in_every_layer,
        sizes.latent_heads_stay_whole(None),
        sizes.padding_in_table(None),
    )

    n_routed_experts: sizes.Positive = sizes.hf()  # its own config class has no aliases
