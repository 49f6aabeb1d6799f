"""Music Flamingo: Audio Flamingo 3 whose sounds are rotated by the time at which they are heard."""

from collections.abc import Mapping
from math import pi
from typing import Any

from paramcount.architectures.qwen2_audio import AudioFlamingo3, AudioFlamingo3Ears
from paramcount.declare import Data, ops, sizes
from paramcount.errors import ParamcountError, describe_value

NAMES = ("audioflamingo3_encoder", "musicflamingo_encoder", None)
BASE, SHARE = 1200.0, 0.2
STATES = 4  # frames per state of the encoder


def encoder_named(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference looks up the name of the encoder in a section that is there."""
    section = js.get("audio_config")
    if not isinstance(section, Mapping) or ("model_type" in section and section["model_type"] in NAMES):
        return
    found = f"= {describe_value(section['model_type'])}" if "model_type" in section else "is missing"
    raise ParamcountError(found, where="audio_config.model_type", choices=NAMES[:1])


def turned_part(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The values that turn with the time in a window; as many before them turn with the window, 0 in the first one."""
    share = (js.get("rope_parameters") or {}).get("partial_rotary_factor", js.get("partial_rotary_factor", SHARE))
    return 2 * ((sizes.part_of(c["audio"]["d_model"], share) + 1) // 2)


def angles_of_time(config: Mapping[str, Any], c: Any) -> ops.Rope:
    """Angles grow with the position in the window, and with the seconds: with the square of the position.

    Source: MusicFlamingoRotaryEmbedding of the reference.
    """
    parameters = config.get("rope_parameters") or {}
    base = parameters.get("rope_theta", config.get("rope_theta", BASE))
    step = STATES * config.get("audio_frame_step", 0.01)
    share = parameters.get("partial_rotary_factor", config.get("partial_rotary_factor", SHARE))
    exponents = c.d_turned / int(c.audio.d_model * share)  # of an odd size
    return ops.Rope(base**exponents, ops.LinearScaling(-base / (4 * pi**2 * step)))


class MusicEars(AudioFlamingo3Ears):
    """The same encoder."""

    config_class = "AudioFlamingo3EncoderConfig"

    conditions = ()


class MusicFlamingo(AudioFlamingo3):
    """Source: arXiv:2511.10289, section 3."""

    reference = "MusicFlamingoForConditionalGeneration"
    sections = sizes.Sections("qwen2", tie_rule="never", other_sections=("audio_config",))
    unused_keys = ("head_dim",)  # the reference replaces it with the hidden size of the encoder
    conditions = (encoder_named,)

    audio: MusicEars
    d_turned: sizes.Natural = sizes.derived(turned_part)

    time = sizes.setting(default=angles_of_time)

    def project(c: Any, x: Data) -> Data:
        window, turned, rest = ops.split(x, c.d_turned, c.d_turned, c.audio.d_model - 2 * c.d_turned)
        turned = ops.rope_by_square(turned, c.time, "interleaved")
        return super().project(ops.join(ops.join(window, turned), rest))
