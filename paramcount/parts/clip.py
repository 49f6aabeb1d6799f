"""CLIP's vision encoder: patches after a class token, learned positions, layers of full attention. Its text encoder
has the same layers, whose tokens see no later ones.

In the vision encoder, one norm stands before the layers and one after. Source: arXiv:2103.00020, section 2.4;
CLIPVisionModel and CLIPTextModel of the reference.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data

CLIP = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "patch_size": 14,
    "image_size": 336,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
}


class ClipVision(parts.PatchVision):
    model_types = ("clip_vision_model",)
    is_section_type = True
    unused_keys: ClassVar[tuple[str, ...]] = ("projection_dim",)

    n_patches: sizes.Natural = sizes.derived(lambda js, c: (js.get("image_size", 224) // c["patch_size"]) ** 2)

    def forward(c, pixels: Data, states: parts.States | None = None) -> Data:
        """One image to vectors of the class token and the patches; the normed class token is beside them."""
        x = c.encode(c.embed(pixels))
        return ops.bundle(parts.select_states(x, states), c.norm(ops.first_token(x), "post_layernorm"))

    def embed(c, pixels: Data) -> Data:
        x = parts.embed_patches(pixels, "embeddings.patch_embedding", c.d_model, c.patch_size)
        x = ops.class_token(x, "embeddings.class_embedding")
        x = ops.add_positions(x, "embeddings.position_embedding.weight", c.n_patches + 1, c.d_model)
        return c.norm(x, "pre_layrnorm")  # spelled so


class ClipText(parts.VisionEncoder):
    """Of texts, whose last token is the one that ends them."""

    config_class = "CLIPTextConfig"
    section: ClassVar[str | None] = "text_config"
    unused_keys: ClassVar[tuple[str, ...]] = ("projection_dim",)

    vocab_size: sizes.Positive = sizes.hf()
    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")

    mask: ClassVar[ops.Mask | None] = ops.Causal()  # what hides tokens from others

    def forward(c, tokens: Data) -> Data:
        """Token ids to vectors [n, d_model]."""
        x = ops.lookup(tokens, "embeddings.token_embedding.weight", "embedding", c.vocab_size, c.d_model)
        x = x + ops.lookup_position(tokens, "embeddings.position_embedding.weight", c.n_positions, c.d_model)
        return c.norm(c.encode(x), "final_layer_norm")

    def layer(c, x: Data, *reads: Data) -> Data:
        return parts.vision.pre_norm_layer(c, x, mix=partial(ops.attend, mask=c.mask))
