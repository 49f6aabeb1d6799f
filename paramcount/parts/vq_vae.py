"""A VQ-VAE: convolutions between an image and a grid of codes, each the nearest row of a codebook.

Source: arXiv:2203.13131, section 3.2; JanusVQVAE and ChameleonVQVAE of the reference.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import sizes
from paramcount.flow import Data

GROUPS = 32  # of channels that a norm is over


def one_latent(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The quantiser of the reference reads only as many channels as one latent has."""
    if js.get("double_latent", False) is not False:
        raise sizes.make_value_error(js["double_latent"], "double_latent", "false")


def groups_divide_channels(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if c["d_base"] % GROUPS:
        raise sizes.make_value_error(c["d_base"], "base_channels", f"a multiple of {GROUPS}")


def blocks_of_level(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    n = js.get("num_res_blocks", 2)
    if type(n) is not int or n < 1:
        raise sizes.make_value_error(n, "num_res_blocks", "a positive integer")
    return tuple(range(n))


class VqVae(sizes.Sizes):
    """An encoder of square images to codes. `multipliers`: of the channels at each level, which has half as many rows
    as the level before; `blocks`: their indices at each level; `attended`: the levels with attention.
    """

    section = "vq_config"
    conditions: ClassVar[tuple[sizes.Condition, ...]] = (one_latent, groups_divide_channels)

    d_code: sizes.Positive = sizes.hf("embed_dim")
    n_codes: sizes.Positive = sizes.hf("num_embeddings")
    d_latent: sizes.Positive = sizes.hf("latent_channels")
    n_channels: sizes.Positive = sizes.hf("in_channels")
    d_base: sizes.Positive = sizes.hf("base_channels")
    multipliers: sizes.Widths = sizes.hf("channel_multiplier")
    blocks: sizes.Indices = sizes.derived(blocks_of_level)

    def attention_levels(c) -> tuple[int, ...]:
        """The levels whose blocks are each followed by attention."""
        return ()

    def has_attention(c) -> bool:
        """Whether the smallest image attends to itself."""
        return True

    def level_names(c, i: int) -> tuple[str, str]:
        """The names of a level on the way to the codes and on the way back."""
        return f"down.{i}.", f"up.{len(c.multipliers) - 1 - i}."

    def encode(c, pixels: Data) -> Data:
        """One image to vectors of d_code values, [places, d_code]."""
        x = ops.block(ops.reshape(ops.cut(pixels, 1, 1), c.n_channels), "encoder.", c.shrink)
        return convolve_one(x, "quant_conv", "mixer", c.d_code)

    def shrink(c, x: Data) -> Data:
        return c.halve(x, c.d_latent)

    def halve(c, x: Data, channels: ops.Size) -> Data:
        x = convolve(x, "conv_in", c.d_base)
        last, before = len(c.multipliers) - 1, 1
        for i, m in enumerate(c.multipliers):
            prefix = c.level_names(i)[0]
            x = c.level(x, prefix, m, m != before, len(c.blocks), i in c.attention_levels())
            if i < last:
                name = prefix + "downsample.conv"
                x = ops.convolve_image(x, name, "mixer", c.d_base * m, 3, stride=2, bias=True, padding=ops.BEHIND)
            before = m
        return c.finish(c.middle(x), channels)

    def double(c, x: Data, channels: ops.Size, *quanta: Data) -> Data:
        """`quanta`: what norms read besides."""
        x = c.middle(convolve(x, "conv_in", c.d_base * c.multipliers[-1]), *quanta)
        last, before = len(c.multipliers) - 1, c.multipliers[-1]
        for i in range(last, -1, -1):
            m, prefix = c.multipliers[i], c.level_names(i)[1]
            x = c.level(x, prefix, m, m != before, len(c.blocks) + 1, i in c.attention_levels(), *quanta)
            if i:
                x = convolve(ops.enlarge(x), prefix + "upsample.conv", c.d_base * m)
                quanta = tuple(ops.enlarge(y) for y in quanta)
            before = m
        return c.finish(x, channels, *quanta)

    def level(c, x: Data, prefix: str, m: int, changes: bool, n: int, attends: bool, *quanta: Data) -> Data:
        """n blocks to m times the channels, which the first of them `changes`; each may be followed by attention."""
        for j in range(n):
            x = c.resnet_block(x, f"{prefix}block.{j}.", c.d_base * m, *quanta, changes=changes and j == 0)
            if attends:
                x = c.look(x, prefix, f".{j}", *quanta)
        return x

    def middle(c, x: Data, *quanta: Data, prefix: str = "mid.") -> Data:
        x = c.resnet_block(x, f"{prefix}block_1.", x.shape[-1], *quanta)
        if c.has_attention():
            x = c.look(x, prefix, "_1", *quanta)
        return c.resnet_block(x, f"{prefix}block_2.", x.shape[-1], *quanta)

    def finish(c, x: Data, channels: ops.Size, *quanta: Data) -> Data:
        return convolve(ops.activate(c.norm(x, "norm_out", *quanta), "silu"), "conv_out", channels)

    def resnet_block(c, x: Data, prefix: str, channels: ops.Size, *quanta: Data, changes: bool = False) -> Data:
        """Two convolutions, each after a norm, with a residual connection. `changes`: it has other channels."""

        def read(x: Data, *quanta: Data) -> Data:
            h = convolve(ops.activate(c.norm(x, "norm1", *quanta), "silu"), "conv1", channels)
            h = convolve(ops.activate(c.norm(h, "norm2", *quanta), "silu"), "conv2", channels)
            return (convolve_one(x, "nin_shortcut", "mixer", channels) if changes else x) + h

        return ops.block(x, prefix, read, reads=quanta)

    def norm(c, x: Data, name: str, *quanta: Data) -> Data:
        return ops.group_norm(x, name, GROUPS, 1e-6)

    def look(c, x: Data, prefix: str, place: str, *quanta: Data) -> Data:
        """All places of the image attend to one another."""
        return ops.block(x, f"{prefix}attn{place}.", attention)

    def quantise(c, x: Data, ids: Any = None) -> Data:
        """Vectors to the number of the nearest code, or to the token id that it has."""
        return ops.nearest_row(x, "quantize.embedding.weight", "embedding", c.n_codes, ids)


class VqGan(VqVae):
    """The same with the decoder, from codes to an image."""

    d_out: sizes.Positive = sizes.hf("out_channels")

    def reconstruct(c, pixels: Data, prefix: str) -> Data:
        """One image to the number of its codes; the image that they are decoded to is beside them.

        `prefix`: of the part in the model.
        """
        codes = c.quantise(c.encode(pixels))
        table = "quantize.embedding.weight"
        x = ops.lookup(codes, table, "embedding", c.n_codes, c.d_code, tied_to=prefix + table)
        x = ops.plain_norm(x, "l2", 1e-24)
        x = convolve_one(x, "post_quant_conv", "mixer", c.d_latent)
        return ops.bundle(codes, ops.block(x, "decoder.", c.grow))

    def grow(c, x: Data) -> Data:
        return c.double(x, c.d_out)


def convolve(x: Data, name: str, channels: ops.Size) -> Data:
    """3 × 3 pixels."""
    return ops.convolve_image(x, name, "mixer", channels, 3, bias=True)


def convolve_one(x: Data, name: str, component: str, width: Any) -> Data:
    """A convolution over one pixel: a matrix, stored as [out, in, 1, 1]. `width`: of its output."""
    shape = width if isinstance(width, tuple) else (width,)
    channels = shape[0] if len(shape) == 1 else shape[0] * shape[1]
    kernel = ops.Weight(name + ".weight", component, (channels, x.shape[-1], 1, 1))
    bias = ops.Weight(name + ".bias", component, (channels,))
    return Data(ops.Linear(), (x,), (x.shape[0], *shape), (kernel, bias))


def attention(x: Data) -> Data:
    """One head over all places of the image."""
    d = x.shape[-1]
    h = ops.group_norm(x, "norm", GROUPS, 1e-6)
    q, k, v = (convolve_one(h, name, f"qkv.{name}", (1, d)) for name in "qkv")
    return x + convolve_one(ops.attend(q, k, v), "proj_out", "output_projection", d)
