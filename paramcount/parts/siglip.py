"""SigLIP's vision encoder: patches with learned positions and layers of full attention.

An attention pooling head is optional.

Source: arXiv:2303.15343; SiglipVisionModel of the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Size, Weight, attend, elementwise, layers, linear, norm, split
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.vision import cut_into_patches, vision_layer
from paramcount.sizes import Condition, Flag, Natural, Positive, Tower, d_model_per_head, derived, hf
from paramcount.sizes.rules import check_heads_fill


def tower_named(known: str) -> Condition:
    """A composite model may name any tower of the reference; only this one is declared."""

    def condition(js: Mapping[str, Any], c: Mapping[str, Any]) -> None:
        if (found := js.get("model_type", known)) != known:
            raise ParamcountError(
                f"= {describe_value(found)} is not supported", where="vision_config.model_type", expected=known
            )

    return condition


class SiglipVision(Tower):
    """The sizes of the tower."""

    conditions: ClassVar[tuple[Condition, ...]] = (tower_named("siglip_vision_model"),)

    d_model: Positive = hf(absent=768)
    n_layers: Positive = hf(absent=12)
    n_heads: Positive = hf(absent=12)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=3072)
    n_channels: Positive = hf("num_channels", absent=3)
    patch_size: Positive = hf("patch_size", absent=16)
    n_patches: Natural = derived(lambda js, c: (js.get("image_size", 224) // c["patch_size"]) ** 2)
    pooling_head: Flag = hf("vision_use_head", absent=True)

    def forward(c, tokens: Data) -> Data:
        return siglip(c, tokens)

    def check(c) -> None:
        check_heads_fill(c)


def siglip(c: Any, pixels: Data, n_layers: Size | None = None) -> Data:
    """Pixels to patch vectors.

    The pooled vector, where there is one, is handed on beside them. `n_layers`: if not those of c.
    """
    x = cut_into_patches(pixels, "embeddings.patch_embedding", c.d_model, c.patch_size, bias=True)
    x = elementwise(x, "positions", "embeddings.position_embedding.weight", "position", c.n_patches, c.d_model)
    x = layers(
        x,
        "encoder.layers.{layer}.",
        [("layer", c.n_layers if n_layers is None else n_layers)],
        lambda kind, x: vision_layer(c, x),
    )
    x = norm(x, "post_layernorm", bias=True)
    return Data("tuple", (x, pool(c, x)), x.shape) if c.pooling_head else x


def pool(c: Any, x: Data) -> Data:
    """One vector out of all patches: a learned query attends to them."""
    d = c.d_model
    query = Data("query", (x,), (1, d), (Weight("head.probe", "other", (1, 1, d)),))
    thirds = (("qkv.q", d), ("qkv.k", d), ("qkv.v", d))
    stored = (
        Weight("head.attention.in_proj_weight", "qkv.q", (3 * d, d), thirds),
        Weight("head.attention.in_proj_bias", "qkv.q", (3 * d,), thirds),
    )
    projected = Data("linear", (query, x), ("patches", 3 * d), stored)
    q, k, v = (
        Data("split", (projected,), (part.shape[0], c.n_heads, c.d_head)) for part in (query, *split(projected, d, d))
    )
    a = linear(attend(q, k, v, cached=()), "head.attention.out_proj", "output_projection", d, bias=True)
    return a + plain_mlp(
        norm(a, "head.layernorm", bias=True), ("head.mlp.fc1", "head.mlp.fc2"), "mlp", c.d_ff, bias=True
    )
