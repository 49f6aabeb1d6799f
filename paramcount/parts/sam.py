"""SAM's vision encoder: attention inside windows except in a few layers, then a neck of convolutions.

Attention has relative positions in two dimensions.

Source: arXiv:2304.02643, appendix A; GotOcr2VisionEncoder of the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Size, Weight, attend, elementwise, layers, linear, norm
from paramcount.parts.attentions import fused_qkv
from paramcount.parts.decoders import pre_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.vision import cut_into_patches
from paramcount.sizes import Flag, Natural, Positive, Sizes, Words, d_model_per_head, derived, hf, per_layer
from paramcount.sizes.rules import check_heads_fill


def side(js: Mapping[str, Any], c: Mapping[str, Any]) -> int:
    """How many patches an image is wide and high."""
    size = js.get("image_size", 1024)
    if type(size) is not int or size < c["patch_size"]:
        raise ParamcountError(
            f"= {describe_value(size)}",
            where="vision_config.image_size",
            expected="an integer, at least the patch size",
        )
    n: int = size // c["patch_size"]
    return n


def kinds(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    """Which layers look at the whole image."""
    whole = js.get("global_attn_indexes", (2, 5, 8, 11))
    return tuple("window" if c["window_size"] and i not in whole else "global" for i in per_layer(c))


class SamVision(Sizes):
    """The sizes of the tower.

    `n_side`: how many patches the image is wide and high, `window_size` those of a window.
    """

    section: ClassVar[str | None] = "vision_config"

    d_model: Positive = hf(absent=768)
    d_out: Positive = hf("output_channels", absent=256)
    n_layers: Positive = hf(absent=12)
    n_heads: Positive = hf(absent=12)
    d_head: Positive = derived(d_model_per_head)
    d_ff: Positive = hf("mlp_dim", absent=3072)
    n_channels: Positive = hf("num_channels", absent=3)
    patch_size: Positive = hf("patch_size", absent=16)
    n_side: Positive = derived(side)
    window_size: Natural = hf("window_size", absent=14)
    layer_types: Words = derived(kinds)
    qkv_bias: Flag = hf(absent=True)
    absolute_positions: Flag = hf("use_abs_pos", absent=True)
    relative_positions: Flag = hf("use_rel_pos", absent=True)

    def check(c) -> None:
        check_heads_fill(c)


def sam(c: Any, pixels: Data) -> Data:
    x = cut_into_patches(pixels, "patch_embed.projection", c.d_model, c.patch_size, bias=True)
    if c.absolute_positions:
        x = elementwise(x, "positions", "pos_embed", "position", 1, c.n_side, c.n_side, c.d_model)
    x = layers(x, "layers.{layer}.", [(kind, 1) for kind in c.layer_types], lambda kind, x: layer(c, kind, x))
    for number, kernel in (("1", 1), ("2", 3)):
        conv = Weight(f"neck.conv{number}.weight", "mixer", (c.d_out, x.shape[1], kernel, kernel))
        x = norm(Data("convolve", (x,), ("patches", c.d_out), (conv,)), f"neck.layer_norm{number}", bias=True)
    return x


def layer(c: Any, kind: str, x: Data) -> Data:
    return pre_norm(
        x,
        lambda h: attention(c, h, c.n_side if kind == "global" else c.window_size),
        lambda h: plain_mlp(h, ("mlp.lin1", "mlp.lin2"), "mlp", c.d_ff, bias=True),
        ("layer_norm1", "layer_norm2"),
        bias=True,
    )


def attention(c: Any, x: Data, reach: Size) -> Data:
    """Decomposed relative positions inside a square of `reach` × `reach` patches.

    The scores gain one term per query for the vertical and one for the horizontal distance.
    """
    q, k, v = fused_qkv(c, x, "attn.qkv", bias=c.qkv_bias)
    for name in ("attn.rel_pos_h", "attn.rel_pos_w") if c.relative_positions else ():
        q = elementwise(q, "relative positions", name, "position", 2 * reach - 1, c.d_head)
    return linear(attend(q, k, v, cached=()), "attn.proj", "output_projection", c.d_model, bias=True)
