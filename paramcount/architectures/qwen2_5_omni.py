"""Qwen 2.5 Omni: the thinker is Qwen 2.5 VL that also hears."""

from typing import Any

from paramcount.architectures.qwen2 import Qwen2
from paramcount.architectures.qwen2_vl import Qwen2_5VLText, Qwen2_5VLVision
from paramcount.flow import Data, Unreachable
from paramcount.parts.qwen_audio import Qwen2_5OmniEars, insert_sound
from paramcount.parts.qwen_vision import PlacedImages
from paramcount.sizes import Flag, Positive, d_model_per_head, derived, equal_to, hf, setting
from paramcount.sizes.rotary_sizes import sections_fill


class Qwen2_5OmniText(Qwen2_5VLText):
    """Source: arXiv:2503.20215, section 2.2; Qwen2_5OmniThinkerTextModel of the reference."""

    reference = "Qwen2_5OmniThinkerForConditionalGeneration"
    base_model = "Qwen2_5OmniThinkerTextModel"
    conditions = (*Qwen2.conditions, sections_fill(16, 24, 24))
    defaults = {"d_model": 3584, "n_layers": 28, "n_heads": 28, "d_ff": 18944}

    n_kv_heads: Positive = hf(absent=4, null=equal_to("n_heads"))
    d_head: Positive = hf(absent=d_model_per_head)
    d_rope: Positive = derived(equal_to("d_head"))
    tie_word_embeddings: Flag = hf(absent=True)

    norm_eps = setting("rms_norm_eps", default=1e-6)

    def check(c) -> None:
        """Heads need not fill d_model."""


class Qwen2_5OmniVision(Qwen2_5VLVision):
    is_fused = False


class Qwen2_5OmniThinker(PlacedImages):
    """Source: arXiv:2503.20215, section 2; modeling_qwen2_5_omni.py of the reference."""

    reference = "Qwen2_5OmniThinkerForConditionalGeneration"
    encoder_prefix = "visual."
    projector_prefix = "visual.merger."
    moved = ("model.", "model.")

    vision: Qwen2_5OmniVision
    audio: Qwen2_5OmniEars

    image_token = setting("image_token_id", "image_token_index", default=151655)
    audio_token = setting("audio_token_id", "audio_token_index", default=151646)

    def insert_sound(c: Any, x: Data, tokens: Data) -> Data:
        return insert_sound(c, x, tokens)

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        return (Unreachable(c.audio.separators(tokens), "no sound begins or ends with a vector of its own"),)
