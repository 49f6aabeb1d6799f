"""Qwen 3 ASR: an audio encoder of convolutions and Whisper's layers before Qwen 3."""

from typing import Any

from paramcount.architectures.qwen3 import SMALL_QWEN_3
from paramcount.declare import Data, ops, parts, sizes

ASR_QWEN_3 = SMALL_QWEN_3 | {"hidden_size": 2048, "intermediate_size": 6144, "head_dim": 128}


class Qwen3ASREars(parts.Qwen3Ears):
    config_class = "Qwen3ASREncoderConfig"
    conditions = (sizes.one_of("model_type", ("qwen3_asr_encoder",), "qwen3_asr_encoder"),)


class Qwen3ASR(parts.AudioLanguageModel):
    """Source: modeling_qwen3_asr.py of the reference."""

    reference = "Qwen3ASRForConditionalGeneration"
    sections = sizes.Sections(
        "qwen3",
        default_tie=True,
        default_section=ASR_QWEN_3 | {"tie_word_embeddings": True},
        other_sections=("audio_config",),
    )

    audio: Qwen3ASREars

    def project(c: Any, x: Data) -> Data:
        h = ops.activate(ops.linear(x, "linear_1", "projector", c.audio.d_model, bias=True), c.audio.activation)
        return ops.linear(h, "linear_2", "projector", c.audio.d_out, bias=True)
