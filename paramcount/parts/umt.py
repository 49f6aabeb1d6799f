"""UMT's video encoder: patches with fixed positions; queries and values have a bias, keys have none.

Source: arXiv:2303.16058, section 3; vision_tower_builder.py of OpenGVLab/VideoChat-Flash-Qwen2-7B_res448.
"""

from __future__ import annotations

from typing import ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data


class UmtVision(parts.PatchVision):
    """Large, of one frame. config.json states none of its sizes: build_vit has them."""

    d_model: sizes.Positive = sizes.derived(lambda js, c: 1024)
    n_layers: sizes.Natural = sizes.derived(lambda js, c: 23)  # of 24: states before the last layer are looked at
    n_heads: sizes.Positive = sizes.derived(lambda js, c: 16)
    d_ff: sizes.Natural = sizes.derived(lambda js, c: 4096)
    n_channels: sizes.Positive = sizes.derived(lambda js, c: 3)
    patch_size: sizes.Positive = sizes.derived(lambda js, c: 16)

    activation: ClassVar[str] = "gelu"
    norm_eps: ClassVar[float] = 1e-5

    def forward(c, pixels: Data, states: parts.States | None = None) -> Data:
        """One image to vectors of its patches."""
        x = parts.embed_patches(pixels, "patch_embed.proj", c.d_model, c.patch_size, bias=True, frames=1)
        x = x + Data("stretched sinusoids", (x,), x.shape)
        x = c.encode(x, name="blocks.{layer}.")
        return ops.layer_norm(x, "vision_layernorm", 1e-12)

    def layer(c, x: Data, *reads: Data) -> Data:
        x = x + c.attend(c.norm(x, "norm1"))
        return x + parts.encoder_mlp(c, c.norm(x, "norm2"))

    def attend(c, x: Data) -> Data:
        q, k, v = ops.fused(x, "attn.qkv", dict.fromkeys(("qkv.q", "qkv.k", "qkv.v"), c.d_model))
        q = ops.add_vector(q, "attn.q_bias", "qkv.q", c.d_model)
        v = ops.add_vector(v, "attn.v_bias", "qkv.v", c.d_model)
        q, k, v = (ops.to_heads(y, c.n_heads, c.d_head) for y in (q, k, v))
        return ops.linear(ops.attend(q, k, v), "attn.proj", "output_projection", c.d_model, bias=True)
