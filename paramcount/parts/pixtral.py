"""Pixtral's vision encoder: images of any size, rotary positions in two dimensions, Llama's layers without biases.

Source: arXiv:2410.07073, section 2.2; PixtralVisionModel of the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from paramcount.flow import Axes, Data, attend, patch_places, rms_norm, rope_at
from paramcount.parts.attentions import attention, turn_with
from paramcount.parts.feed_forward import gated_mlp
from paramcount.parts.vision import States, VisionEncoder, embed_patches, select_states
from paramcount.sizes import Natural, Positive, hf
from paramcount.sizes.rotary_settings import rotary

PIXTRAL = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "patch_size": 14,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
}

ROWS_AND_COLUMNS = Axes((1, 1), "alternating")


class PixtralVision(VisionEncoder):
    model_types = ("pixtral",)
    is_section_type = True
    unused_keys: ClassVar[tuple[str, ...]] = ("head_dim", "image_size", "vocab_size")

    d_model: Positive = hf()
    n_layers: Natural = hf()
    n_heads: Positive = hf()
    d_ff: Natural = hf()
    n_channels: Positive = hf("num_channels")
    patch_size: Positive = hf("patch_size")

    norm_eps: ClassVar[float] = 1e-5
    rope: ClassVar = rotary()

    def forward(c, pixels: Data, states: States | None = None) -> Data:
        """One image to vectors of its patches."""
        x = c.norm(embed_patches(pixels, "patch_conv", c.d_model, c.patch_size), "ln_pre")
        places = patch_places(pixels, c.patch_size, c.patch_size)
        return select_states(c.encode(x, places, name="transformer.layers.{layer}."), states)

    def layer(c, x: Data, *reads: Data) -> Data:
        (places,) = reads
        x = x + attention(
            c, c.norm(x, "attention_norm"), "attention.", prepare=turn_with(c.rotation(places)), mix=attend
        )
        return x + gated_mlp(c.norm(x, "ffn_norm"), "feed_forward.", "mlp", c.d_ff, activation=c.activation)

    def rotation(c, places: Data) -> Callable[[Data], Data]:
        return lambda y: rope_at(y, places, c.rope, ROWS_AND_COLUMNS)

    def norm(c, x: Data, name: str) -> Data:
        return rms_norm(x, name, c.norm_eps)
