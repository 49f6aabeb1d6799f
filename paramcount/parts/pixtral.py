"""Pixtral's vision encoder: images of any size, rotary positions in two dimensions, Llama's layers without biases.

Source: arXiv:2410.07073, section 2.2; PixtralVisionModel of the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data

PIXTRAL = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "patch_size": 14,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
}

ROWS_AND_COLUMNS = ops.Axes((1, 1), "alternating")


class PixtralVision(parts.PatchVision):
    model_types = ("pixtral",)
    is_section_type = True
    unused_keys: ClassVar[tuple[str, ...]] = ("head_dim", "image_size", "vocab_size")

    norm_eps: ClassVar[float] = 1e-5
    rope: ClassVar = sizes.rotary()

    def forward(c, pixels: Data, states: parts.States | None = None) -> Data:
        """One image to vectors of its patches."""
        x = c.norm(parts.embed_patches(pixels, "patch_conv", c.d_model, c.patch_size), "ln_pre")
        places = ops.patch_places(pixels, c.patch_size, c.patch_size)
        return parts.select_states(c.encode(x, places, name="transformer.layers.{layer}."), states)

    def layer(c, x: Data, *reads: Data) -> Data:
        (places,) = reads
        x = x + parts.attentions.attention(
            c, c.norm(x, "attention_norm"), "attention.", prepare=parts.turn_with(c.rotation(places)), mix=ops.attend
        )
        return x + parts.gated_mlp(c.norm(x, "ffn_norm"), "feed_forward.", "mlp", c.d_ff, activation=c.activation)

    def rotation(c, places: Data) -> Callable[[Data], Data]:
        return lambda y: ops.rope_at(y, places, c.rope, ROWS_AND_COLUMNS)

    norm = parts.use_rms_norm
