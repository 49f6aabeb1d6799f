"""SEANet: convolutions that make vectors of the samples of a sound, and a sound of vectors again.

Source: arXiv:2009.02095, section 2; EncodecEncoder and MimiEncoder of the reference.
"""

from __future__ import annotations

from math import ceil
from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import sizes
from paramcount.errors import join_words
from paramcount.flow import Data


@sizes.options_first
def count_from(js: sizes.ConfigJson, c: sizes.FieldValues, key: str, absent: int, least: int) -> tuple[int, ...]:
    n = js.get(key, absent)
    if type(n) is not int or n < least:
        raise sizes.make_key_error(js, key, absent, f"at least {least}")
    return tuple(range(n))


def read_rates(js: sizes.ConfigJson, absent: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """From the samples on, and the samples of a second."""
    rates = tuple(js.get("upsampling_ratios") or absent)
    if any(type(rate) is not int or rate < 1 for rate in rates):
        raise sizes.make_key_error(js, "upsampling_ratios", absent, "positive integers")
    n_samples = js.get("sampling_rate", 24_000)
    if type(n_samples) is not int or n_samples < 1:
        raise sizes.make_key_error(js, "sampling_rate", 24_000, "a positive integer")
    return rates[::-1], n_samples


@sizes.options_first
def narrow_channels(js: sizes.ConfigJson, c: sizes.FieldValues, levels: slice) -> tuple[int, ...]:
    """Between the two convolutions of a residual block, at each level. `levels`: those of the rates."""
    compress = js.get("compress", 2)
    if type(compress) is not int or not 1 <= compress <= c["n_filters"]:
        raise sizes.make_key_error(js, "compress", 2, f"1 to num_filters = {c['n_filters']}")
    return tuple(c["n_filters"] * 2**i // compress for i in range(len(c["rates"][levels])))


def mono_or_stereo(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if c["n_channels"] > 2:
        raise sizes.make_key_error(js, "audio_channels", 1, "1 or 2")


@sizes.options_first
def codes_are_powers_of_two(js: sizes.ConfigJson, c: sizes.FieldValues, absent: int) -> None:
    if c["n_codes"] & (c["n_codes"] - 1):
        raise sizes.make_key_error(js, "codebook_size", absent, "a power of 2")


@sizes.options_first
def only(js: sizes.ConfigJson, c: sizes.FieldValues, key: str, *choices: object) -> None:
    """The first choice is the reference's default."""
    if js.get(key, choices[0]) not in choices:
        expected = join_words([str(choice).lower() for choice in choices])
        raise sizes.make_key_error(js, key, choices[0], expected)


EDGES = {"constant": "zeros", "reflect": "mirrored", "replicate": "repeated"}


def edges(absent: str) -> Any:
    """The setting of what stands before the first frame. `absent`: the default of pad_mode."""
    return sizes.setting(default=lambda js, c: EDGES[js.get("pad_mode", absent)])


class SeaNet(sizes.Sizes):
    """`rates`: samples or frames that become one, at each level; `narrow`: channels inside the residual blocks of each
    level.
    """

    n_channels: sizes.Positive = sizes.hf("audio_channels")
    n_filters: sizes.Positive = sizes.hf("num_filters")
    d_model: sizes.Positive = sizes.hf()
    rates: sizes.Widths = sizes.derived(lambda js, c: read_rates(js, (8, 6, 5, 4))[0])
    residuals: sizes.Indices = sizes.derived(count_from("num_residual_layers", 1, 0))
    narrow: sizes.Indices = sizes.derived(narrow_channels(slice(None)))
    d_conv: sizes.Positive = sizes.hf("kernel_size")
    d_last_conv: sizes.Positive = sizes.hf("last_kernel_size")
    d_residual_conv: sizes.Positive = sizes.hf("residual_kernel_size")

    growth: ClassVar = sizes.setting("dilation_growth_rate", usual=2)
    edges: ClassVar = edges("constant")
    kept_right: ClassVar = sizes.setting("trim_right_ratio", usual=1.0)

    n_recurrent: ClassVar[int] = 0  # modules between the convolutions and the narrowest frames

    def shrink(c, x: Data) -> Data:
        """[samples, channels] to [frames, d_model]."""
        x, at, d = c.convolve(x, "layers.0", c.n_filters, c.d_conv), 1, c.n_filters
        for rate, narrow in zip(c.rates, c.narrow):
            x, at = c.residual_blocks(x, at, narrow)
            x, d = ops.activate(x, "elu"), 2 * d
            x = c.convolve(x, f"layers.{at + 1}", d, 2 * rate, stride=rate)
            at += 2
        x = c.recur(x, f"layers.{at}.")
        at += c.n_recurrent
        return c.convolve(ops.activate(x, "elu"), f"layers.{at + 1}", c.d_model, c.d_last_conv)

    def grow(c, x: Data) -> Data:
        """[frames, d_model] to [samples, channels]."""
        n = len(c.narrow)
        x = c.convolve(x, "layers.0", c.n_filters * 2**n, c.d_conv)
        x, at = c.recur(x, "layers.1."), 2 + c.n_recurrent
        for i in range(n - 1, -1, -1):
            x = c.enlarge(ops.activate(x, "elu"), f"layers.{at}", c.n_filters * 2**i, c.rates[i])
            x, at = c.residual_blocks(x, at + 1, c.narrow[i])
            at += 1
        return c.convolve(ops.activate(x, "elu"), f"layers.{at}", c.n_channels, c.d_last_conv)

    def recur(c, x: Data, prefix: str) -> Data:
        """What reads the narrowest frames one after the other: nothing."""
        return x

    def residual_blocks(c, x: Data, at: int, narrow: ops.Size) -> tuple[Data, int]:
        """x behind the blocks of one level, the first of which is layer `at`, and the next layer."""
        for i in c.residuals:
            apart = 1 if i == 0 else c.growth if isinstance(c.growth, ops.Unknown) else c.growth**i
            x = ops.block(x, f"layers.{at}.", lambda x, apart=apart: c.residual(x, narrow, apart))
            at += 1
        return x, at

    def residual(c, x: Data, narrow: ops.Size, dilation: int | ops.Unknown) -> Data:
        h = c.convolve(ops.activate(x, "elu"), "block.1", narrow, c.d_residual_conv, dilation=dilation)
        h = c.convolve(ops.activate(h, "elu"), "block.3", x.shape[-1], 1)
        return c.shortcut(x) + h

    def shortcut(c, x: Data) -> Data:
        return x

    def convolve(
        c, x: Data, name: str, d: ops.Size, n: ops.Size, *, stride: int = 1, dilation: int | ops.Unknown = 1
    ) -> Data:
        padding = ops.Padding("before, filled", c.edges)
        return ops.convolve_frames(x, name + ".conv", d, n, stride=stride, dilation=dilation, padding=padding)

    def enlarge(c, x: Data, name: str, d: ops.Size, rate: int) -> Data:
        crops = c.find_crops(rate)
        return ops.enlarge_frames(x, name + ".conv", d, 2 * rate, "samples", stride=rate, crops=crops)

    def find_crops(c, rate: int) -> tuple[int, int] | ops.Unknown:
        """What is left out of a sound that grew by a rate, on either side: of what reaches beyond its frames."""
        if not ops.is_known(c.kept_right):
            return ops.Unknown("trim_right_ratio")
        behind = ceil(rate * c.kept_right)
        return rate - behind, behind
