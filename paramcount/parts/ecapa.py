"""ECAPA-TDNN: dilated convolutions over a sample of a voice, whose mean and deviation become one vector.

Source: arXiv:2005.07143, section 3; ECAPA_TimeDelayNet in modeling_qwen2_5_omni.py of the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import sizes
from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data

MIRRORED = ops.Padding("around, fewer before", "mirrored")


def part_of_channels(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The channels of each part of those of a block."""
    return (c["channels"][1:] or c["channels"])[0] // len(c["parts"]) or 1


def indices_of_parts(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    n = js.get("enc_res2net_scale", 2)
    if type(n) is not int or n < 1:
        raise sizes.make_value_error(n, "enc_res2net_scale", "a positive integer")
    return tuple(range(n))


class SpeakerEncoder(sizes.Sizes):
    """`channels`: after the first convolution, after each block, and of all blocks side by side."""

    n_mels: sizes.Positive = sizes.hf("mel_dim")
    d_speaker: sizes.Positive = sizes.hf("enc_dim")
    channels: sizes.Widths = sizes.hf("enc_channels")
    kernels: sizes.Widths = sizes.hf("enc_kernel_sizes")
    parts: sizes.Indices = sizes.derived(indices_of_parts)
    d_part: sizes.Positive = sizes.derived(part_of_channels)
    d_scores: sizes.Positive = sizes.hf("enc_attention_channels")
    d_squeezed: sizes.Positive = sizes.hf("enc_se_channels")

    dilations: ClassVar = sizes.setting(default=lambda config, c: read_dilations(config, len(c.channels)))

    def encode_speaker(c, mels: Data) -> Data:
        """Mel frames [frames, n_mels] to a vector [1, d_speaker]."""
        x, found = c.convolve(mels, "blocks.0.conv", c.channels[0], 0), []
        for i in range(1, len(c.channels) - 1):
            x = ops.block(x, f"blocks.{i}.", lambda x, i=i: c.block(x, i))
            found.append(x)
        x = c.convolve(reduce(ops.join, found[1:], found[0]), "mfa.conv", c.channels[-1], -1)
        return point(ops.block(x, "asp.", c.pool), "fc", c.d_speaker)

    def convolve(c, x: Data, name: str, channels: ops.Size, i: int) -> Data:
        """The convolution of a step, and ReLU."""
        dilation = c.dilations[i] if ops.is_known(c.dilations) else ops.Unknown("dilations")
        return ops.activate(
            ops.convolve_frames(x, name, channels, c.kernels[i], dilation=dilation, padding=MIRRORED), "relu"
        )

    def block(c, x: Data, i: int) -> Data:
        """Each part of the channels also reads what became of the part before."""
        d, first = c.channels[i], x
        x = ops.activate(point(x, "tdnn1.conv", d), "relu")
        found = list(ops.split(x, *[c.d_part for _ in c.parts]))
        found, later = found[:1], found[1:]
        for j, part in enumerate(later):
            part = part + found[-1] if j else part
            found.append(c.convolve(part, f"res2net_block.blocks.{j}.conv", c.d_part, i))
        x = ops.activate(point(reduce(ops.join, found[1:], found[0]), "tdnn2.conv", d), "relu")
        gate = ops.activate(point(ops.pool_text(x, "mean"), "se_block.conv1", c.d_squeezed), "relu")
        gate = ops.activate(point(gate, "se_block.conv2", d), "sigmoid")
        return x * ops.expand_to_tokens(x, gate) + first

    def pool(c, x: Data) -> Data:
        """The weighted mean and deviation of each channel, whose weights also depend on those of all frames."""
        means, deviations = ops.expand_to_tokens(x, ops.pool_text(x, "mean")), ops.expand_to_tokens(x, ops.deviation(x))
        h = ops.activate(point(ops.join(ops.join(x, means), deviations), "tdnn.conv", c.d_scores), "relu")
        scores = point(ops.activate(h, "tanh"), "conv", x.shape[-1])
        return ops.join(ops.weighted_mean(x, scores), ops.deviation(x, scores))


def point(x: Data, name: str, channels: ops.Size) -> Data:
    """A convolution over single frames."""
    return ops.convolve_frames(x, name, channels, 1)


def check_speaker_encoder(c: Any) -> None:
    """What the reference needs to build it and to run it."""
    channels, kernels = c.channels, c.kernels
    if len(kernels) != len(channels):
        found = f"has {len(kernels)} entries for {len(channels)} enc_channels"
        raise ParamcountError(found, where=FieldName("kernels"), expected=f"{len(channels)} entries")
    inner = channels[1:-1]
    if not inner or sum(inner) != channels[-1]:
        expected = f"{sum(inner)}, the sum of those before, as the last" if inner else "at least three entries"
        raise ParamcountError(f"= {list(channels)}", where=FieldName("channels"), expected=expected)
    if len(set(channels[:-1])) > 1:
        raise ParamcountError(
            f"= {list(channels)}", where=FieldName("channels"), expected="equal ones, except the last"
        )
    if inner[0] % len(c.parts):
        expected = f"a divisor of {inner[0]}, the channels of a block"
        raise sizes.make_value_error(len(c.parts), "enc_res2net_scale", expected)


def steps_are_dilated(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    read_dilations(js, len(c["channels"]))


def read_dilations(js: sizes.ConfigJson, n: int) -> Sequence[int]:
    """As many dilations as steps."""
    given = js.get("enc_dilations")
    found: Sequence[int] = (1, 2, 3, 4, 1) if given is None else given
    if len(found) != n:
        raise sizes.make_value_error(found, "enc_dilations", f"{n} entries")
    return found
