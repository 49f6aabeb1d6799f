"""Qwen 2.5 Omni: the thinker is Qwen 2.5 VL that also hears; the talker turns what it thinks into codec tokens, which
a diffusion transformer and a vocoder turn into sound.
"""

from typing import Any, ClassVar

from paramcount.architectures.qwen2 import Qwen2
from paramcount.architectures.qwen2_vl import Qwen2_5VLText, Qwen2_5VLVision, Qwen2VLText
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName


class Qwen2_5OmniText(Qwen2_5VLText):
    """Source: arXiv:2503.20215, section 2.2; Qwen2_5OmniThinkerTextModel of the reference."""

    reference = "Qwen2_5OmniThinkerForConditionalGeneration"
    model_types = ("qwen2_5_omni_text",)
    base_model = "Qwen2_5OmniThinkerTextModel"
    conditions = (*Qwen2.conditions, sizes.sections_fill(16, 24, 24))
    defaults = {"d_model": 3584, "n_layers": 28, "n_heads": 28, "d_ff": 18944}

    n_kv_heads: sizes.Positive = sizes.hf(null=sizes.equal_to("n_heads"))
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head)
    d_rope: sizes.Positive = sizes.derived(sizes.equal_to("d_head"))
    tie_word_embeddings: sizes.Flag = sizes.hf()

    layer_types = Qwen2.layer_types
    window = sizes.setting(default=sizes.used_window(32768))

    def check(c) -> None:
        """Heads need not fill d_model."""


class Qwen2_5OmniVision(Qwen2_5VLVision):
    config_class = "Qwen2_5OmniVisionEncoderConfig"
    is_fused = False


class Qwen2_5OmniThinker(parts.PlacedImages):
    """Source: arXiv:2503.20215, section 2; modeling_qwen2_5_omni.py of the reference."""

    reference = "Qwen2_5OmniThinkerForConditionalGeneration"
    model_types = ("qwen2_5_omni_thinker",)
    sections = sizes.Sections("qwen2_5_omni_text", ignores_model_type=True)
    reference_names = {"model.": "model.language_model.", "lm_head.": "lm_head.", "": "model."}
    encoder_prefix = "visual."
    projector_prefix = "visual.merger."
    audio_prefix: ClassVar[str] = "audio_tower."
    moved = ("model.", "model.")

    vision: Qwen2_5OmniVision
    audio: parts.Qwen2_5OmniEars

    image_token = sizes.setting("image_token_id", "image_token_index")
    audio_token = sizes.setting("audio_token_id", "audio_token_index")

    def insert_sound(c: Any, x: Data, tokens: Data) -> Data:
        return parts.insert_sound(c, x, tokens, c.audio_prefix)

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        return (
            ops.Unreachable(
                c.audio.separators(tokens, c.audio_prefix), "no learned vector begins or ends an audio input"
            ),
        )


class Qwen2_5OmniThinkerText(Qwen2_5OmniText):
    config_class = "Qwen2_5OmniTextConfig"
    section = "thinker_config.text_config"

    tie_word_embeddings: sizes.Flag = sizes.derived(parts.thinker_tie, at_root=True)


class Qwen2_5OmniThinkerVision(Qwen2_5OmniVision):
    config_class = "Qwen2_5OmniVisionEncoderConfig"
    section = "thinker_config.vision_config"


class Qwen2_5OmniThinkerEars(parts.Qwen2_5OmniEars):
    config_class = "Qwen2_5OmniAudioEncoderConfig"
    section = "thinker_config.audio_config"


class Qwen2_5OmniTalker(parts.AttentionDecoder):
    """Qwen 2's layers over codec tokens. The text costs no memory of theirs, so none is cached here.

    Source: arXiv:2503.20215, section 2.3; Qwen2_5OmniTalkerForConditionalGeneration of the reference.
    """

    config_class = "Qwen2_5OmniTalkerConfig"

    section = "talker_config"
    rotated = "d_head"
    tie_word_embeddings = sizes.constant(False)

    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf()
    d_ff: sizes.Natural = sizes.hf()
    d_thinker: sizes.Positive = sizes.hf("embedding_size")

    rope = sizes.rotary(1_000_000, 32768)
    layer_types = Qwen2.layer_types
    window = Qwen2_5OmniText.window

    kinds = Qwen2.kinds
    layer = Qwen2VLText.layer

    def forward(c, codes: Data, states: Data) -> Data:  # type: ignore[override]
        """The codec tokens so far, each with what the thinker says, to scores of the next one."""
        x = ops.lookup(codes, "model.embed_tokens.weight", "embedding", c.vocab_size, c.d_thinker) + states
        x = ops.linear(x, "thinker_to_talker_proj", "embedding", c.d_model, bias=True)
        return ops.linear(c.transform(x), "codec_head", "lm_head", c.vocab_size)

    def mix_heads(c, q: Data, k: Data, v: Data, window: ops.Size | None) -> Data:
        """The text costs no memory of theirs, so none is cached here."""
        return ops.attend(q, k, v, mask=ops.see_earlier(window))  # [n, n_heads, d_head]


class Denoiser(parts.SpeechDiT):
    config_class = "Qwen2_5OmniDiTConfig"
    section = "token2wav_config.dit_config"


class Qwen2_5OmniVocoder(parts.BigVgan):
    config_class = "Qwen2_5OmniBigVGANConfig"
    section = "token2wav_config.bigvgan_config"


class Qwen2_5Omni(parts.Speaking, Qwen2_5OmniThinker):
    """Source: arXiv:2503.20215, section 2; modeling_qwen2_5_omni.py of the reference."""

    reference = "Qwen2_5OmniForConditionalGeneration"
    reference_names = {
        "thinker.model.": "thinker.model.language_model.",
        "thinker.lm_head.": "thinker.lm_head.",
        "thinker.": "thinker.model.",
    }
    equivalent_classes = ("Qwen2_5OmniModel",)  # its name in the published files, from before the reference had it
    encoder_prefix = "thinker.visual."
    projector_prefix = "thinker.visual.merger."
    audio_prefix = "thinker.audio_tower."
    moved = ("", "thinker.")
    conditions = (
        parts.sections_are_objects("thinker_config", "talker_config", "token2wav_config"),
        parts.if_it_speaks("talker_config", "talker", sizes.sections_fill(16, 24, 24), *Qwen2.conditions),
        parts.if_it_speaks("token2wav_config.dit_config", "denoiser", parts.steps_are_dilated),
        parts.if_it_speaks("token2wav_config.bigvgan_config", "vocoder", parts.blocks_are_dilated),
    )
    required_keys = ("talker_config.rope_scaling.mrope_section",)

    language: Qwen2_5OmniThinkerText
    vision: Qwen2_5OmniThinkerVision
    audio: Qwen2_5OmniThinkerEars
    talker: Qwen2_5OmniTalker
    denoiser: Denoiser
    vocoder: Qwen2_5OmniVocoder

    image_token = sizes.setting(default=parts.thinker_setting("image_token_id", "image_token_index", default=151655))
    audio_token = sizes.setting(default=parts.thinker_setting("audio_token_id", "audio_token_index", default=151646))

    def speak(c) -> tuple[Data, ...]:
        codes = ops.given("codec tokens", "codec tokens")
        states = ops.given("states of the thinker", "codec tokens", c.talker.d_thinker)
        mels = ops.given("mel frames", "mel frames", c.vocoder.n_mels)
        first, *others = parts.read_codes(c.denoiser)
        voice = "token2wav.code2wav_"
        return (
            ops.block(codes, "talker.", c.talker.forward, reads=(states,), part="audio"),
            ops.block(first, voice + "dit_model.", c.denoiser.denoise, reads=others, part="audio"),
            ops.block(mels, voice + "bigvgan_model.", c.vocoder.forward, part="audio"),
        )

    def check_speech(c) -> None:
        if c.talker.d_thinker != c.language.d_model:
            expected = f"{c.language.d_model}, the size of the thinker"
            raise sizes.make_value_error(c.talker.d_thinker, FieldName("talker.d_thinker"), expected)
        if c.vocoder.n_mels != c.denoiser.n_mels:
            expected = f"{c.denoiser.n_mels}, as in dit_config"
            raise sizes.make_value_error(c.vocoder.n_mels, FieldName("vocoder.n_mels"), expected)
        c.check_part("denoiser", parts.check_speaker_encoder)
        c.check_part("vocoder", parts.check_vocoder)
