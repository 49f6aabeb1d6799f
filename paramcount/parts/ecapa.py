"""ECAPA-TDNN: dilated convolutions over a sample of a voice, whose mean and deviation become one vector.

Source: arXiv:2005.07143, section 3; ECAPA_TimeDelayNet in modeling_qwen2_5_omni.py of the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, ClassVar

from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import (
    Data,
    Padding,
    Size,
    Unknown,
    activate,
    block,
    convolve_frames,
    deviation,
    expand_to_tokens,
    is_known,
    join,
    pool_text,
    split,
    weighted_mean,
)
from paramcount.sizes import ConfigJson, FieldValues, Indices, Positive, Sizes, Widths, derived, hf, setting
from paramcount.sizes.conditions import make_value_error

MIRRORED = Padding("around, fewer before", "mirrored")


def part_of_channels(js: ConfigJson, c: FieldValues) -> int:
    """The channels of each part of those of a block."""
    return (c["channels"][1:] or c["channels"])[0] // len(c["parts"]) or 1


def indices_of_parts(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    n = js.get("enc_res2net_scale", 2)
    if type(n) is not int or n < 1:
        raise make_value_error(n, "enc_res2net_scale", "a positive integer")
    return tuple(range(n))


class SpeakerEncoder(Sizes):
    """`channels`: after the first convolution, after each block, and of all blocks side by side."""

    n_mels: Positive = hf("mel_dim")
    d_speaker: Positive = hf("enc_dim")
    channels: Widths = hf("enc_channels")
    kernels: Widths = hf("enc_kernel_sizes")
    parts: Indices = derived(indices_of_parts)
    d_part: Positive = derived(part_of_channels)
    d_scores: Positive = hf("enc_attention_channels")
    d_squeezed: Positive = hf("enc_se_channels")

    dilations: ClassVar = setting(default=lambda config, c: read_dilations(config, len(c.channels)))

    def encode_speaker(c, mels: Data) -> Data:
        """Mel frames [frames, n_mels] to a vector [1, d_speaker]."""
        x, found = c.convolve(mels, "blocks.0.conv", c.channels[0], 0), []
        for i in range(1, len(c.channels) - 1):
            x = block(x, f"blocks.{i}.", lambda x, i=i: c.block(x, i))
            found.append(x)
        x = c.convolve(reduce(join, found[1:], found[0]), "mfa.conv", c.channels[-1], -1)
        return point(block(x, "asp.", c.pool), "fc", c.d_speaker)

    def convolve(c, x: Data, name: str, channels: Size, i: int) -> Data:
        """The convolution of a step, and ReLU."""
        dilation = c.dilations[i] if is_known(c.dilations) else Unknown("dilations")
        return activate(convolve_frames(x, name, channels, c.kernels[i], dilation=dilation, padding=MIRRORED), "relu")

    def block(c, x: Data, i: int) -> Data:
        """Each part of the channels also reads what became of the part before."""
        d, first = c.channels[i], x
        x = activate(point(x, "tdnn1.conv", d), "relu")
        found = list(split(x, *[c.d_part for _ in c.parts]))
        found, later = found[:1], found[1:]
        for j, part in enumerate(later):
            part = part + found[-1] if j else part
            found.append(c.convolve(part, f"res2net_block.blocks.{j}.conv", c.d_part, i))
        x = activate(point(reduce(join, found[1:], found[0]), "tdnn2.conv", d), "relu")
        gate = activate(point(pool_text(x, "mean"), "se_block.conv1", c.d_squeezed), "relu")
        gate = activate(point(gate, "se_block.conv2", d), "sigmoid")
        return x * expand_to_tokens(x, gate) + first

    def pool(c, x: Data) -> Data:
        """The weighted mean and deviation of each channel, whose weights also depend on those of all frames."""
        means, deviations = expand_to_tokens(x, pool_text(x, "mean")), expand_to_tokens(x, deviation(x))
        h = activate(point(join(join(x, means), deviations), "tdnn.conv", c.d_scores), "relu")
        scores = point(activate(h, "tanh"), "conv", x.shape[-1])
        return join(weighted_mean(x, scores), deviation(x, scores))


def point(x: Data, name: str, channels: Size) -> Data:
    """A convolution over single frames."""
    return convolve_frames(x, name, channels, 1)


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
        raise ParamcountError(f"= {len(c.parts)}", where="enc_res2net_scale", expected=expected)


def steps_are_dilated(js: ConfigJson, c: FieldValues) -> None:
    read_dilations(js, len(c["channels"]))


def read_dilations(js: ConfigJson, n: int) -> Sequence[int]:
    """As many dilations as steps."""
    given = js.get("enc_dilations")
    found: Sequence[int] = (1, 2, 3, 4, 1) if given is None else given
    if len(found) != n:
        raise make_value_error(found, "enc_dilations", f"{n} entries")
    return found
