"""MOSS Transcribe-Diarize: Whisper's encoder, four of whose frames become one vector of Qwen 3."""

from typing import Any

from paramcount.architectures.qwen3 import SMALL_QWEN_3
from paramcount.declare import Data, ops, parts, sizes


class MossAudio(parts.Ears):
    """The sizes of the encoder."""

    config_class = "MossTranscribeDiarizeAudioConfig"


class MossTranscribeDiarize(parts.AudioLanguageModel):
    """Source: modeling_moss_transcribe_diarize.py of the reference."""

    reference = "MossTranscribeDiarizeForConditionalGeneration"
    sections = sizes.Sections("qwen3", default_tie=True, default_section=SMALL_QWEN_3, other_sections=("audio_config",))

    absent_sections = {"language": {"rope_theta": 1e6}}

    audio: MossAudio
    n_merged: sizes.Positive = sizes.hf("audio_merge_size")
    projector_bias: sizes.Flag = sizes.hf("projector_bias")

    activation = sizes.setting("projector_hidden_act")

    def project(c: Any, x: Data) -> Data:
        return ops.layer_norm(c.widen(ops.merge_rows(x, c.n_merged)), "norm", c.language.norm_eps)
