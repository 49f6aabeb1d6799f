"""Whisper's encoder as the ears of a language model.

Source: arXiv:2212.04356, section 2.2.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data


class WhisperStacks(parts.Stacks):
    """Keys have no bias. Order of operations: WhisperEncoderLayer and WhisperDecoderLayer."""

    layer = parts.seq2seq.pre_norm_layer
    last_norm: ClassVar[str] = "layer_norm"
    k_bias: ClassVar[bool] = False
    embedding_scale: ClassVar[float] = 1.0  # the reference reads scale_embedding and does not use it


class Ears(WhisperStacks):
    """The sizes of the encoder."""

    section: ClassVar[str | None] = "audio_config"
    unused_keys: ClassVar[tuple[str, ...]] = ("vocab_size",)

    d_model: sizes.Positive = sizes.hf("d_model", "hidden_size")
    n_layers: sizes.Natural = sizes.hf("encoder_layers", "num_hidden_layers")
    n_heads: sizes.Positive = sizes.hf("encoder_attention_heads", "num_attention_heads")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf("encoder_ffn_dim", "intermediate_size")
    n_mels: sizes.Positive = sizes.hf("num_mel_bins")
    n_frames: sizes.Positive = sizes.hf("max_source_positions")

    def check(c) -> None:
        sizes.check_heads_fill(c)

    def forward(c, frames: Data) -> Data:
        """Log-mel frames [frames, n_mels] to states [frames, d_model]."""
        return encode_audio(c, parts.Stack(c.n_layers, c.n_heads, c.d_head, c.d_ff), frames)


class MeanEars(Ears):
    """The mean of every two states is normed."""

    last_norm = ""

    def forward(c, frames: Data) -> Data:
        return c.norm(ops.mean_of_blocks(super().forward(frames), 2), "layer_norm")


def encode_audio(c: Any, s: parts.Stack, x: Data) -> Data:
    """Two convolutions over three frames each, the second of which takes every other one; fixed positions; layers."""
    x = ops.activate(ops.convolve_frames(x, "conv1", c.d_model, 3), "gelu")
    x = ops.activate(ops.convolve_frames(x, "conv2", c.d_model, 3, stride=2), "gelu")
    x = x + ops.position_table(x, "embed_positions.weight", c.n_frames)
    return c.stack(s, x, "")
