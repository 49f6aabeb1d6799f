"""Mimi: convolutions and a transformer make vectors of the samples of a sound, and codebooks make codes of them.

The first codebooks say what is said; each of the others says what those before it leave of the vector.

Source: arXiv:2410.00037, section 3.3; MimiModel of the reference.
"""

from __future__ import annotations

from math import ceil, prod
from typing import Any, ClassVar

from paramcount.errors import FieldName, ParamcountError, describe_value, join_words
from paramcount.flow import (
    Data,
    Size,
    Unknown,
    activate,
    block,
    convolve_frames,
    enlarge_frames,
    layer_norm,
    layers,
    multiply_vector,
    scale_by,
)
from paramcount.flow.operations.convolutions import enlarge_groups
from paramcount.flow.operations.linear import lookup_mean, nearest_mean
from paramcount.flow.operations.shapes import join_columns
from paramcount.parts.attentions import attention
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import (
    Condition,
    ConfigJson,
    FieldValues,
    Flag,
    Indices,
    Positive,
    Sizes,
    Widths,
    d_model_per_head,
    derived,
    hf,
    rotary,
    setting,
)
from paramcount.sizes.rules import check_divides

RATES = (8, 6, 5, 4)
SECTION = "codec_config"
QUANTISER = "quantizer.{}_residual_vector_quantizer."


def make_error(js: ConfigJson, key: str, absent: object, expected: str) -> ParamcountError:
    return ParamcountError(f"= {describe_value(js.get(key, absent))}", where=f"{SECTION}.{key}", expected=expected)


def read_rates(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    """From the samples on; the last one is that of the frames behind the transformer."""
    rates = tuple(js.get("upsampling_ratios") or RATES)
    if any(type(rate) is not int or rate < 1 for rate in rates):
        raise make_error(js, "upsampling_ratios", RATES, "positive integers")
    n_samples, hop = js.get("sampling_rate", 24_000), prod(rates)
    if type(n_samples) is not int or n_samples < 1:
        raise make_error(js, "sampling_rate", 24_000, "a positive integer")
    before = ceil(n_samples / hop)
    key = "_frame_rate" if "_frame_rate" in js else "frame_rate"
    behind = js.get(key)
    if behind is None:
        behind = n_samples / (2 * hop)
    if type(behind) not in (int, float) or behind <= 0 or behind == before or before < behind:
        raise make_error(js, key, None, f"less than {before}, the frames per second before the last convolution")
    return (*reversed(rates), int(before / behind))


def count_from(key: str, absent: int, least: int) -> Any:
    def derive(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
        n = js.get(key, absent)
        if type(n) is not int or n < least:
            raise make_error(js, key, absent, f"at least {least}")
        return tuple(range(n))

    return derived(derive)


def find_acoustic(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    n, n_semantic = js.get("num_quantizers", 32), len(c["semantic"])
    if type(n) is not int or n <= n_semantic:
        raise make_error(js, "num_quantizers", 32, f"more than num_semantic_quantizers = {n_semantic}")
    return tuple(range(n - n_semantic))


def narrow_channels(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    """Between the two convolutions of a residual block, at each level."""
    compress = js.get("compress", 2)
    if type(compress) is not int or not 1 <= compress <= c["n_filters"]:
        raise make_error(js, "compress", 2, f"1 to num_filters = {c['n_filters']}")
    return tuple(c["n_filters"] * 2**i // compress for i in range(len(c["rates"]) - 1))


def group_of(js: ConfigJson, c: FieldValues) -> int:
    n = js.get("upsample_groups", 512)
    if type(n) is not int or n < 1 or c["d_model"] % n:
        raise make_error(js, "upsample_groups", 512, f"a divisor of hidden_size = {c['d_model']}")
    return int(c["d_model"] // n)


def mono_or_stereo(js: ConfigJson, c: FieldValues) -> None:
    if c["n_channels"] > 2:
        raise make_error(js, "audio_channels", 1, "1 or 2")


def both_halves_are_derived(js: ConfigJson, c: FieldValues) -> None:
    """Null leaves one of them out; a sound cannot be read without the encoder."""
    for key in ("encoder_config", "decoder_config"):
        if js.get(key) is not None or (key == "encoder_config" and key in js):
            raise make_error(js, key, None, "no such key" if key == "encoder_config" else "null, or no such key")


def codes_are_powers_of_two(js: ConfigJson, c: FieldValues) -> None:
    if c["n_codes"] & (c["n_codes"] - 1):
        raise make_error(js, "codebook_size", 2048, "a power of 2")


def without_shortcuts(js: ConfigJson, c: FieldValues) -> None:
    """The reference does not keep their frames for what follows."""
    if c["residuals"] and js.get("use_conv_shortcut", False) is not False:
        raise make_error(js, "use_conv_shortcut", False, "false")


def only(key: str, *choices: object) -> Condition:
    """The first choice is the reference's default."""

    def condition(js: ConfigJson, c: FieldValues) -> None:
        if js.get(key, choices[0]) not in choices:
            expected = join_words([str(choice).lower() for choice in choices])
            raise make_error(js, key, choices[0], expected)

    return condition


class Mimi(Sizes):
    """`rates`: samples or frames that become one, at each level; `narrow`: channels inside the residual blocks of each
    level; `semantic`, `acoustic`: numbers of the codebooks.
    """

    section = SECTION
    rotated = "d_head"
    conditions: ClassVar = (
        only("model_type", "mimi"),
        only("use_causal_conv", True),  # a sound is read while it goes on
        mono_or_stereo,
        only("pad_mode", "constant", "replicate"),
        both_halves_are_derived,
        codes_are_powers_of_two,
        without_shortcuts,
    )

    n_channels: Positive = hf("audio_channels", absent=1)
    n_filters: Positive = hf("num_filters", absent=64)
    d_model: Positive = hf(absent=512)
    rates: Widths = derived(read_rates)
    residuals: Indices = count_from("num_residual_layers", 1, 0)
    narrow: Indices = derived(narrow_channels)
    d_conv: Positive = hf("kernel_size", absent=7)
    d_last_conv: Positive = hf("last_kernel_size", absent=3)
    d_residual_conv: Positive = hf("residual_kernel_size", absent=3)
    n_layers: Positive = hf(absent=8)
    n_heads: Positive = hf(absent=8)
    n_kv_heads: Positive = hf(absent=8)
    d_head: Positive = hf(absent=d_model_per_head, null=d_model_per_head)
    d_ff: Positive = hf(absent=2048)
    attention_bias: Flag = hf(absent=False)
    n_codes: Positive = hf("codebook_size", absent=2048)
    d_code: Positive = hf("codebook_dim", absent=256)
    d_quantised: Positive = hf("vector_quantization_hidden_dimension", absent=256)
    projected: Flag = derived(lambda js, c: c["d_quantised"] != c["d_model"])
    semantic: Indices = count_from("num_semantic_quantizers", 1, 1)
    acoustic: Indices = derived(find_acoustic)
    has_decoder: Flag = derived(lambda js, c: js.get("decoder_config", "derived") is not None)
    d_group: Positive = derived(group_of)

    activation: ClassVar = setting("hidden_act", default="gelu")
    norm_eps: ClassVar = setting(default=1e-5)
    rope: ClassVar = rotary(positions=8000)
    window: ClassVar = setting("sliding_window", default=250)
    growth: ClassVar = setting("dilation_growth_rate", default=2)
    repeats: ClassVar = setting(default=lambda js, c: js.get("pad_mode", "constant") == "replicate")

    def encode(c, samples: Data) -> Data:
        """[samples, channels] to codes, [frames, codebooks]."""
        x = c.transform(block(samples, "encoder.", c.shrink), "encoder_transformer.")
        last = c.rates[-1]
        x = convolve_frames(
            x, "downsample.conv", c.d_model, 2 * last, stride=last, of_past=True, repeats=True, bias=False
        )
        return c.quantise(x)

    def shrink(c, x: Data) -> Data:
        x, at, d = c.convolve(x, "layers.0.conv", c.n_filters, c.d_conv), 1, c.n_filters
        for rate, narrow in zip(c.rates, c.narrow):
            x, at = c.residual_blocks(x, at, narrow)
            x, d = activate(x, "elu"), 2 * d
            x = c.convolve(x, f"layers.{at + 1}.conv", d, 2 * rate, stride=rate)
            at += 2
        return c.convolve(activate(x, "elu"), f"layers.{at + 1}.conv", c.d_model, c.d_last_conv)

    def grow(c, x: Data) -> Data:
        n = len(c.rates) - 1
        x, at = c.convolve(x, "layers.0.conv", c.n_filters * 2**n, c.d_conv), 2
        for i in range(n - 1, -1, -1):
            name, rate = f"layers.{at}.conv", c.rates[i]
            x = enlarge_frames(activate(x, "elu"), name, c.n_filters * 2**i, 2 * rate, "samples", stride=rate)
            x, at = c.residual_blocks(x, at + 1, c.narrow[i])
            at += 1
        return c.convolve(activate(x, "elu"), f"layers.{at}.conv", c.n_channels, c.d_last_conv)

    def residual_blocks(c, x: Data, at: int, narrow: Size) -> tuple[Data, int]:
        """x behind the blocks of one level, the first of which is layer `at`, and the next layer."""
        for i in c.residuals:
            apart = 1 if i == 0 else c.growth if isinstance(c.growth, Unknown) else c.growth**i
            x = block(x, f"layers.{at}.", lambda x, apart=apart: c.residual(x, narrow, apart))
            at += 1
        return x, at

    def residual(c, x: Data, narrow: Size, dilation: int | Unknown) -> Data:
        h = c.convolve(activate(x, "elu"), "block.1.conv", narrow, c.d_residual_conv, dilation=dilation)
        h = c.convolve(activate(h, "elu"), "block.3.conv", x.shape[-1], 1)
        return x + h

    def convolve(c, x: Data, name: str, d: Size, n: Size, *, stride: int = 1, dilation: int | Unknown = 1) -> Data:
        return convolve_frames(x, name, d, n, stride=stride, of_past=True, dilation=dilation, repeats=c.repeats)

    def transform(c, x: Data, prefix: str) -> Data:
        return layers(x, prefix + "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))

    def layer(c, x: Data) -> Data:
        """Each branch is scaled by a learned vector. Source: arXiv:2103.17239."""
        options = {"bias": c.attention_bias, "window": c.window, "cached": False, "causal": True}
        h = attention(c, layer_norm(x, "input_layernorm", c.norm_eps), "self_attn.", **options)
        x = x + multiply_vector(h, "self_attn_layer_scale.scale", "other", c.d_model)
        h = layer_norm(x, "post_attention_layernorm", c.norm_eps)
        h = plain_mlp(h, ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, activation=c.activation)
        return x + multiply_vector(h, "mlp_layer_scale.scale", "other", c.d_model)

    def quantise(c, x: Data) -> Data:
        """Vectors to the number of the nearest code in each codebook: a codebook reads what those before it leave."""
        codes = []
        for kind, numbers in (("semantic", c.semantic), ("acoustic", c.acoustic)):
            prefix = QUANTISER.format(kind)
            left = convolve_frames(x, prefix + "input_proj", c.d_quantised, 1, bias=False) if c.projected else x
            for i in numbers:
                name = f"{prefix}layers.{i}.codebook"
                codes.append(nearest_mean(left, name, "embedding", c.n_codes))
                if i < numbers[-1]:
                    found = lookup_mean(codes[-1], name, "embedding", c.n_codes, c.d_code, f"{c.place}{name}")
                    left = left + scale_by(found, -1.0, "negated")
        return join_columns(*codes)

    place: ClassVar[str] = "codec_model."  # in the model

    def decode(c, semantic: Data, acoustic: Data) -> Data:
        """The vectors of both kinds of codes, [frames, d_code], to samples."""
        found = {"semantic": semantic, "acoustic": acoustic}
        if c.projected:
            for kind, x in found.items():
                name = QUANTISER.format(kind) + "output_proj"
                found[kind] = convolve_frames(x, name, c.d_model, 1, bias=False)
        x, last = found["semantic"] + found["acoustic"], c.rates[-1]
        if not c.has_decoder:
            return x
        x = enlarge_groups(x, "upsample.conv", c.d_group, 2 * last, "frames", stride=last)
        return block(c.transform(x, "decoder_transformer."), "decoder.", c.grow)

    def check(c) -> None:
        check_divides(c, "n_kv_heads", "n_heads")
        check_divides(c, "n_heads", "d_model")
        if c.d_head % 2:
            raise ParamcountError(f"= {c.d_head}", where=FieldName("d_head"), expected="an even number")
        if c.projected == (c.d_quantised == c.d_model):
            expected = str(c.d_quantised != c.d_model).lower()
            raise ParamcountError(f"= {str(c.projected).lower()}", where="projected", expected=expected)
        if c.d_code != c.d_quantised:
            raise ParamcountError(f"= {c.d_code}", where=FieldName("d_code"), expected=f"{c.d_quantised}")
