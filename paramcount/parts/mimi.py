"""Mimi: convolutions and a transformer make vectors of the samples of a sound, and codebooks make codes of them.

The first codebooks say what is said; each of the others says what those before it leave of the vector.

Source: arXiv:2410.00037, section 3.3; MimiModel of the reference.
"""

from __future__ import annotations

from functools import partial
from math import ceil, prod
from typing import ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data

RATES = (8, 6, 5, 4)
QUANTISER = "quantizer.{}_residual_vector_quantizer."


def find_rates(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """From the samples on; the last one is that of the frames behind the transformer."""
    rates, n_samples = parts.read_rates(js, RATES)
    before = ceil(n_samples / prod(rates))
    key = "_frame_rate" if "_frame_rate" in js else "frame_rate"
    behind = js.get(key)
    if behind is None:
        behind = n_samples / (2 * prod(rates))
    if type(behind) not in (int, float) or behind <= 0 or behind == before or before < behind:
        raise sizes.make_key_error(
            js, key, None, f"less than {before}, the frames per second before the last convolution"
        )
    return (*rates, int(before / behind))


def find_acoustic(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    n, n_semantic = js.get("num_quantizers", 32), len(c["semantic"])
    if type(n) is not int or n <= n_semantic:
        raise sizes.make_key_error(js, "num_quantizers", 32, f"more than num_semantic_quantizers = {n_semantic}")
    return tuple(range(n - n_semantic))


def group_of(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    n = js.get("upsample_groups", 512)
    if type(n) is not int or n < 1 or c["d_model"] % n:
        raise sizes.make_key_error(js, "upsample_groups", 512, f"a divisor of hidden_size = {c['d_model']}")
    return int(c["d_model"] // n)


def both_halves_are_derived(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Null leaves one of them out; a sound cannot be read without the encoder."""
    for key in ("encoder_config", "decoder_config"):
        if js.get(key) is not None or (key == "encoder_config" and key in js):
            raise sizes.make_key_error(
                js, key, None, "no such key" if key == "encoder_config" else "null, or no such key"
            )


def without_shortcuts(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference does not keep their frames for what follows."""
    if c["residuals"] and js.get("use_conv_shortcut", False) is not False:
        raise sizes.make_key_error(js, "use_conv_shortcut", False, "false")


class Mimi(parts.SeaNet):
    """`semantic`, `acoustic`: numbers of the codebooks. The last rate is that of the frames behind the transformer.

    Its section in config.json is that of the model around it.
    """

    config_class = "MimiConfig"

    section = "codec_config"
    rotated = "d_head"
    conditions: ClassVar = (
        parts.only("model_type", "mimi"),
        parts.only("use_causal_conv", True),  # a sound is read while it goes on
        parts.mono_or_stereo,
        parts.only("pad_mode", "constant", "replicate"),
        both_halves_are_derived,
        parts.codes_are_powers_of_two(2048),
        without_shortcuts,
    )

    rates: sizes.Widths = sizes.derived(find_rates)
    narrow: sizes.Indices = sizes.derived(parts.narrow_channels(slice(-1)))
    d_last_conv: sizes.Positive = sizes.hf("last_kernel_size")
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    attention_bias: sizes.Flag = sizes.hf()
    n_codes: sizes.Positive = sizes.hf("codebook_size")
    d_code: sizes.Positive = sizes.hf("codebook_dim")
    d_quantised: sizes.Positive = sizes.hf("vector_quantization_hidden_dimension")
    projected: sizes.Flag = sizes.derived(lambda js, c: c["d_quantised"] != c["d_model"])
    semantic: sizes.Indices = sizes.derived(parts.count_from("num_semantic_quantizers", 1, 1))
    acoustic: sizes.Indices = sizes.derived(find_acoustic)
    has_decoder: sizes.Flag = sizes.derived(lambda js, c: js.get("decoder_config", "derived") is not None)
    d_group: sizes.Positive = sizes.derived(group_of)

    activation: ClassVar = sizes.setting("hidden_act")
    norm_eps: ClassVar = sizes.setting("norm_eps")
    rope: ClassVar = sizes.rotary(positions=8000)
    window: ClassVar = sizes.setting("sliding_window")

    def encode(c, samples: Data) -> Data:
        """[samples, channels] to codes, [frames, codebooks]."""
        x = c.transform(ops.block(samples, "encoder.", c.shrink), "encoder_transformer.")
        last = c.rates[-1]
        x = ops.convolve_frames(
            x,
            "downsample.conv",
            c.d_model,
            2 * last,
            stride=last,
            padding=ops.Padding("before, filled", "repeated"),
            bias=False,
        )
        return c.quantise(x)

    def transform(c, x: Data, prefix: str) -> Data:
        return ops.layers(x, prefix + "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))

    def layer(c, x: Data) -> Data:
        """Each branch is scaled by a learned vector. Source: arXiv:2103.17239."""
        mix = partial(ops.attend, mask=ops.see_earlier(c.window))
        h = parts.attentions.attention(
            c, ops.layer_norm(x, "input_layernorm", c.norm_eps), "self_attn.", bias=c.attention_bias, mix=mix
        )
        x = x + ops.multiply_vector(h, "self_attn_layer_scale.scale", "other", c.d_model)
        h = ops.layer_norm(x, "post_attention_layernorm", c.norm_eps)
        h = parts.plain_mlp(h, ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, activation=c.activation)
        return x + ops.multiply_vector(h, "mlp_layer_scale.scale", "other", c.d_model)

    def quantise(c, x: Data) -> Data:
        """Vectors to the number of the nearest code in each codebook: a codebook reads what those before it leave."""
        codes = []
        for kind, numbers in (("semantic", c.semantic), ("acoustic", c.acoustic)):
            prefix = QUANTISER.format(kind)
            left = ops.convolve_frames(x, prefix + "input_proj", c.d_quantised, 1, bias=False) if c.projected else x
            for i in numbers:
                name = f"{prefix}layers.{i}.codebook"
                codes.append(ops.nearest_mean(left, name, "embedding", c.n_codes))
                if i < numbers[-1]:
                    found = ops.lookup_mean(codes[-1], name, "embedding", c.n_codes, c.d_code, f"{c.place}{name}")
                    left = left + ops.scale_by(found, -1.0, "negated")
        return ops.join_columns(*codes)

    place: ClassVar[str] = "codec_model."  # in the model

    def decode(c, semantic: Data, acoustic: Data) -> Data:
        """The vectors of both kinds of codes, [frames, d_code], to samples."""
        found = {"semantic": semantic, "acoustic": acoustic}
        if c.projected:
            for kind, x in found.items():
                name = QUANTISER.format(kind) + "output_proj"
                found[kind] = ops.convolve_frames(x, name, c.d_model, 1, bias=False)
        x, last = found["semantic"] + found["acoustic"], c.rates[-1]
        if not c.has_decoder:
            return x
        x = ops.enlarge_groups(x, "upsample.conv", c.d_group, 2 * last, "frames", stride=last, crops=c.find_crops(last))
        return ops.block(c.transform(x, "decoder_transformer."), "decoder.", c.grow)

    def check(c) -> None:
        sizes.check_divides(c, "n_kv_heads", "n_heads")
        sizes.check_divides(c, "n_heads", "d_model")
        if c.d_head % 2:
            raise sizes.make_value_error(c.d_head, FieldName("d_head"), "an even number")
        if c.projected == (c.d_quantised == c.d_model):
            expected = str(c.d_quantised != c.d_model).lower()
            raise ParamcountError(f"= {str(c.projected).lower()}", where="projected", expected=expected)
        if c.d_code != c.d_quantised:
            raise sizes.make_value_error(c.d_code, FieldName("d_code"), f"{c.d_quantised}")
