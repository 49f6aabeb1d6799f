"""Qwen3.5: three layers of gated delta net to one of gated attention, an MLP or many experts in each.

With Qwen3-VL's tower around it.
"""

from paramcount.architectures.qwen3_next import GatedDeltaHybrid
from paramcount.architectures.qwen3_vl import QwenVision
from paramcount.declare import Data, ops, parts, sizes


class Qwen35(GatedDeltaHybrid):
    """Source: modeling_qwen3_5.py of the reference."""

    reference = "Qwen3_5ForCausalLM"
    state_dtype = "float32"  # mamba_ssm_dtype of every released config
    model_types = ("qwen3_5_text",)
    gguf = "qwen35"
    gguf_names = {"post_attention_layernorm": "post_attention_norm"}
    is_section_type = True
    task_head_prefix = "Qwen3_5Text"
    task_heads = "SCORED"
    base_model = "Qwen3_5TextModel"

    d_ff: sizes.Natural = sizes.hf()

    axes = sizes.setting(default=parts.mrope_axes("interleaved", 11, 11, 10))

    def kinds(c) -> parts.Kinds:
        return [((word, "dense"), 1) for word in c.layer_types]


class Qwen35MoE(parts.RoutedExperts, GatedDeltaHybrid):
    """Source: modeling_qwen3_5_moe.py of the reference."""

    reference = "Qwen3_5MoeForCausalLM"
    state_dtype = "float32"
    model_types = ("qwen3_5_moe_text",)
    gguf = "qwen35moe"
    gguf_names = {"post_attention_layernorm": "post_attention_norm"}
    is_section_type = True
    base_model = "Qwen3_5MoeTextModel"
    defaults = {"d_model": 2048, "n_layers": 40}

    d_shared_expert: sizes.Natural = sizes.hf("shared_expert_intermediate_size")

    norm_topk_prob = True
    axes = sizes.setting(default=parts.mrope_axes("interleaved", 11, 11, 10))

    def kinds(c) -> parts.Kinds:
        return [((word, "moe"), 1) for word in c.layer_types]


Qwen35Of = sizes.in_section(Qwen35, "qwen3_5.Qwen3_5ForCausalLM", gguf="qwen35")
Qwen35MoEOf = sizes.in_section(Qwen35MoE, "qwen3_5_moe.Qwen3_5MoeForCausalLM", gguf="qwen35moe")


class Qwen35Vision(QwenVision):
    config_class = "Qwen3_5VisionConfig"

    def merge(c, x: Data) -> Data:
        """Squares of patches to vectors of the language model's size; the norm counts as part of the projector."""
        weights = tuple(ops.Weight(f"merger.norm.{name}", "projector", x.shape[-1:]) for name in ("weight", "bias"))
        x = Data(ops.Norm("layer", 1e-6), (x,), x.shape, weights)
        return parts.widen(c, parts.merge(c, x), ("merger.linear_fc1", "merger.linear_fc2"))


class Qwen35VL(parts.PlacedImages):
    """Source: modeling_qwen3_5.py of the reference."""

    reference = "Qwen3_5ForConditionalGeneration"
    gguf = "qwen35"
    sections = sizes.Sections("qwen3_5_text", ignores_model_type=True)
    task_heads = "GENERIC"

    vision: Qwen35Vision


class Qwen35MoEVL(Qwen35VL):
    """The same around experts. Source: modeling_qwen3_5_moe.py of the reference."""

    reference = "Qwen3_5MoeForConditionalGeneration"
    model_types = ("qwen3_5_moe",)
    gguf = "qwen35moe"
    sections = sizes.Sections("qwen3_5_moe_text", ignores_model_type=True)
