"""GLM-4.1V to GLM-4.6V and GLM-OCR: GLM-4-0414 and GLM-4.5 with positions in time, height and width.

Images go through an encoder of their own.
"""

from typing import Any

from paramcount.architectures.glm import Glm4
from paramcount.architectures.glm4_moe import Glm4Moe
from paramcount.declare import Data, ops, parts, sizes


class Glm4vText(Glm4):
    """Source: arXiv:2507.01006, section 2."""

    reference = "Glm4vForConditionalGeneration"
    model_types = ("glm4v_text",)
    gguf = "glm4"
    is_section_type = False
    reference_names = {"model.": ""}
    base_model = "Glm4vTextModel"
    conditions = (sizes.padding_in_table(None), sizes.sections_fill(8, 12, 12))

    n_kv_heads: sizes.Positive = sizes.hf(null=sizes.equal_to("n_heads"))
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_rope: sizes.Natural = sizes.derived(sizes.rotary_dimension(1.0, head_key="head_dim"))
    qkv_bias: sizes.Flag = sizes.derived(lambda js, c: True)
    tie_word_embeddings: sizes.Flag = sizes.hf(absent=False, null=False)

    rope = sizes.rotary(positions=32768, share=1.0, head_key="head_dim")
    axes = sizes.setting(default=parts.mrope_axes("sections", 8, 12, 12))


class Glm4vMoeText(Glm4Moe):
    """Source: arXiv:2507.01006, section 2; Glm4vMoeTextDecoderLayer of the reference."""

    reference = "Glm4vMoeForConditionalGeneration"
    model_types = ("glm4v_moe_text",)
    gguf = "glm4moe"
    reference_names = {"model.": ""}
    adapts_experts = False
    is_section_type = False
    base_model = "Glm4vMoeTextModel"
    conditions = (
        sizes.grouped_routing(1, 1),
        sizes.padding_in_table(None),
        sizes.not_null("n_routed_experts", "n_group", "topk_group"),
        sizes.sections_fill(8, 12, 12),
    )

    d_rope: sizes.Natural = sizes.derived(sizes.rotary_dimension(0.5, head_key="head_dim"))
    n_mtp_layers: sizes.Natural = sizes.derived(lambda js, c: 0)
    qk_norm: sizes.Flag = sizes.derived(lambda js, c: False)
    stacked: sizes.Flag = sizes.derived(
        sizes.class_ends("TextModel")
    )  # alone, it is saved with one tensor for each projection of all experts

    rope = sizes.rotary(positions=65536, share=0.5)
    axes = sizes.setting(default=parts.mrope_axes("sections", 8, 12, 12))

    def layer(c, x: Data, *reads: Any) -> Data:
        """GLM-4.5's, with all experts in one tensor for each projection if the language model is saved alone."""
        *places, kind = reads
        if kind == "dense" or not c.stacked:
            return super().layer(x, *reads)
        x = x + c.attend(c.norm(x, "input_layernorm"), *places)
        h = c.norm(x, "post_attention_layernorm")
        chosen = c.choose(ops.linear(h, "mlp.gate", "router", c.n_routed_experts))
        return x + parts.stacked_experts(c, h, chosen, "mlp.experts.") + parts.shared_experts(c, h, "mlp.")


class GlmOcrText(Glm4vText):
    """Source: GlmOcrTextModel of the reference."""

    reference = "GlmOcrForConditionalGeneration"
    model_types = ("glm_ocr_text",)
    gguf = "glm4"
    base_model = "GlmOcrTextModel"

    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head)
    qkv_bias: sizes.Flag = sizes.derived(lambda js, c: False)

    rope = sizes.rotary(positions=131072, share=1.0)


class Glm4v(parts.PlacedImages):
    """Source: arXiv:2507.01006, section 2; modeling_glm4v.py of the reference."""

    reference = "Glm4vForConditionalGeneration"
    gguf = "glm4"
    sections = sizes.Sections("glm4v_text", tie_rule="either", ignores_model_type=True)

    vision: parts.Glm4vVision


class Glm4vMoe(Glm4v):
    """The same around experts. Source: modeling_glm4v_moe.py of the reference."""

    reference = "Glm4vMoeForConditionalGeneration"
    model_types = ("glm4v_moe",)
    gguf = "glm4moe"
    sections = sizes.Sections("glm4v_moe_text", tie_rule="either", ignores_model_type=True)
    adapts_experts = True


class Glm46VVision(parts.Glm4vVision):
    config_class = "Glm4vVisionConfig"
    conditions = (sizes.one_of("model_type", ("glm4v_vision", "glm4v_moe_vision"), "glm4v_vision"),)


class Glm46V(Glm4v):
    """The same encoder before a language model of any type. Source: modeling_glm46v.py of the reference."""

    reference = "Glm46VForConditionalGeneration"
    model_types = ("glm46v", "glmga")
    sections = sizes.Sections("glm4v_text")

    vision: Glm46VVision


class GlmOcr(parts.PlacedImages):
    """Source: modeling_glm_ocr.py of the reference."""

    reference = "GlmOcrForConditionalGeneration"
    model_types = ("glm_ocr",)
    gguf = "glm4"
    sections = sizes.Sections("glm_ocr_text", tie_rule="either", ignores_model_type=True)

    vision: parts.GlmOcrVision

    image_token = sizes.setting("image_token_id")
