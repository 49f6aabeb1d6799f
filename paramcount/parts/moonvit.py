"""MoonViT: images of any size, positions stretched from a grid and rotary ones in two dimensions.

Source: arXiv:2504.07491, section 2.1; Kimi_K25VisionModel of the reference.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data

COLUMNS_AND_ROWS = ops.Axes((1, 1), "in turns")


@sizes.options_first
def merged(js: sizes.ConfigJson, c: sizes.FieldValues, axis: int) -> Any:
    """How many patches become one vector, down (0) or across (1)."""
    kernel = js.get("merge_kernel_size", (2, 2))
    if not isinstance(kernel, (list, tuple)) or len(kernel) != 2:
        raise sizes.make_value_error(kernel, "vision_config.merge_kernel_size", "a height and a width")
    return kernel[axis]


class MoonViT(parts.VisionEncoder):
    """`n_rows`, `n_columns`: of the grid of learned positions."""

    config_class = "Kimi_K25VisionConfig"

    unused_keys: ClassVar[tuple[str, ...]] = ("pos_emb_time", "init_pos_emb_time")  # times are sinusoids

    patch_size: sizes.Positive = sizes.hf("patch_size")
    n_rows: sizes.Positive = sizes.hf("pos_emb_height")
    n_columns: sizes.Positive = sizes.hf("pos_emb_width")
    merged_rows: sizes.Positive = sizes.derived(merged(0))
    merged_columns: sizes.Positive = sizes.derived(merged(1))

    norm_eps: ClassVar[float] = 1e-5
    rope: ClassVar = sizes.rotary()

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches."""
        places = ops.patch_places(pixels, c.patch_size, c.patch_size)
        x = parts.embed_patches(pixels, "patch_embed.proj", c.d_model, c.patch_size, bias=True)
        name, shape = "patch_embed.pos_emb.weight", (c.n_rows, c.n_columns, c.d_model)
        x = x + ops.lookup_in_grid(places, name, *shape, stretch="centres, cubic")
        return c.norm(c.encode(x, places, name="encoder.blocks.{layer}."), "encoder.final_layernorm")

    def layer(c, x: Data, *reads: Data) -> Data:
        x = x + c.attention(c.norm(x, "norm0"), *reads)
        return x + parts.encoder_mlp(c, c.norm(x, "norm1"), ("mlp.fc0", "mlp.fc1"))

    def attention(c, x: Data, places: Data) -> Data:
        return parts.attend_by_places(c, parts.fused_qkv(c, x, "wqkv"), places, COLUMNS_AND_ROWS, "wo")

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_even(c, "d_head")
