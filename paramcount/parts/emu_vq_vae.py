"""Emu3's VQ-VAE: an image is a video of equal frames, which convolutions over past frames make one frame of codes.

The decoder norms each image by functions of the codes that it is decoded from.

Source: arXiv:2409.18869, section 2.2; Emu3VQVAE of the reference.
"""

from __future__ import annotations

from math import log2
from typing import ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.errors import FieldName
from paramcount.flow import Data

TABLE = "quantize.embedding.weight"


def halvings(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    n = js.get("temporal_downsample_factor", 4)
    if type(n) is not int or n < 1:
        raise sizes.make_value_error(n, "vq_config.temporal_downsample_factor", "a positive integer")
    return tuple(range(int(log2(n))))


def attended_levels(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    named = js.get("attn_resolutions", (3,))
    return tuple(level for level in range(len(c["multipliers"])) if level in named)


class EmuVqVae(parts.VqVae):
    """`halvings`: of the number of frames; `attended`: levels with attention. Images fit if `d_attended` is the size of
    these and of the last level and `d_encoded` that of the latents; codes are decoded if d_code is, too.
    """

    config_class = "Emu3VQVAEConfig"

    conditions: ClassVar = (parts.groups_divide_channels,)

    n_codes: sizes.Positive = sizes.hf("codebook_size")
    d_encoded: sizes.Positive = sizes.derived(
        lambda js, c: c["d_latent"] * (2 if js.get("double_latent", False) else 1)
    )
    d_out: sizes.Positive = sizes.hf("out_channels")
    d_attended: sizes.Positive = sizes.hf("hidden_size")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads")
    d_head: sizes.Positive = sizes.derived(lambda js, c: c["d_attended"] // c["n_heads"])
    attended: sizes.Indices = sizes.derived(attended_levels)
    halvings: sizes.Indices = sizes.derived(halvings)

    def encode(c, pixels: Data) -> Data:
        """One image to vectors of d_code values, [places, d_code]."""
        x = ops.block(ops.reshape(ops.cut(pixels, 1, 1), c.n_channels), "encoder.", c.shrink)
        return ops.select_part(ops.convolve_video(x, "quant_conv.conv", c.d_code, 3, 1, d_in=c.d_latent), 0)

    def shrink(c, x: Data) -> Data:
        """To a video of one frame, [places, 1, d_encoded]."""
        x = ops.to_every_stream(c.halve(x, c.d_encoded), 2 ** len(c.halvings))
        for i in c.halvings:
            x = ops.activate(ops.convolve_video(x, f"time_conv.{i}.conv.conv", c.d_encoded, 4, 3, stride=2), "silu")
        return c.mix_frames(x)

    def mix_frames(c, x: Data) -> Data:
        for j in c.blocks:
            x = ops.block(x, f"time_res_stack.{j}.", video_block)
        return x

    def find_quanta(c, codes: Data, prefix: str) -> Data:
        """The number of each code to its vector, as a video of one frame, [places, 1, d_code]. `prefix`: of the part in
        the model.
        """
        x = ops.lookup(codes, TABLE, "embedding", c.n_codes, c.d_code, tied_to=prefix + TABLE)
        return ops.to_every_stream(x, 1)

    def find_latents(c, quanta: Data) -> Data:
        return ops.convolve_video(quanta, "post_quant_conv.conv", c.d_latent, 3, 1)

    def stretch(c, x: Data) -> Data:
        """Latents, or vectors of codes, to the first of the frames that they become: it depends on no other frame."""
        x = c.mix_frames(x)
        for i in c.halvings:
            x = ops.activate(ops.convolve_video(x, f"time_conv.{i}.conv.conv", x.shape[-1], 3, 3), "silu")
        return ops.select_part(x, 0)

    def grow(c, x: Data, quanta: Data) -> Data:
        """The first frame to an image. `quanta`: what its norms read."""
        return c.double(x, c.d_out, quanta)

    def level_names(c, i: int) -> tuple[str, str]:
        return f"down_block.down.{i}.", f"up_block.up.{i}."

    def attention_levels(c) -> tuple[int, ...]:
        return c.attended

    def middle(c, x: Data, *quanta: Data, prefix: str = "middle_block.") -> Data:
        return super().middle(x, *quanta, prefix=prefix)

    def look(c, x: Data, prefix: str, place: str, *quanta: Data) -> Data:
        def read(x: Data, *quanta: Data) -> Data:
            h = c.norm(x, "attn_norm" if place == "_1" else "attn_norms" + place, *quanta)
            name, heads = f"attn{place}.", (c.n_heads, c.d_head)
            q, k, v = (c.matrix(h, f"{name}{y}_proj", f"qkv.{y}", *heads) for y in "qkv")
            return x + c.matrix(ops.attend(q, k, v), name + "out_proj", "output_projection", x.shape[-1])

        return ops.block(x, prefix, read, reads=quanta)

    def matrix(c, x: Data, name: str, component: str, *shape: ops.Size) -> Data:
        size = c.d_attended
        weights = (
            ops.Weight(name + ".weight", component, (size, size)),
            ops.Weight(name + ".bias", component, (size,)),
        )
        return Data(ops.Linear(), (x,), (x.shape[0], *shape), weights)

    def norm(c, x: Data, name: str, *quanta: Data) -> Data:
        """In the decoder, times one function of the codes and plus another."""
        if not quanta:
            return super().norm(x, name)
        ends = ("conv_y", "conv_b")
        scale, shift = (parts.convolve_one(quanta[0], f"{name}.{end}", "mixer", x.shape[-1]) for end in ends)
        return super().norm(x, name + ".norm_layer") * scale + shift

    def check(c) -> None:
        if c.n_heads * c.d_head != c.d_attended:
            raise sizes.make_value_error(c.n_heads, FieldName("n_heads"), f"a divisor of {c.d_attended}")


def video_block(x: Data) -> Data:
    """Two convolutions over past frames, each after a norm, with a residual connection."""
    h, channels = x, x.shape[-1]
    for i in (1, 2):
        h = ops.activate(ops.batch_norm(h, f"norm{i}", 1e-5), "silu")
        h = ops.convolve_video(h, f"conv{i}.conv", channels, 3, 3)
    return x + h
