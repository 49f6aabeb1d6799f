"""VideoLLaMA 3: SigLIP's encoder with rotary positions, two matrices and a language model of any type."""

from paramcount.declare import parts, sizes


class VideoLlama3(parts.Multimodal):
    """An image keeps all of its patches. Source: arXiv:2501.13106, section 3; modeling_video_llama_3.py."""

    reference = "VideoLlama3ForConditionalGeneration"
    sections = sizes.Sections("qwen2", tie_rule="either")
    encoder_prefix = "model.vision_model."
    projector_prefix = "model.projector."
    projector = ("readout.0", "readout.2")

    vision: parts.SiglipRotaryVision
