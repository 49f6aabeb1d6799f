"""BigVGAN: mel frames to the samples of a sound, by transposed convolutions.

Source: arXiv:2206.04658, section 3; Qwen2_5OmniToken2WavBigVGANModel of the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import log
from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import sizes
from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data

PAIRS = range(3)  # of convolutions in a block
LEAST_LEVEL, LEVEL = -115.0, -20.0  # in dB: the quietest, and that of an amplitude of 1
DB = 20 / log(10)  # of a mel value, the logarithm of an amplitude


def halved_channels(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The channels after each transposed convolution."""
    return tuple(c["d_first"] // 2 ** (i + 1) for i in range(len(c["rates"])))


class BigVgan(sizes.Sizes):
    """`rates`: samples that a frame becomes at each level."""

    n_mels: sizes.Positive = sizes.hf("mel_dim")
    d_first: sizes.Positive = sizes.hf("upsample_initial_channel")
    rates: sizes.Widths = sizes.hf("upsample_rates")
    kernels: sizes.Widths = sizes.hf("upsample_kernel_sizes")
    channels: sizes.Indices = sizes.derived(halved_channels)
    block_kernels: sizes.Widths = sizes.hf("resblock_kernel_sizes")

    dilations: ClassVar = sizes.setting(default=lambda config, c: read_dilations(config, len(c.block_kernels)))

    def forward(c, mels: Data) -> Data:
        """Mel frames, the logarithms of amplitudes, to samples between -1 and 1, [samples, 1]."""
        scale = 2 / -LEAST_LEVEL
        x = ops.clip(ops.scale_by(mels, scale * DB, shift=scale * (LEVEL - LEAST_LEVEL) - 1), -1.0, 1.0)
        x = ops.convolve_frames(x, "conv_pre", c.d_first, 7)
        for i, (rate, width, channels) in enumerate(zip(c.rates, c.kernels, c.channels)):
            crop = (width - rate) // 2
            x = ops.enlarge_frames(x, f"ups.{i}.0", channels, width, "samples", stride=rate, crops=(crop, crop))
            n = len(c.block_kernels)
            found = [ops.block(x, f"resblocks.{i * n + j}.", lambda x, j=j: c.block(x, j)) for j in range(n)]
            x = ops.scale_by(reduce(Data.__add__, found[1:], found[0]), 1 / n)
        x = ops.activate_by_snake(x, "activation_post.act.", doubles_rate=True)
        return ops.clip(ops.convolve_frames(x, "conv_post", 1, 7, bias=False), -1.0, 1.0)

    def block(c, x: Data, j: int) -> Data:
        """Pairs of convolutions, the first of which is dilated, each after an activation."""
        for i in PAIRS:
            dilation = c.dilations[j][i] if ops.is_known(c.dilations) else ops.Unknown("dilations")
            h = ops.activate_by_snake(x, f"activations.{2 * i}.act.", doubles_rate=True)
            h = ops.convolve_frames(h, f"convs1.{i}", x.shape[-1], c.block_kernels[j], dilation=dilation)
            h = ops.activate_by_snake(h, f"activations.{2 * i + 1}.act.", doubles_rate=True)
            x = x + ops.convolve_frames(h, f"convs2.{i}", x.shape[-1], c.block_kernels[j])
        return x


def check_vocoder(c: Any) -> None:
    """What the reference needs to run it."""
    if len(c.kernels) < len(c.rates):
        found = f"has {len(c.kernels)} entries for {len(c.rates)} upsample_rates"
        raise ParamcountError(found, where=FieldName("kernels"), expected=f"{len(c.rates)} entries")
    if any(width < rate for rate, width in zip(c.rates, c.kernels)):
        expected = f"at least those of upsample_rates, {list(c.rates)}"
        raise ParamcountError(f"= {list(c.kernels)}", where=FieldName("kernels"), expected=expected)
    if not c.channels[-1]:
        expected = f"at least {2 ** len(c.rates)}, which is halved {len(c.rates)} times"
        raise sizes.make_value_error(c.d_first, FieldName("d_first"), expected)
    if not all(width % 2 for width in c.block_kernels):
        raise ParamcountError(f"= {list(c.block_kernels)}", where=FieldName("block_kernels"), expected="odd numbers")


def blocks_are_dilated(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    read_dilations(js, len(c["block_kernels"]))


def read_dilations(js: sizes.ConfigJson, n: int) -> Sequence[Sequence[int]]:
    """As many dilations as a block has pairs of convolutions, for each of n blocks."""
    key = "resblock_dilation_sizes"
    given = js.get(key)
    found: Sequence[Sequence[int]] = ((1, 3, 5),) * 3 if given is None else given
    if len(found) < n or any(len(pairs) < len(PAIRS) for pairs in found[:n]):
        expected = f"{n} lists of {len(PAIRS)} dilations, one for each of resblock_kernel_sizes"
        raise sizes.make_value_error(found, key, expected)
    return found
