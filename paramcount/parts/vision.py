"""Vision encoders: what all of them share, and the layer of CLIP and SigLIP.

Patches go through a matrix, get positions and attend to one another.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data

States = tuple[tuple[int, ...] | ops.Unknown, ops.Size]  # which layers are looked at, by number, and how many


class VisionEncoder(sizes.Tower):
    """An encoder of one image. A subclass adds `forward`, pixels to vectors [patches, d_model]."""

    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()

    activation: ClassVar = sizes.setting("hidden_act", usual="gelu")
    norm_eps: ClassVar = sizes.setting("layer_norm_eps", usual=1e-6)

    def image(c) -> Data:
        """The input: one image."""
        return ops.given("pixels", getattr(c, "n_channels", 3), "height", "width")

    norm = parts.use_layer_norm

    def layer(c, x: Data, *reads: Data) -> Data:
        return pre_norm_layer(c, x)

    def encode(
        c, x: Data, *reads: Data, name: str = "encoder.layers.{layer}.", n_layers: ops.Size | None = None
    ) -> Data:
        """Patches through all layers, or through the first n_layers."""
        n = c.n_layers if n_layers is None else n_layers
        return ops.layers(x, name, [("layer", n)], lambda kind, *x: c.layer(*x), reads=reads)

    def check(c) -> None:
        sizes.check_heads_fill(c)


class PatchVision(VisionEncoder):
    """Of an image that is cut into square patches."""

    n_channels: sizes.Positive = sizes.hf("num_channels")
    patch_size: sizes.Positive = sizes.hf("patch_size")


def pre_norm_layer(c: Any, x: Data, mix: parts.Mix | None = None) -> Data:
    """The layer of CLIP and SigLIP: LayerNorms, attention over all patches, a plain MLP, biases everywhere.

    `mix`: how queries, keys and values become attended values; default: all of them see one another.
    """
    x = x + parts.multi_head(c, c.norm(x, "layer_norm1"), "self_attn.", mix=mix)
    return x + encoder_mlp(c, c.norm(x, "layer_norm2"))


def encoder_mlp(c: Any, x: Data, names: tuple[str, str] = ("mlp.fc1", "mlp.fc2")) -> Data:
    return parts.plain_mlp(x, names, "mlp", c.d_ff, activation=c.activation, bias=True)


def embed_patches(
    pixels: Data,
    name: str,
    d_model: ops.Size,
    height: ops.Size,
    width: ops.Size | None = None,
    *,
    bias: bool = False,
    square: ops.Size = 1,
    frames: ops.Size | None = None,
) -> Data:
    """An image to one vector per patch, by a convolution whose stride is its kernel: a matrix over its pixels.

    `square`: patches stand in squares of so many rows and columns. `frames`: the image is repeated for each of them.
    """
    cut_pixels = partial(ops.cut, pixels, height, height if width is None else width, square=square)
    x = cut_pixels() if frames is None else cut_pixels(frames=frames, axes="cfhw")
    weights: tuple[ops.Weight, ...] = (ops.Weight(name + ".weight", "embedding", (d_model, *x.shape[1:])),)
    if bias:
        weights += (ops.Weight(name + ".bias", "embedding", (d_model,)),)
    return Data(ops.Linear(), (x,), ("patches", d_model), weights)


def attend_by_places(c: Any, qkv: tuple[Data, ...], places: Data, axes: ops.Axes, output: str) -> Data:
    """Patches attend to one another, their queries and keys rotated by column and row. `output`: name of the last
    matrix.
    """
    q, k, v = qkv
    q, k = (ops.rope_at(y, places, c.rope, axes, "interleaved") for y in (q, k))
    return ops.linear(ops.attend(q, k, v), output, "output_projection", c.d_model, bias=True)


def places_of_patches(c: Any, pixels: Data) -> tuple[Data, ...]:
    """`places` of a model whose projector merges squares of patches: their rows and columns."""
    return (ops.patch_places(pixels, c.vision.patch_size, c.vision.patch_size),)


def select_states(x: Data, states: States | None) -> Data:
    """The hidden states of some layers of the stack x side by side; without `states`, what x returns."""
    return x if states is None else ops.hidden_states(x, *states)


def cut_into_patches(pixels: Data, name: str, d_model: ops.Size, patch_size: ops.Size, *, bias: bool = False) -> Data:
    """Patches of pixels [patches, channels, size, size] to one vector each."""
    weights: tuple[ops.Weight, ...] = (
        ops.Weight(name + ".weight", "embedding", (d_model, pixels.shape[1], patch_size, patch_size)),
    )
    if bias:
        weights += (ops.Weight(name + ".bias", "embedding", (d_model,)),)
    return Data("convolve", (pixels,), (pixels.shape[0], d_model), weights)


def insert(x: Data, *others: Data) -> Data:
    """The tokens' vectors with those of an image or a sound in the places held for them."""
    return Data(ops.Undescribed("insert", of_prompt=True), (x, *others), x.shape)
