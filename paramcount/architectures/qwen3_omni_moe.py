"""Qwen 3 Omni: the thinker is Qwen 3 VL of experts that also hears."""

from typing import Any, ClassVar

from paramcount.architectures.qwen3_vl import Qwen3VL, Qwen3VLVision
from paramcount.flow import Data
from paramcount.parts.qwen_audio import Qwen3OmniEars, insert_sound
from paramcount.sizes import setting


class Qwen3OmniVision(Qwen3VLVision):
    merger_names = ("ln_q", "mlp.0", "mlp.2")
    deep_mergers = "merger_list"


class Qwen3OmniMoeThinker(Qwen3VL):
    """Source: arXiv:2509.17765, section 2; modeling_qwen3_omni_moe.py of the reference."""

    reference = "Qwen3OmniMoeThinkerForConditionalGeneration"
    adapts_experts = True
    encoder_prefix = "visual."
    audio_prefix: ClassVar[str] = "audio_tower."
    moved = ("model.", "model.")

    vision: Qwen3OmniVision
    audio: Qwen3OmniEars

    audio_token = setting("audio_token_id", default=151646)

    def insert_sound(c: Any, x: Data, tokens: Data) -> Data:
        return insert_sound(c, x, tokens, c.audio_prefix)
