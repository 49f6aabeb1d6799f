"""Qwen 3 ASR: an audio encoder of convolutions and Whisper's layers before Qwen 3."""

from typing import Any

from paramcount.flow import Data, activate, linear
from paramcount.parts.composite import AudioLanguageModel
from paramcount.parts.qwen_audio import Qwen3Ears
from paramcount.sizes import setting
from paramcount.sizes.conditions import one_of


class Qwen3ASREars(Qwen3Ears):
    conditions = (one_of("model_type", ("qwen3_asr_encoder",), "qwen3_asr_encoder"),)
    defaults = {"d_model": 1024, "n_layers": 24, "n_heads": 16, "d_ff": 4096}


class Qwen3ASR(AudioLanguageModel):
    """Source: modeling_qwen3_asr.py of the reference."""

    reference = "Qwen3ASRForConditionalGeneration"
    encoder_prefix = "model.audio_tower."
    projector_prefix = "model.multi_modal_projector."
    moved = ("model.", "model.language_model.")

    audio: Qwen3ASREars

    audio_token = setting("audio_token_id", default=151676)

    def project(c: Any, x: Data) -> Data:
        h = activate(linear(x, "linear_1", "projector", c.audio.d_model, bias=True), c.audio.activation)
        return linear(h, "linear_2", "projector", c.audio.d_out, bias=True)
