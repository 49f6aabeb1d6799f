"""SAM's vision encoder: attention inside windows except in a few layers, then a neck of convolutions.

Attention has relative positions in two dimensions.

Source: arXiv:2304.02643, appendix A; GotOcr2VisionEncoder of the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data


@sizes.options_first
def side(js: Mapping[str, Any], c: Mapping[str, Any], absent: int) -> int:
    """How many patches an image is wide and high. `absent`: the default of its size in pixels."""
    size = js.get("image_size", absent)
    if type(size) is not int or size < c["patch_size"]:
        raise sizes.make_value_error(size, "vision_config.image_size", "an integer, at least the patch size")
    return size // c["patch_size"]


def kinds(js: Mapping[str, Any], c: Mapping[str, Any]) -> tuple[str, ...]:
    """Which layers look at the whole image."""
    whole = js.get("global_attn_indexes", (2, 5, 8, 11))
    return tuple("window" if c["window_size"] and i not in whole else "global" for i in sizes.per_layer(c))


class SamVision(parts.VisionEncoder):
    """`n_side`: how many patches the image is wide and high, `window_size` those of a window."""

    config_class = "GotOcr2VisionConfig"

    d_out: sizes.Positive = sizes.hf("output_channels")
    d_ff: sizes.Natural = sizes.hf("mlp_dim")
    n_channels: sizes.Positive = sizes.hf("num_channels")
    patch_size: sizes.Positive = sizes.hf("patch_size")
    n_side: sizes.Positive = sizes.derived(side(1024))
    window_size: sizes.Natural = sizes.hf("window_size")
    layer_types: sizes.Words = sizes.derived(kinds)
    qkv_bias: sizes.Flag = sizes.hf()
    absolute_positions: sizes.Flag = sizes.hf("use_abs_pos")
    relative_positions: sizes.Flag = sizes.hf("use_rel_pos")

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches, [patches, d_out]."""
        return c.neck(c.encode_patches(pixels), "neck.")

    def encode_patches(c, pixels: Data) -> Data:
        """One image to hidden states, [patches, d_model]."""
        x = parts.embed_patches(pixels, "patch_embed.projection", c.d_model, c.patch_size, bias=True)
        if c.absolute_positions:
            x = ops.add_positions(x, "pos_embed", 1, c.n_side, c.n_side, c.d_model)
        reads: tuple[Data, ...] = (ops.patch_places(pixels, c.patch_size, c.patch_size),)
        if "window" in c.layer_types:
            reads += ops.padded_places(pixels, c.patch_size, c.window_size * c.patch_size)
        kinds = [(kind, 1) for kind in c.layer_types]
        return ops.layers(x, "layers.{layer}.", kinds, lambda kind, *x: c.layer_of(kind, *x), reads=reads)

    def layer_of(c, kind: str, x: Data, places: Data, *padded: Data) -> Data:
        h = c.norm(x, "layer_norm1")
        if kind == "global":
            x = x + c.attend(h, c.n_side, places)
        else:
            x = x + ops.drop_rows(c.attend(ops.pad_rows(h, padded[0]), c.window_size, *padded), x)
        return x + parts.encoder_mlp(c, c.norm(x, "layer_norm2"), ("mlp.lin1", "mlp.lin2"))

    def attend(c, x: Data, reach: ops.Size, places: Data, within: Data | None = None) -> Data:
        """Inside squares of `reach` × `reach` patches. The scores gain what the query says of the distance in rows,
        and of that in columns. Patches outside the image are attended to."""
        q, k, v = parts.fused_qkv(c, x, "attn.qkv", bias=c.qkv_bias)  # [n, n_heads, d_head]
        biases: tuple[Data, ...] = ()
        if c.relative_positions:
            tables = [ops.Weight(f"attn.rel_pos_{axis}", "position", (2 * reach - 1, c.d_head)) for axis in "hw"]
            of_rows, of_columns = (ops.linear_by_head(q, 2 * reach - 1, table, of="all heads") for table in tables)
            biases = ops.bias_by_place(of_rows, places, "rows"), ops.bias_by_place(of_columns, places, "columns")
        a = ops.attend(q, k, v, *biases, mask=None if within is None else ops.Groups(within))  # [n, n_heads, d_head]
        return ops.linear(a, "attn.proj", "output_projection", c.d_model, bias=True)

    def neck(c, x: Data, prefix: str) -> Data:
        narrow = ops.Weight(prefix + "conv1.weight", "mixer", (c.d_out, c.d_model, 1, 1))
        x = ops.layer_norm(Data(ops.Linear(), (x,), ("patches", c.d_out), (narrow,)), prefix + "layer_norm1", 1e-6)
        return ops.layer_norm(
            ops.convolve_image(x, prefix + "conv2", "mixer", c.d_out, 3), prefix + "layer_norm2", 1e-6
        )
