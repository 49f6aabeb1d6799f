"""Qwen 3 MoE: Qwen 3 with a mixture of experts, none of them shared."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes


class Qwen3MoE(parts.AttentionBias, parts.SoftmaxExperts, parts.AttentionDecoder):
    """Source: arXiv:2505.09388, section 2."""

    reference = "Qwen3MoeForCausalLM"
    gguf = "qwen3moe"
    task_heads = "GENERIC_MOVED"
    adapts_experts = True
    conditions = (sizes.padding_in_table(None), sizes.one_mask(sizes.used_window(4096)))

    dense_layers: sizes.Indices = sizes.derived(sizes.scattered_dense_layers)
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts", "num_experts")

    window: ClassVar = sizes.setting(default=sizes.used_window(4096))  # of every layer
    kinds = parts.layers_by_mlp
    norms_heads = True

    def layer(c, x: Data, *reads: Any) -> Data:
        """`reads`: the places of the tokens, if there may be images, and the kind of layer."""
        *places, kind = reads
        h = c.norm(x, "input_layernorm")
        window, rotate = c.window if ops.is_known(c.window) else None, parts.rotation(c, *places)
        x = x + c.self_attention(h, window=window, bias=c.attention_bias, prepare=c.prepare_by(rotate))
        h = c.norm(x, "post_attention_layernorm")
        if kind == "moe":
            return x + c.mixture(h)
        return x + c.gated_mlp(h)

    def mixture(c, x: Data) -> Data:
        return parts.mixture(c, x, "mlp.", choose=c.choose)


class Qwen3OmniMoeText(Qwen3MoE):
    """The language model of Qwen3-Omni's thinker. Source: arXiv:2509.17765, section 2."""

    reference = "Qwen3OmniMoeThinkerForConditionalGeneration"
    model_types = ("qwen3_omni_moe_text",)
    is_section_type = False
    reference_names = {"model.": ""}
    base_model = "Qwen3OmniMoeThinkerTextModel"

    n_routed_experts: sizes.Positive = sizes.hf("num_experts")
    tie_word_embeddings: sizes.Flag = sizes.hf(absent=False, null=False)

    window = None
    axes = sizes.setting(default=parts.mrope_axes("interleaved", 24, 20, 20))
