"""EnCodec: convolutions and an LSTM make vectors of the samples of a sound, and codebooks make codes of them.

Each codebook says what those before it leave of the vector.

Source: arXiv:2210.13438, section 3; EncodecModel of the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from math import ceil, log2, prod
from typing import ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.errors import FieldName
from paramcount.flow import Data

RATES = (8, 5, 4, 2)
BANDWIDTHS = (1.5, 3.0, 6.0, 12.0, 24.0)


def find_codebooks(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """As many as the largest bandwidth, in kbit per second, has room for."""
    rates, n_samples = parts.read_rates(js, RATES)
    bandwidths, key = js.get("target_bandwidths", BANDWIDTHS), "target_bandwidths"
    if not bandwidths or any(type(bandwidth) is not float for bandwidth in bandwidths):
        raise sizes.make_key_error(js, key, BANDWIDTHS, "a list of numbers with a decimal point")
    bits = ceil(n_samples / prod(rates)) * ceil(log2(c["n_codes"]))
    n = int(1000 * bandwidths[-1] // bits) if bits else 0
    if n < 1:
        raise sizes.make_key_error(
            js, key, BANDWIDTHS, f"at least {bits / 1000:g} for the last, which one codebook needs"
        )
    return tuple(range(n))


def left_side_is_kept(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if not js.get("use_causal_conv", True) and js.get("trim_right_ratio", 1.0) != 1.0:
        raise sizes.make_key_error(js, "trim_right_ratio", 1.0, "1.0 if use_causal_conv = false")


class Encodec(parts.SeaNet):
    """`recurrent`: layers of the LSTM; `codebooks`: their numbers."""

    config_class = "EncodecConfig"

    section = "audio_encoder"
    conditions: ClassVar = (
        parts.only("model_type", "encodec"),
        parts.only("norm_type", "weight_norm", "time_group_norm"),
        parts.only("pad_mode", "reflect", *(mode for mode in parts.EDGES if mode != "reflect")),
        parts.only("normalize", False),
        left_side_is_kept,
        parts.mono_or_stereo,
        parts.codes_are_powers_of_two(1024),
    )

    rates: sizes.Widths = sizes.derived(lambda js, c: parts.read_rates(js, RATES)[0])
    narrow: sizes.Indices = sizes.derived(parts.narrow_channels(slice(None)))
    recurrent: sizes.Indices = sizes.derived(parts.count_from("num_lstm_layers", 2, 1))
    by_length: sizes.Flag = sizes.derived(lambda js, c: js.get("norm_type", "weight_norm") == "weight_norm")
    has_shortcut: sizes.Flag = sizes.hf("use_conv_shortcut")
    n_codes: sizes.Positive = sizes.hf("codebook_size")
    d_code: sizes.Positive = sizes.hf("codebook_dim", absent=sizes.equal_to("d_model"), null=sizes.equal_to("d_model"))
    codebooks: sizes.Indices = sizes.derived(find_codebooks)

    edges: ClassVar = parts.edges("reflect")
    zeros: ClassVar = sizes.setting(
        default=lambda js, c: "before, filled" if js.get("use_causal_conv", True) else "halves, filled"
    )

    n_recurrent = 1
    place: ClassVar[str] = "audio_encoder."  # in the model

    def reconstruct(c, samples: Data) -> Data:
        """[samples, channels] to codes, and the sound that they are decoded to, as long."""
        left, codes = ops.block(samples, "encoder.", c.shrink), []
        for i in c.codebooks:
            codes.append(ops.nearest_code(left, c.name_codebook(i), "embedding", c.n_codes))
            if i < c.codebooks[-1]:
                left = left + ops.scale_by(c.look_up(codes[-1], i, c.place), -1.0, "negated")
        return c.join([c.look_up(x, i, c.place) for i, x in enumerate(codes)])

    def decode(c, *codes: Data) -> Data:
        """Codes of each codebook, [frames], to samples, [samples, channels]."""
        return c.join([c.look_up(x, i) for i, x in enumerate(codes)])

    def join(c, found: Sequence[Data]) -> Data:
        """The codes' vectors of all codebooks to samples."""
        return ops.block(reduce(Data.__add__, found), "decoder.", c.grow)

    def look_up(c, codes: Data, i: int, place: str | None = None) -> Data:
        """`place`: of the codec in the model, if the codebook has been read before."""
        name = c.name_codebook(i)
        return ops.lookup_code(codes, name, "embedding", c.n_codes, c.d_code, None if place is None else place + name)

    def name_codebook(c, i: int) -> str:
        return f"quantizer.layers.{i}.codebook"

    def recur(c, x: Data, prefix: str) -> Data:
        return x + reduce(lambda y, i: ops.lstm(y, prefix + "lstm.", i), c.recurrent, x)

    def shortcut(c, x: Data) -> Data:
        return c.convolve(x, "shortcut", x.shape[-1], 1) if c.has_shortcut else x

    def convolve(
        c, x: Data, name: str, d: ops.Size, n: ops.Size, *, stride: int = 1, dilation: int | ops.Unknown = 1
    ) -> Data:
        padding = ops.Padding(c.zeros, c.edges)
        x = ops.convolve_frames(x, name + ".conv", d, n, stride=stride, dilation=dilation, padding=padding)
        return c.norm(ops.normalise_kernel(x) if c.by_length else x, name)

    def enlarge(c, x: Data, name: str, d: ops.Size, rate: int) -> Data:
        """A norm sees the frames that are left out behind it."""
        crops = c.find_crops(rate)
        enlarge = partial(ops.enlarge_frames, x, name + ".conv", d, 2 * rate, "samples", stride=rate)
        return (
            ops.normalise_kernel(enlarge(crops=crops))
            if c.by_length
            else ops.crop_frames(c.norm(enlarge(), name), crops)
        )

    def norm(c, x: Data, name: str) -> Data:
        """Of all channels over all frames, unless convolutions have stored lengths."""
        return x if c.by_length else ops.group_norm(x, name + ".norm", 1, 1e-5)

    def find_crops(c, rate: int) -> tuple[int, int] | ops.Unknown:
        if c.zeros == "halves, filled":
            return rate - rate // 2, rate // 2
        return super().find_crops(rate) if ops.is_known(c.zeros) else ops.Unknown("use_causal_conv")

    def check(c) -> None:
        if c.d_code != c.d_model:
            raise sizes.make_value_error(c.d_code, FieldName("d_code"), f"{c.d_model}")
