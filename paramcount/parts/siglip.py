"""SigLIP's vision encoder: patches with learned positions and layers of full attention.

An attention pooling head is optional.

Source: arXiv:2303.15343; SiglipVisionModel of the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import (
    Data,
    add_positions,
    attend,
    bundle,
    class_token,
    cut,
    first_token,
    fused,
    linear,
    lookup_in_grid,
    other_tokens,
    patch_places,
    rope_at,
    to_heads,
)
from paramcount.parts.classic import multi_head
from paramcount.parts.qwen_vision import ROWS_AND_COLUMNS
from paramcount.parts.vision import States, VisionEncoder, embed_patches, encoder_mlp, select_states
from paramcount.sizes import Condition, Flag, Natural, Positive, derived, hf, rotary

SIGLIP = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "patch_size": 14,
    "image_size": 384,
    "num_hidden_layers": 26,
    "num_attention_heads": 16,
    "vision_use_head": False,
}


def tower_named(known: str, section: str = "vision_config") -> Condition:
    """A composite model may name any tower of the reference; only this one is declared."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        if (found := js.get("model_type", known)) != known:
            raise ParamcountError(
                f"= {describe_value(found)} is not supported", where=f"{section}.model_type", expected=known
            )

    return condition


class SiglipVision(VisionEncoder):
    model_types = ("siglip_vision_model",)
    is_section_type = True
    conditions: ClassVar[tuple[Condition, ...]] = (tower_named("siglip_vision_model"),)

    n_channels: Positive = hf("num_channels")
    patch_size: Positive = hf("patch_size")
    n_patches: Natural = derived(lambda js, c: (js.get("image_size", 224) // c["patch_size"]) ** 2)
    pooling_head: Flag = hf("vision_use_head")

    def forward(c, pixels: Data, states: States | None = None) -> Data:
        """One image to vectors of its patches; the pooled vector, if there is one, is beside them."""
        x = c.encode(c.embed(pixels))
        y = c.norm(x, "post_layernorm")
        out = y if states is None else select_states(x, states)
        if c.pooling_head:
            return bundle(out, c.pool(y))
        return out if states is None else bundle(out, y)

    def embed(c, pixels: Data) -> Data:
        x = embed_patches(pixels, "embeddings.patch_embedding", c.d_model, c.patch_size, bias=True)
        return add_positions(x, "embeddings.position_embedding.weight", c.n_patches, c.d_model)

    def pool(c, x: Data) -> Data:
        """One vector out of all patches: a learned query attends to them."""
        suffixes = ("in_proj_weight", "in_proj_bias")
        x = class_token(x, "head.probe", 1, 1, c.d_model, component="other")
        parts = dict.fromkeys(("qkv.q", "qkv.k", "qkv.v"), c.d_model)
        whole = fused(x, "head.attention.", parts, bias=True, suffixes=suffixes)
        q, k, v = (to_heads(y, c.n_heads, c.d_head) for y in whole)
        a = attend(first_token(q), other_tokens(k), other_tokens(v))  # [n, n_heads, d_head]
        a = linear(a, "head.attention.out_proj", "output_projection", c.d_model, bias=True)
        return a + encoder_mlp(c, c.norm(a, "head.layernorm"), ("head.mlp.fc1", "head.mlp.fc2"))


class SiglipRotaryVision(VisionEncoder):
    """The same layers over images of any size, with rotary positions by row and column.

    Source: VideoLlama3VisionModel and PaddleOCRVisionTransformer of the reference.
    """

    config_class = "VideoLlama3VisionConfig"

    n_channels: Positive = hf("num_channels")
    patch_size: Positive = hf("patch_size")

    rope: ClassVar = rotary()

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches."""
        places = patch_places(pixels, c.patch_size, c.patch_size)
        x = embed_patches(pixels, "embeddings.patch_embedding", c.d_model, c.patch_size, bias=True)
        return c.norm(c.encode(c.add_positions(x, places), places), "post_layernorm")

    def add_positions(c, x: Data, places: Data) -> Data:
        return x

    def layer(c, x: Data, *reads: Data) -> Data:
        (places,) = reads
        h = c.norm(x, "layer_norm1")
        rotate = partial(rope_at, places=places, settings=c.rope, axes=ROWS_AND_COLUMNS)
        x = x + multi_head(c, h, "self_attn.", turn=lambda q, k, v: (rotate(q), rotate(k), v))
        return x + encoder_mlp(c, c.norm(x, "layer_norm2"))


class Siglip2Vision(SiglipVision):
    """Images of any shape: positions are stretched. Source: arXiv:2502.14786, section 2.3."""

    model_types = ("siglip2_vision_model",)
    is_section_type = True

    conditions: ClassVar[tuple[Condition, ...]] = (tower_named("siglip2_vision_model"),)

    n_patches: Positive = hf("num_patches")

    def embed(c, pixels: Data) -> Data:
        patches = cut(pixels, c.patch_size, c.patch_size, axes="hwc")
        x = linear(patches, "embeddings.patch_embedding", "embedding", c.d_model, bias=True)
        places = patch_places(pixels, c.patch_size, c.patch_size)
        name, table = "embeddings.position_embedding.weight", (c.n_patches, c.d_model)
        return x + lookup_in_grid(places, name, *table, stretch="centres, averaged")
