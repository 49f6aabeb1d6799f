"""Qwen 2 Audio and Voxtral: Whisper's encoder and a projector before a language model."""

from collections.abc import Callable
from typing import Any

from pydantic import SerializeAsAny

from paramcount.flow import Data, Reshape, activate, block, given, linear, mean_of_blocks
from paramcount.parts.composite import with_language
from paramcount.parts.whisper_encoder import Ears
from paramcount.sizes import Positive, Sizes, hf, setting
from paramcount.sizes.conditions import one_of


class Qwen2AudioEars(Ears):
    """The mean of every two states is normed. Source: Qwen2AudioEncoder of the reference."""

    conditions = (one_of("model_type", ("qwen2_audio_encoder",), "qwen2_audio_encoder"),)

    d_model: Positive = hf("hidden_size", "d_model", absent=1280)
    n_layers: Positive = hf("num_hidden_layers", "encoder_layers", absent=32)
    n_heads: Positive = hf("num_attention_heads", "encoder_attention_heads", absent=20)
    d_ff: Positive = hf("intermediate_size", "encoder_ffn_dim", absent=5120)

    last_norm = ""

    def forward(c, frames: Data) -> Data:
        return c.norm(mean_of_blocks(super().forward(frames), 2), "layer_norm")


class VoxtralEars(Ears):
    """The sizes of the encoder."""

    conditions = (one_of("model_type", ("voxtral_encoder",), "voxtral_encoder"),)

    d_model: Positive = hf("d_model", "hidden_size", absent=1280)
    n_layers: Positive = hf("encoder_layers", "num_hidden_layers", absent=32)
    n_heads: Positive = hf("encoder_attention_heads", "num_attention_heads", absent=20)
    d_ff: Positive = hf("encoder_ffn_dim", "intermediate_size", absent=5120)


class Qwen2Audio(Sizes):
    """Source: arXiv:2407.10759, section 2."""

    reference = "Qwen2AudioForConditionalGeneration"

    language: SerializeAsAny[Sizes]
    audio: Qwen2AudioEars

    audio_token = setting("audio_token_index", "audio_token_id", default=151646)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return with_language(c, tokens, heard(c, widen), head=head, token=c.audio_token)

    def body(c, tokens: Data) -> Data:
        return c.forward(tokens, head=False)


class Voxtral(Sizes):
    """Source: arXiv:2507.13264, section 2."""

    reference = "VoxtralForConditionalGeneration"
    float32 = ("embed_positions",)

    language: SerializeAsAny[Sizes]
    audio: VoxtralEars

    audio_token = setting("audio_token_id", default=None)
    activation = setting("projector_hidden_act", default="gelu")

    def forward(c, tokens: Data, head: bool = True) -> Data:
        return with_language(c, tokens, heard(c, merge), head=head, token=c.audio_token)

    def body(c, tokens: Data) -> Data:
        return c.forward(tokens, head=False)


def heard(c: Any, projector: Callable[[Any, Data], Data]) -> Data:
    """Log-mel frames to vectors of the language model's width."""
    frames = given("log-mel frames", "frames", c.audio.n_mels)
    sound = block(frames, "audio_tower.", c.audio.forward, part="audio")
    return block(sound, "multi_modal_projector.", lambda x: projector(c, x), part="projector")


def widen(c: Any, x: Data) -> Data:
    return linear(x, "linear", "projector", c.language.d_model, bias=True)


def merge(c: Any, x: Data) -> Data:
    """As many vectors side by side as are as wide as the encoder's MLP, four of them, through two matrices."""
    x = Data(Reshape("merged rows"), (x,), ("audio tokens", c.audio.d_ff))
    h = activate(linear(x, "linear_1", "projector", c.language.d_model), c.activation)
    return linear(h, "linear_2", "projector", c.language.d_model)
