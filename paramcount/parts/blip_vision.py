"""BLIP's vision encoder: patches after a class token, learned positions, layers of full attention with a fused matrix.

Source: arXiv:2201.12086, section 3.1; BlipVisionModel of the reference.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data


@sizes.options_first
def count_patches(js: sizes.ConfigJson, c: sizes.FieldValues, image_size: int) -> int:
    """The patches of an image. `image_size`: the default of the key."""
    size = js.get("image_size", image_size)
    if type(size) is not int:  # a pair is not refused, but cannot be divided later
        raise sizes.make_value_error(size, "image_size", "an integer")
    return (size // c["patch_size"]) ** 2


class BlipVision(parts.VisionEncoder):
    patch_size: sizes.Positive = sizes.hf("patch_size")
    n_patches: sizes.Natural = sizes.derived(count_patches(224))

    norm_eps: ClassVar = sizes.setting("layer_norm_eps", usual=1e-5)

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of the class token and the patches."""
        x = parts.embed_patches(pixels, "embeddings.patch_embedding", c.d_model, c.patch_size, bias=True)
        x = ops.class_token(x, "embeddings.class_embedding", 1, 1, c.d_model)
        x = ops.add_positions(x, "embeddings.position_embedding", 1, c.n_patches + 1, c.d_model)
        return c.norm(c.encode(x), "post_layernorm")

    def layer(c: Any, x: Data, *reads: Data) -> Data:
        x = x + c.attention(c.norm(x, "layer_norm1"))
        return x + parts.encoder_mlp(c, c.norm(x, "layer_norm2"))

    def attention(c: Any, x: Data) -> Data:
        thirds = dict.fromkeys(("qkv.q", "qkv.k", "qkv.v"), (c.n_heads, c.d_head))
        q, k, v = ops.fused(x, "self_attn.qkv", thirds, bias=getattr(c, "qkv_bias", True))
        return ops.linear(ops.attend(q, k, v), "self_attn.projection", "output_projection", c.d_model, bias=True)
