"""CLIP's vision encoder: patches after a class token, learned positions, layers of full attention.

One norm stands before the layers and one after.

Source: arXiv:2103.00020, section 2.4; CLIPVisionModel of the reference.
"""

from __future__ import annotations

from typing import ClassVar

from paramcount.flow import Data, elementwise, layers, norm
from paramcount.parts.vision import cut_into_patches, vision_layer
from paramcount.sizes import Natural, Positive, Tower, d_model_per_head, derived, hf
from paramcount.sizes.rules import check_heads_fill


class ClipVision(Tower):
    """The sizes of the tower."""

    unused_keys: ClassVar[tuple[str, ...]] = ("projection_dim",)

    d_model: Positive = hf(absent=768)
    n_layers: Positive = hf(absent=12)
    n_heads: Positive = hf(absent=12)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=3072)
    n_channels: Positive = hf("num_channels", absent=3)
    patch_size: Positive = hf("patch_size", absent=32)
    n_patches: Natural = derived(lambda js, c: (js.get("image_size", 224) // c["patch_size"]) ** 2)

    def forward(c, tokens: Data) -> Data:
        """Pixels to patch vectors. The normed class token is handed on beside them."""
        x = cut_into_patches(tokens, "embeddings.patch_embedding", c.d_model, c.patch_size)
        x = elementwise(x, "class token", "embeddings.class_embedding", "embedding", c.d_model)
        x = elementwise(x, "positions", "embeddings.position_embedding.weight", "position", c.n_patches + 1, c.d_model)
        x = norm(x, "pre_layrnorm", bias=True)  # spelled so
        x = layers(x, "encoder.layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: vision_layer(c, x))
        return Data("tuple", (x, norm(Data("class token", (x,), (1, c.d_model)), "post_layernorm", bias=True)), x.shape)

    def check(c) -> None:
        check_heads_fill(c)
