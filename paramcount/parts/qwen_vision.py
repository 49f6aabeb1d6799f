"""The vision encoder of Qwen's models: 3D patches, rotary positions in two dimensions.

Neighbouring patches are merged into one.

Source: arXiv:2409.12191, section 2.1.
"""

from __future__ import annotations

from typing import Any

from paramcount.flow import Data, Weight, activate, attend, given, linear, rope
from paramcount.parts.attentions import fused_qkv


def pixels(c: Any) -> Data:
    return given("pixels", "patches", c.n_channels, c.n_frames, c.patch_size, c.patch_size)


def cubes(c: Any, x: Data, *, bias: bool = False) -> Data:
    """Pixels of a few successive frames to one vector for each square of them."""
    weights: tuple[Weight, ...] = (Weight("patch_embed.proj.weight", "embedding", (c.d_model, *x.shape[1:])),)
    if bias:
        weights += (Weight("patch_embed.proj.bias", "embedding", (c.d_model,)),)
    return Data("convolve", (x,), ("patches", c.d_model), weights)


def tower_attention(c: Any, x: Data) -> Data:
    q, k, v = fused_qkv(c, x, "attn.qkv")
    return linear(attend(rope(q), rope(k), v, cached=()), "attn.proj", "output_projection", c.d_model, bias=True)


def merge(c: Any, x: Data) -> Data:
    """Squares of merge_size patches a side, put side by side."""
    return Data("merge", (x,), ("image", c.merge_size * c.merge_size * c.d_model))


def widen(c: Any, x: Data, names: tuple[str, str]) -> Data:
    """Merged patches to the width of the language model."""
    h = activate(linear(x, names[0], "projector", x.shape[-1], bias=True), "gelu")
    return linear(h, names[1], "projector", c.d_out, bias=True)
