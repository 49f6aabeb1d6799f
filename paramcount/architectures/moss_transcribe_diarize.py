"""MOSS Transcribe-Diarize: Whisper's encoder, four of whose frames become one vector of Qwen 3."""

from typing import Any

from pydantic import SerializeAsAny

from paramcount.flow import Data, activate, block, given, layer_norm, linear, merge_rows
from paramcount.parts.composite import with_language
from paramcount.parts.whisper_encoder import Ears
from paramcount.sizes import Flag, Positive, Sizes, hf, setting

NAMES = ("model.", "model.language_model.")


class MossAudio(Ears):
    """The sizes of the encoder."""

    defaults = {"d_model": 1024, "n_layers": 24, "n_heads": 16, "d_ff": 4096, "n_mels": 80}

    d_model: Positive = hf("d_model", "hidden_size", absent=1024)
    n_layers: Positive = hf("encoder_layers", "num_hidden_layers", absent=24)
    n_heads: Positive = hf("encoder_attention_heads", "num_attention_heads", absent=16)
    d_ff: Positive = hf("encoder_ffn_dim", "intermediate_size", absent=4096)


class MossTranscribeDiarize(Sizes):
    """Source: modeling_moss_transcribe_diarize.py of the reference."""

    reference = "MossTranscribeDiarizeForConditionalGeneration"

    language: SerializeAsAny[Sizes]
    audio: MossAudio
    n_merged: Positive = hf("audio_merge_size", absent=4)
    projector_bias: Flag = hf("projector_bias", absent=True)

    audio_token = setting("audio_token_id", default=151671)
    activation = setting("projector_hidden_act", default="silu")

    def forward(c, tokens: Data, head: bool = True) -> Data:
        frames = given("log-mel frames", "frames", c.audio.n_mels)
        sound = block(frames, "model.audio_tower.", c.audio.forward, part="audio")
        sound = block(sound, "model.multi_modal_projector.", c.project, part="projector")
        return with_language(c, tokens, sound, head=head, token=c.audio_token, moved=NAMES)

    def body(c, tokens: Data) -> Data:
        return c.forward(tokens, head=False)

    def project(c: Any, x: Data) -> Data:
        d_model = c.language.d_model
        x = merge_rows(x, c.n_merged)
        x = activate(linear(x, "linear_1", "projector", d_model, bias=c.projector_bias), c.activation)
        x = linear(x, "linear_2", "projector", d_model, bias=c.projector_bias)
        return layer_norm(x, "norm", c.language.norm_eps)
