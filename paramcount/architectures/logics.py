"""Logics-Thinking: ConvNeXt and SigLIP 2 side by side, a projector, and Qwen3, which alone is counted."""

from paramcount.architectures.llava_released import LlavaQwen
from paramcount.declare import sizes


class Logics(LlavaQwen):
    """Source: modeling_logics.py of github alibaba/Logics-Thinking."""

    reference = "LogicsForConditionalGeneration of alibaba/Logics-Thinking"
    released_as = {}
    sections = sizes.Sections(
        "qwen3",
        ignores_model_type=True,
        is_flat=True,
        default_encoder="convnext",  # which paramcount does not have: the language model alone is counted
        other_sections=("vision_config", "siglip_config"),
    )
