"""Qwen 2 Audio, Voxtral and Audio Flamingo 3: Whisper's encoder and a projector before a language model."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes

VOXTRAL = {
    "vocab_size": 131072,
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 30,
    "num_key_value_heads": 8,
    "head_dim": 128,
}


class Qwen2AudioEars(parts.MeanEars):
    """Source: Qwen2AudioEncoder of the reference."""

    config_class = "Qwen2AudioEncoderConfig"

    conditions = (sizes.one_of("model_type", ("qwen2_audio_encoder",), "qwen2_audio_encoder"),)

    d_model: sizes.Positive = sizes.hf("hidden_size", "d_model")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "encoder_layers")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "encoder_attention_heads")
    d_ff: sizes.Natural = sizes.hf("intermediate_size", "encoder_ffn_dim")


class VoxtralEars(parts.Ears):
    """The sizes of the encoder."""

    config_class = "VoxtralEncoderConfig"

    conditions: ClassVar[tuple[sizes.Condition, ...]] = (
        sizes.one_of("model_type", ("voxtral_encoder",), "voxtral_encoder"),
    )


class AudioFlamingo3Ears(parts.MeanEars):
    """Qwen 2 Audio's encoder, with its keys under Voxtral's names. Source: AudioFlamingo3Encoder of the reference."""

    config_class = "AudioFlamingo3EncoderConfig"

    conditions: ClassVar[tuple[sizes.Condition, ...]] = (
        sizes.one_of("model_type", ("audioflamingo3_encoder",), "audioflamingo3_encoder"),
    )


class Qwen2Audio(parts.FormerAudioLanguageModel):
    """Source: arXiv:2407.10759, section 2."""

    reference = "Qwen2AudioForConditionalGeneration"
    gguf = "qwen2"
    sections = sizes.Sections("qwen2", tie_rule="never", other_sections=("audio_config",))

    audio: Qwen2AudioEars

    audio_token = sizes.setting("audio_token_index", "audio_token_id")

    def project(c: Any, x: Data) -> Data:
        return ops.linear(x, "linear", "projector", c.language.d_model, bias=True)


class Voxtral(parts.FormerAudioLanguageModel):
    """As many states side by side as are as wide as the encoder's MLP, four of them, go through two matrices.

    Source: arXiv:2507.13264, section 2.
    """

    reference = "VoxtralForConditionalGeneration"
    model_types = ("voxtral",)
    gguf = "llama"
    sections = sizes.Sections(
        "llama", tie_rule="never", default_section=VOXTRAL, fills_missing_keys=True, other_sections=("audio_config",)
    )
    added_keys = {"language": {"rms_norm_eps": 1e-5, "rope_theta": 1e8, "max_position_embeddings": 131072}}
    float32 = ("embed_positions",)

    audio: VoxtralEars

    projector_bias = False

    audio_token = sizes.setting("audio_token_id", default=None)
    activation = sizes.setting("projector_hidden_act")

    def project(c: Any, x: Data) -> Data:
        return c.widen(Data(ops.MergeRows(), (x,), ("audio tokens", c.audio.d_ff)))


class AudioFlamingo3(parts.FormerAudioLanguageModel):
    """Source: arXiv:2507.08128, section 3.1."""

    reference = "AudioFlamingo3ForConditionalGeneration"
    model_types = ("audioflamingo3",)
    gguf = "qwen2"
    sections = sizes.Sections("qwen2", tie_rule="never", other_sections=("audio_config",))

    audio: AudioFlamingo3Ears
    projector_bias: sizes.Flag = sizes.hf("projector_bias")

    activation = sizes.setting("projector_hidden_act")
