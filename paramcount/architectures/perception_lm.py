"""Perception Language Model: Perception Encoder, two matrices and the means of squares of patches, a language model."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes


class PerceptionLM(parts.Multimodal):
    """Source: arXiv:2504.13180, section 3; modeling_perception_lm.py of the reference. Images fit if the class token,
    if there is one, is left out.
    """

    reference = "PerceptionLMForConditionalGeneration"
    sections = sizes.Sections("llama", tie_rule="text unless top")
    places = parts.places_of_patches
    encoder_prefix = "model.vision_tower.timm_model."

    vision: parts.PerceptionEncoder

    leaves_first_out = sizes.setting("vision_use_cls_token")
    pooling_ratio = sizes.setting("projector_pooling_ratio")

    def encode(c: Any, pixels: Data) -> Data:
        x: Data = c.vision.forward(pixels)
        return ops.other_tokens(x) if c.leaves_first_out else x

    def project(c: Any, x: Data, *places: Data) -> Data:
        x, ratio = c.widen(x), c.pooling_ratio
        if isinstance(ratio, ops.Unknown):
            return ops.mean_of_squares(x, ratio, *places)
        return ops.mean_of_squares(x, ratio * ratio, *places) if ratio > 1 else x
