"""The audio encoders of Qwen 3 ASR and Qwen's Omni models: Whisper's layers over windows of sound.

One window is described: each is encoded by itself, before layers that attend to several.

Source: arXiv:2503.20215, section 2.2, and arXiv:2509.17765, section 2.2; Qwen2_5OmniAudioEncoder, Qwen3ASREncoder and
Qwen3OmniMoeAudioEncoder of the reference.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data


class QwenEars(parts.WhisperStacks):
    """Positions are computed, and a norm follows the layers."""

    section: ClassVar[str | None] = "audio_config"
    last_norm = "ln_post"

    d_model: sizes.Positive = sizes.hf("hidden_size", "d_model")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "encoder_layers")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "encoder_attention_heads")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf("intermediate_size", "encoder_ffn_dim")
    n_mels: sizes.Positive = sizes.hf("num_mel_bins")
    d_out: sizes.Positive = sizes.hf("output_dim")

    def check(c) -> None:
        sizes.check_heads_fill(c)

    def attend(c, x: Data) -> Data:
        """Windows with their positions, through the layers."""
        x = x + ops.sinusoids(x, slowest="base")
        return c.stack(parts.Stack(c.n_layers, c.n_heads, c.d_head, c.d_ff), x, "")


class Qwen2_5OmniEars(QwenEars):
    """Whisper's convolutions; the mean of every two states is normed."""

    config_class = "Qwen2_5OmniAudioEncoderConfig"

    last_norm = ""

    def forward(c, frames: Data) -> Data:
        """Log-mel frames [frames, n_mels] to states [frames, d_model]."""
        x = ops.activate(ops.convolve_frames(frames, "conv1", c.d_model, 3), "gelu")
        x = ops.activate(ops.convolve_frames(x, "conv2", c.d_model, 3, stride=2), "gelu")
        return c.norm(ops.mean_of_blocks(c.attend(x), 2), "ln_post")

    def separators(c, tokens: Data, prefix: str) -> Data:
        """Vectors for the first and the last token of a sound, which the reference no longer inserts."""
        name = "audio_bos_eos_token.weight"
        return ops.block(tokens, prefix, lambda x: ops.lookup(x, name, "embedding", 2, c.d_out), part="audio")

    def project(c, x: Data) -> Data:
        return ops.linear(x, "proj", "projector", c.d_out, bias=True)


def halve(js: sizes.ConfigJson, c: sizes.FieldValues, field: str = "n_mels") -> int:
    """How many bands a convolution leaves that takes every other one."""
    return (c[field] + 1) // 2


class Qwen3Ears(QwenEars):
    """Three convolutions over frames and bands, each of which halves both, then a matrix."""

    k_bias = True

    n_bands_1: sizes.Positive = sizes.derived(halve)
    n_bands_2: sizes.Positive = sizes.derived(lambda js, c: halve(js, c, "n_bands_1"))
    n_bands_3: sizes.Positive = sizes.derived(lambda js, c: halve(js, c, "n_bands_2"))
    d_downsample: sizes.Positive = sizes.hf("downsample_hidden_size")

    def forward(c, frames: Data) -> Data:
        """Log-mel frames [frames, n_mels] to states [audio tokens, d_model]."""
        x = ops.reshape(frames, c.n_mels, 1)
        for i, bands in enumerate((c.n_bands_1, c.n_bands_2, c.n_bands_3), start=1):
            x = ops.activate(ops.convolve_bands(x, f"conv2d{i}", c.d_downsample, 3, bands, stride=2), "gelu")
        return c.attend(ops.linear(ops.channels_first(x), "conv_out", "mixer", c.d_model))


class Qwen3OmniEars(Qwen3Ears):
    """Two matrices to the size of the language model belong to the encoder."""

    config_class = "Qwen3OmniMoeAudioEncoderConfig"

    def project(c, x: Data) -> Data:
        h = ops.activate(ops.linear(x, "proj1", "projector", c.d_model, bias=True), c.activation)
        return ops.linear(h, "proj2", "projector", c.d_out, bias=True)


def insert_sound(c: Any, x: Data, tokens: Data, prefix: str) -> Data:
    """Embedded tokens with the vectors of a sound in place of the tokens that stand for it."""
    frames = ops.given("log-mel frames", "frames", c.audio.n_mels)
    sound = ops.block(frames, prefix, c.audio.forward, part="audio")
    sound = ops.block(sound, prefix, c.audio.project, part="projector")
    return ops.insert(x, tokens, sound, c.audio_token)
