"""VideoLLaMA 3: SigLIP's encoder with rotary positions, two matrices and a language model of any type."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes


class VideoLlama3(parts.Multimodal):
    """An image keeps all of its patches. Source: arXiv:2501.13106, section 3; modeling_video_llama_3.py."""

    reference = "VideoLlama3ForConditionalGeneration"
    sections = sizes.Sections("qwen2", tie_rule="either")
    encoder_prefix = "model.vision_model."
    projector_prefix = "model.projector."
    moved = ("model.", "model.language_model.")

    vision: parts.SiglipRotaryVision

    image_token = sizes.setting("image_token_id")

    def project(c: Any, x: Data, *places: Data) -> Data:
        x = ops.activate(ops.linear(x, "readout.0", "projector", c.language.d_model, bias=True), "gelu")
        return ops.linear(x, "readout.2", "projector", c.language.d_model, bias=True)
