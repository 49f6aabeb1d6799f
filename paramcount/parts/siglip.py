"""SigLIP's vision encoder: patches with learned positions and layers of full attention.

An attention pooling head is optional.

Source: arXiv:2303.15343; SiglipVisionModel of the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data

SIGLIP = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "patch_size": 14,
    "image_size": 384,
    "num_hidden_layers": 26,
    "num_attention_heads": 16,
    "vision_use_head": False,
}


@sizes.options_first
def tower_named(js: Mapping[str, Any], c: Mapping[str, Any], known: str, section: str = "vision_config") -> None:
    """A composite model may name any tower of the reference; only this one is declared."""
    if (found := js.get("model_type", known)) != known:
        raise ParamcountError(
            f"= {describe_value(found)} is not supported", where=f"{section}.model_type", expected=known
        )


class SiglipVision(parts.PatchVision):
    model_types = ("siglip_vision_model",)
    is_section_type = True
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (tower_named("siglip_vision_model"),)

    n_patches: sizes.Natural = sizes.derived(lambda js, c: (js.get("image_size", 224) // c["patch_size"]) ** 2)
    pooling_head: sizes.Flag = sizes.hf("vision_use_head")

    def forward(c, pixels: Data, states: parts.States | None = None) -> Data:
        """One image to vectors of its patches; the pooled vector, if there is one, is beside them."""
        x = c.encode(c.embed(pixels))
        y = c.norm(x, "post_layernorm")
        out = y if states is None else parts.select_states(x, states)
        if c.pooling_head:
            return ops.bundle(out, c.pool(y))
        return out if states is None else ops.bundle(out, y)

    def embed(c, pixels: Data) -> Data:
        x = parts.embed_patches(pixels, "embeddings.patch_embedding", c.d_model, c.patch_size, bias=True)
        return ops.add_positions(x, "embeddings.position_embedding.weight", c.n_patches, c.d_model)

    def pool(c, x: Data) -> Data:
        """One vector out of all patches: a learned query attends to them."""
        suffixes = ("in_proj_weight", "in_proj_bias")
        x = ops.class_token(x, "head.probe", 1, 1, c.d_model, component="other")
        thirds = dict.fromkeys(("qkv.q", "qkv.k", "qkv.v"), c.d_model)
        whole = ops.fused(x, "head.attention.", thirds, bias=True, suffixes=suffixes)
        q, k, v = (ops.to_heads(y, c.n_heads, c.d_head) for y in whole)
        a = ops.attend(ops.first_token(q), ops.other_tokens(k), ops.other_tokens(v))  # [n, n_heads, d_head]
        a = ops.linear(a, "head.attention.out_proj", "output_projection", c.d_model, bias=True)
        return a + parts.encoder_mlp(c, c.norm(a, "head.layernorm"), ("head.mlp.fc1", "head.mlp.fc2"))


class SiglipRotaryVision(parts.PatchVision):
    """The same layers over images of any size, with rotary positions by row and column.

    Source: VideoLlama3VisionModel and PaddleOCRVisionTransformer of the reference.
    """

    config_class = "VideoLlama3VisionConfig"

    rope: ClassVar = sizes.rotary()

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches."""
        places = ops.patch_places(pixels, c.patch_size, c.patch_size)
        x = parts.embed_patches(pixels, "embeddings.patch_embedding", c.d_model, c.patch_size, bias=True)
        return c.norm(c.encode(c.add_positions(x, places), places), "post_layernorm")

    def add_positions(c, x: Data, places: Data) -> Data:
        return x

    def layer(c, x: Data, *reads: Data) -> Data:
        (places,) = reads
        h = c.norm(x, "layer_norm1")
        rotate = partial(ops.rope_at, places=places, settings=c.rope, axes=parts.qwen_vision.ROWS_AND_COLUMNS)
        x = x + parts.multi_head(c, h, "self_attn.", turn=lambda q, k, v: (rotate(q), rotate(k), v))
        return x + parts.encoder_mlp(c, c.norm(x, "layer_norm2"))


class Siglip2Vision(SiglipVision):
    """Images of any shape: positions are stretched. Source: arXiv:2502.14786, section 2.3."""

    model_types = ("siglip2_vision_model",)
    is_section_type = True

    conditions: ClassVar[tuple[sizes.Condition, ...]] = (tower_named("siglip2_vision_model"),)

    n_patches: sizes.Positive = sizes.hf("num_patches")

    def embed(c, pixels: Data) -> Data:
        patches = ops.cut(pixels, c.patch_size, c.patch_size, axes="hwc")
        x = ops.linear(patches, "embeddings.patch_embedding", "embedding", c.d_model, bias=True)
        places = ops.patch_places(pixels, c.patch_size, c.patch_size)
        name, table = "embeddings.position_embedding.weight", (c.n_patches, c.d_model)
        return x + ops.lookup_in_grid(places, name, *table, stretch="centres, averaged")


class SiglipText(parts.ClipText):
    """Of texts that are padded to one length: tokens see later ones, and the last one is read.

    Source: SiglipTextModel of the reference.
    """

    config_class = "SiglipTextConfig"

    mask = None

    d_projected: sizes.Positive = sizes.hf(
        "projection_size", absent=sizes.equal_to("d_model"), null=sizes.equal_to("d_model")
    )

    def forward(c, tokens: Data) -> Data:
        """Token ids to vectors [n, d_model]; the last one, projected, is beside them."""
        x = super().forward(tokens)
        return ops.bundle(x, ops.linear(ops.pool_text(x, "last position"), "head", "other", c.d_projected, bias=True))


class Siglip2Text(SiglipText):
    config_class = "Siglip2TextConfig"
