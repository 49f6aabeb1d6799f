"""The vision encoder of Qwen's models: images of any size, rotary positions in two dimensions.

Patches stand square by square, so that those of a square can be merged into one vector. Source: arXiv:2409.12191,
section 2.1; modeling_qwen2_vl.py, modeling_qwen2_5_vl.py and modeling_qwen3_vl.py of the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data

ROWS_AND_COLUMNS = ops.Axes((1, 1), "restarted")


class SquareEncoder(parts.VisionEncoder):
    """The fields of the encoders. `d_out`: after the merger."""

    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "depth")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "num_heads")
    d_out: sizes.Positive = sizes.hf("out_hidden_size")
    n_channels: sizes.Positive = sizes.hf("in_channels")
    n_frames: sizes.Positive = sizes.hf("temporal_patch_size")
    patch_size: sizes.Positive = sizes.hf("patch_size")
    merge_size: sizes.Positive = sizes.hf("spatial_merge_size")

    norm_eps: ClassVar[Any] = 1e-6
    rope: ClassVar[Any] = sizes.rotary()


def image_of(c: Any) -> Data:
    """The input: one image."""
    return ops.given("pixels", c.n_channels, "height", "width")


def embed_image(c: Any, pixels: Data, *, bias: bool = False) -> Data:
    """An image, which stands for all frames of a patch, to one vector per patch."""
    name, side = "patch_embed.proj", c.patch_size
    return parts.embed_patches(pixels, name, c.d_model, side, bias=bias, square=c.merge_size, frames=c.n_frames)


def places_of(c: Any, pixels: Data) -> Data:
    return ops.patch_places(pixels, c.patch_size, c.patch_size, square=c.merge_size)


def encode(c: Any, x: Data, *reads: Data) -> Data:
    """Patches through all layers."""
    return ops.layers(x, "blocks.{layer}.", [("layer", c.n_layers)], lambda kind, *x: c.layer(*x), reads=reads)


def encoder_attention(
    c: Any,
    x: Data,
    places: Data,
    *,
    bias: bool = True,
    o_bias: bool = True,
    qk_norm: bool = False,
    is_fused: bool = True,
    mask: ops.Mask | None = None,
) -> Data:
    """`is_fused`: q, k and v are one stored matrix. `mask`: see `attend`."""
    if is_fused:
        q, k, v = parts.fused_qkv(c, x, "attn.qkv", bias=bias)  # [n, n_heads, d_head]
    else:
        q, k, v = (ops.linear(x, f"attn.{name}", f"qkv.{name}", (c.n_heads, c.d_head), bias=bias) for name in "qkv")
    if qk_norm:
        q, k = c.norm(q, "attn.q_norm"), c.norm(k, "attn.k_norm")
    q, k = (ops.rope_at(y, places, c.rope, ROWS_AND_COLUMNS) for y in (q, k))
    return ops.linear(ops.attend(q, k, v, mask=mask), "attn.proj", "output_projection", c.d_model, bias=o_bias)


def merge(c: Any, x: Data) -> Data:
    """Squares of merge_size patches a side, side by side."""
    return ops.merge_rows(x, c.merge_size * c.merge_size)


def widen(c: Any, x: Data, names: tuple[str, str]) -> Data:
    """Merged patches to the size of the language model."""
    h = ops.activate(ops.linear(x, names[0], "projector", x.shape[-1], bias=True), "gelu")
    return ops.linear(h, names[1], "projector", c.d_out, bias=True)


# ---- positions of the language model in time, row and column


@sizes.options_first
def mrope_axes(config: Mapping[str, Any], c: Any, order: str, *absent: int) -> ops.Axes:
    """Which pairs rotate with which position. `absent`: the default of mrope_section."""
    rope = config.get("rope_scaling") or config.get("rope_parameters") or {}
    return ops.Axes(tuple(rope.get("mrope_section", absent)), order)  # type: ignore[arg-type]


def rotation(c: Any, *places: Data) -> Callable[[Data], Data] | bool:
    """How the attention of a language model rotates: by the places of its tokens, if they are given."""
    if not places:
        return True
    return lambda y: ops.rope_at(y, places[0], c.rope, c.axes)


def places_in_text(c: Any, tokens: Data, pixels: Data) -> Data:
    """Where each token stands, in a text with an image."""
    side = c.vision.patch_size * c.vision.merge_size
    return ops.token_places(tokens, pixels, side, side, c.image_token)


class PlacedImages(parts.Composite):
    """An encoder whose patches are merged, and a language model that rotates by time, row and column.

    A subclass adds `vision`.
    """

    encoder_prefix: ClassVar[str] = "model.visual."
    projector_prefix: ClassVar[str] = "model.visual."

    language: sizes.Sizes

    image_token: ClassVar[Any] = sizes.setting("image_token_id")

    def forward(c: Any, tokens: Data, head: bool = True) -> Data:
        pixels = image_of(c.vision)
        image = ops.block(pixels, c.encoder_prefix, c.vision.forward, part="vision")
        image = ops.rename_weights(image, replaced=c.renamed)
        image = ops.block(image, c.projector_prefix, c.project, reads=c.places(pixels), part="projector")
        if not hasattr(c.language, "axes"):
            return c.read_with(tokens, [(image, c.image_token)], head=head)
        x = c.insert_sound(ops.insert(c.embed_text(tokens), tokens, image, c.image_token), tokens)
        return c.read_text(x, c.place_tokens(tokens, pixels), *c.marks(tokens), head=head)

    def place_tokens(c, tokens: Data, pixels: Data) -> Data:
        """Where each token stands, in a text with an image."""
        return places_in_text(c, tokens, pixels)

    def marks(c, tokens: Data) -> tuple[Data, ...]:
        """What else the layers of the language model read."""
        return ()

    def insert_sound(c, x: Data, tokens: Data) -> Data:
        """Embedded tokens with a sound, if the model hears."""
        return x

    def places(c, pixels: Data) -> tuple[Data, ...]:
        """What the projector reads besides vectors: the rows and columns of patches, unless squares stand together."""
        return ()

    def project(c: Any, x: Data, *places: Data) -> Data:
        return c.vision.merge(x)
