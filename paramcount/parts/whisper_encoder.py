"""Whisper's encoder as the ears of a language model.

Source: arXiv:2212.04356, section 2.2.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.flow import Data, Weight, activate, elementwise
from paramcount.parts.classic import Stack
from paramcount.parts.seq2seq import Layout, bart_layers
from paramcount.sizes import Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.rules import check_heads_fill


class Ears(Sizes):
    """The sizes of the encoder."""

    section: ClassVar[str | None] = "audio_config"
    unused_keys: ClassVar[tuple[str, ...]] = ("vocab_size",)

    d_model: Positive = hf("d_model", absent=1280)
    n_layers: Positive = hf("encoder_layers", absent=32)
    n_heads: Positive = hf("encoder_attention_heads", absent=20)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf("encoder_ffn_dim", absent=5120)
    n_mels: Positive = hf("num_mel_bins", absent=128)
    n_frames: Positive = hf("max_source_positions", absent=1500)

    def check(c) -> None:
        check_heads_fill(c)


def listen(c: Any, x: Data) -> Data:
    """Log-mel frames through two convolutions of three frames each, the second of which takes every other one.

    Sines, frozen; layers without a bias on keys.
    """
    for name, width in (("conv1", c.n_mels), ("conv2", c.d_model)):
        kernel = Weight(name + ".weight", "mixer", (c.d_model, width, 3))
        x = activate(
            Data("convolve", (x,), ("frames", c.d_model), (kernel, Weight(name + ".bias", "mixer", (c.d_model,)))),
            "gelu",
        )
    x = elementwise(x, "positions", "embed_positions.weight", "position", c.n_frames, c.d_model)
    layout, stack = Layout(before=True, last_norm="layer_norm"), Stack(c.n_layers, c.n_heads, c.d_head, c.d_ff)
    return bart_layers(stack, x, "", layout, cached=False, k_bias=False)
