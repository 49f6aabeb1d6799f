"""InternVL: its own vision encoder, which scales every residual update element-wise.

Squares of patches become one vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import SerializeAsAny

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Weight, activate, attend, block, elementwise, given, layers, linear, norm
from paramcount.parts.attentions import wide_norm
from paramcount.parts.composite import with_language
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import Condition, Derivation, Flag, Natural, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.conditions import one_of
from paramcount.sizes.rules import check_heads_fill

LAYER = ("layernorm_before", "layernorm_after", "lambda_1", "lambda_2")  # norms and scales


def sides(js: Mapping[str, Any], key: str, absent: int) -> tuple[int, int]:
    """Height and width: one number is for both."""
    value = js.get(key, absent)
    both = (value, value) if type(value) is int else tuple(value) if isinstance(value, (list, tuple)) else ()
    if len(both) != 2 or not all(type(side) is int and side > 0 for side in both):
        raise ParamcountError(
            f"= {describe_value(value)}", where=f"vision_config.{key}", expected="an integer, or height and width"
        )
    return both[0], both[1]


def patch(axis: int) -> Derivation:
    return lambda js, c: sides(js, "patch_size", 14)[axis]


def n_patches(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    height, width = sides(js, "image_size", 448)
    n: int = (height // c["patch_height"]) * (width // c["patch_width"])
    return n


class InternVision(Sizes):
    """The sizes of the tower."""

    section: ClassVar[str | None] = "vision_config"
    conditions: ClassVar[tuple[Condition, ...]] = (one_of("norm_type", ("layer_norm", "rms_norm"), "layer_norm"),)

    d_model: Positive = hf(absent=1024)
    n_layers: Positive = hf(absent=24)
    n_heads: Positive = hf(absent=16)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf(absent=4096)
    n_channels: Positive = hf("num_channels", absent=3)
    patch_height: Positive = derived(patch(0))
    patch_width: Positive = derived(patch(1))
    n_patches: Natural = derived(n_patches)
    attention_bias: Flag = hf(absent=False)
    qk_norm: Flag = hf("use_qk_norm", absent=False)
    norm_bias: Flag = derived(lambda js, c: js.get("norm_type", "layer_norm") == "layer_norm")
    last_norm: Flag = derived(lambda js, c: not js.get("use_mean_pooling", True))
    mask_token: Flag = hf("use_mask_token", absent=False)
    absolute_positions: Flag = hf("use_absolute_position_embeddings", absent=True)

    def check(c) -> None:
        check_heads_fill(c)


class InternVL(Sizes):
    """Source: arXiv:2312.14238, section 3.2; the projector arXiv:2404.16821, section 3.1. `n_merged`: patches that
    become one vector.
    """

    reference: ClassVar[str] = "InternVLForConditionalGeneration"

    language: SerializeAsAny[Sizes]
    vision: InternVision
    n_merged: Positive = derived(lambda js, c: int(1 / js.get("downsample_ratio", 0.5)) ** 2)

    def forward(c, tokens: Data) -> Data:
        return with_language(c, tokens, seen(c), head=True)

    def body(c, tokens: Data) -> Data:
        return with_language(c, tokens, seen(c), head=False)


def seen(c: Any) -> Data:
    """Pixels to vectors of the language model's width."""
    eyes = c.vision
    pixels = given("pixels", "patches", eyes.n_channels, eyes.patch_height, eyes.patch_width)
    image = block(pixels, "vision_tower.", lambda x: tower(eyes, x), part="vision")
    return block(
        image, "multi_modal_projector.", lambda x: merge(c, x, ("layer_norm", "linear_1", "linear_2")), part="projector"
    )


def tower(c: Any, x: Data) -> Data:
    patches = "embeddings.patch_embeddings.projection"
    kernel = Weight(patches + ".weight", "embedding", (c.d_model, *x.shape[1:]))
    x = Data("convolve", (x,), ("patches", c.d_model), (kernel, Weight(patches + ".bias", "embedding", (c.d_model,))))
    if c.mask_token:
        x = elementwise(x, "mask token", "embeddings.mask_token", "embedding", 1, 1, c.d_model)
    x = elementwise(x, "class token", "embeddings.cls_token", "embedding", 1, 1, c.d_model)
    if c.absolute_positions:
        x = elementwise(x, "positions", "embeddings.position_embeddings", "position", 1, c.n_patches + 1, c.d_model)
    x = layers(
        x, "encoder.layer.{layer}.", [("layer", c.n_layers)], lambda kind, x: scaled_layer(c, x, attention, LAYER)
    )
    return norm(x, "layernorm", bias=True) if c.last_norm else x


def scaled_layer(c: Any, x: Data, attention: Callable[[Any, Data], Data], names: tuple[str, str, str, str]) -> Data:
    """Attention and MLP, each scaled per channel. `names`: of both norms and both scales."""
    h = attention(c, norm(x, names[0], bias=c.norm_bias))
    x = x + elementwise(h, "scale", names[2], "other", c.d_model)
    h = plain_mlp(norm(x, names[1], bias=c.norm_bias), ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, bias=True)
    return x + elementwise(h, "scale", names[3], "other", c.d_model)


def attention(c: Any, x: Data) -> Data:
    heads = (c.n_heads, c.d_head)
    q, k, v = (linear(x, f"attention.{name}_proj", f"qkv.{name}", heads, bias=c.attention_bias) for name in "qkv")
    if c.qk_norm:
        q, k = wide_norm(q, "attention.q_norm"), wide_norm(k, "attention.k_norm")
    return linear(attend(q, k, v, cached=()), "attention.projection_layer", "output_projection", c.d_model, bias=True)


def merge(c: Any, x: Data, names: tuple[str, str, str]) -> Data:
    """Squares of patches to vectors of the language model's size. `names`: of the norm and both matrices."""
    x = norm(Data("merge", (x,), ("image", c.n_merged * c.vision.d_model)), names[0], bias=True)
    h = activate(linear(x, names[1], "projector", c.language.d_model, bias=True), "gelu")
    return linear(h, names[2], "projector", c.language.d_model, bias=True)
