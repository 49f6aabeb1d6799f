"""Pixtral's vision encoder: images of any size, rotary positions in two dimensions.

Its layers are Llama's without biases.

Source: arXiv:2410.07073, section 2.2; PixtralVisionModel of the reference.
"""

from __future__ import annotations

from typing import ClassVar

from paramcount.flow import Data, layers, norm
from paramcount.parts.attentions import attention
from paramcount.parts.decoders import pre_norm
from paramcount.parts.feed_forward import gated_mlp
from paramcount.parts.vision import cut_into_patches
from paramcount.sizes import Positive, Tower, d_model_per_head, derived, hf
from paramcount.sizes.rules import check_heads_fill


class PixtralVision(Tower):
    """The sizes of the tower."""

    unused_keys: ClassVar[tuple[str, ...]] = ("head_dim", "image_size", "vocab_size")

    d_model: Positive = hf(absent=1024)
    n_layers: Positive = hf(absent=24)
    n_heads: Positive = hf(absent=16)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=4096)
    n_channels: Positive = hf("num_channels", absent=3)
    patch_size: Positive = hf("patch_size", absent=16)

    def forward(c, tokens: Data) -> Data:
        x = norm(cut_into_patches(tokens, "patch_conv", c.d_model, c.patch_size), "ln_pre")
        return layers(x, "transformer.layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: layer(c, x))

    def check(c) -> None:
        check_heads_fill(c)


def layer(c: PixtralVision, x: Data) -> Data:
    names = ("attention_norm", "ffn_norm")
    return pre_norm(
        x,
        lambda h: attention(c, h, "attention.", cached=False),
        lambda h: gated_mlp(h, "feed_forward.", "mlp", c.d_ff, activation="gelu"),
        names,
    )
