"""Idefics 3 and SmolVLM: SigLIP's vision encoder without its pooling head.

Squares of patches become one vector through one matrix.
"""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes


class Idefics3Vision(parts.SiglipVision):
    """Positions are those of an image of the largest size; smaller ones are not supported."""

    config_class = "SmolVLMVisionConfig"

    conditions = ()

    pooling_head: sizes.Flag = sizes.derived(lambda js, c: False)


class Idefics3(parts.Multimodal):
    """Source: arXiv:2408.12637, section 4.1."""

    reference = "Idefics3ForConditionalGeneration"
    gguf = "llama"
    sections = sizes.Sections("llama")
    encoder_prefix = "model.vision_model."
    projector_prefix = "model.connector."
    moved = ("model.", "model.text_model.")
    absent_sections = {"language": {"rms_norm_eps": 1e-5}}
    unused_keys = ("/text_config.perceiver_config",)  # SmolVLM's releases kept it from Idefics 2

    vision: Idefics3Vision
    merge_size: sizes.Positive = sizes.hf("scale_factor")

    def project(c: Any, x: Data, *places: Data) -> Data:
        x = ops.merge_squares(x, c.merge_size * c.merge_size)
        return ops.linear(x, "modality_projection.proj", "projector", c.language.d_model)


class SmolVLM(Idefics3):
    """Source: arXiv:2504.05299, section 2."""

    reference = "SmolVLMForConditionalGeneration"
    model_types = ("smolvlm",)
    gguf = "llama"
    sections = sizes.Sections("llama")
