"""Mimi: convolutions and a transformer make vectors of the samples of a sound, and codebooks make codes of them.

The first codebooks say what is said; each of the others says what those before it leave of the vector.

Source: arXiv:2410.00037, section 3.3; MimiModel of the reference.
"""

from __future__ import annotations

from functools import partial
from math import ceil, prod
from typing import ClassVar

from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import (
    Data,
    Padding,
    attend,
    block,
    convolve_frames,
    enlarge_groups,
    join_columns,
    layer_norm,
    layers,
    lookup_mean,
    multiply_vector,
    nearest_mean,
    scale_by,
    see_earlier,
)
from paramcount.parts.attentions import attention
from paramcount.parts.feed_forward import plain_mlp
from paramcount.parts.seanet import (
    SeaNet,
    codes_are_powers_of_two,
    count_from,
    mono_or_stereo,
    narrow_channels,
    only,
    read_rates,
)
from paramcount.sizes import (
    ConfigJson,
    FieldValues,
    Flag,
    Indices,
    Natural,
    Positive,
    Widths,
    d_model_per_head,
    derived,
    hf,
    rotary,
    setting,
)
from paramcount.sizes.conditions import make_key_error
from paramcount.sizes.rules import check_divides

RATES = (8, 6, 5, 4)
QUANTISER = "quantizer.{}_residual_vector_quantizer."


def find_rates(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    """From the samples on; the last one is that of the frames behind the transformer."""
    rates, n_samples = read_rates(js, RATES)
    before = ceil(n_samples / prod(rates))
    key = "_frame_rate" if "_frame_rate" in js else "frame_rate"
    behind = js.get(key)
    if behind is None:
        behind = n_samples / (2 * prod(rates))
    if type(behind) not in (int, float) or behind <= 0 or behind == before or before < behind:
        raise make_key_error(js, key, None, f"less than {before}, the frames per second before the last convolution")
    return (*rates, int(before / behind))


def find_acoustic(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    n, n_semantic = js.get("num_quantizers", 32), len(c["semantic"])
    if type(n) is not int or n <= n_semantic:
        raise make_key_error(js, "num_quantizers", 32, f"more than num_semantic_quantizers = {n_semantic}")
    return tuple(range(n - n_semantic))


def group_of(js: ConfigJson, c: FieldValues) -> int:
    n = js.get("upsample_groups", 512)
    if type(n) is not int or n < 1 or c["d_model"] % n:
        raise make_key_error(js, "upsample_groups", 512, f"a divisor of hidden_size = {c['d_model']}")
    return int(c["d_model"] // n)


def both_halves_are_derived(js: ConfigJson, c: FieldValues) -> None:
    """Null leaves one of them out; a sound cannot be read without the encoder."""
    for key in ("encoder_config", "decoder_config"):
        if js.get(key) is not None or (key == "encoder_config" and key in js):
            raise make_key_error(js, key, None, "no such key" if key == "encoder_config" else "null, or no such key")


def without_shortcuts(js: ConfigJson, c: FieldValues) -> None:
    """The reference does not keep their frames for what follows."""
    if c["residuals"] and js.get("use_conv_shortcut", False) is not False:
        raise make_key_error(js, "use_conv_shortcut", False, "false")


class Mimi(SeaNet):
    """`semantic`, `acoustic`: numbers of the codebooks. The last rate is that of the frames behind the transformer.

    Its section in config.json is that of the model around it.
    """

    config_class = "MimiConfig"

    section = "codec_config"
    rotated = "d_head"
    conditions: ClassVar = (
        only("model_type", "mimi"),
        only("use_causal_conv", True),  # a sound is read while it goes on
        mono_or_stereo,
        only("pad_mode", "constant", "replicate"),
        both_halves_are_derived,
        codes_are_powers_of_two(2048),
        without_shortcuts,
    )

    rates: Widths = derived(find_rates)
    narrow: Indices = narrow_channels(slice(-1))
    d_last_conv: Positive = hf("last_kernel_size")
    n_layers: Natural = hf()
    n_heads: Positive = hf()
    n_kv_heads: Positive = hf()
    d_head: Positive = hf(absent=d_model_per_head, null=d_model_per_head)
    d_ff: Natural = hf()
    attention_bias: Flag = hf()
    n_codes: Positive = hf("codebook_size")
    d_code: Positive = hf("codebook_dim")
    d_quantised: Positive = hf("vector_quantization_hidden_dimension")
    projected: Flag = derived(lambda js, c: c["d_quantised"] != c["d_model"])
    semantic: Indices = count_from("num_semantic_quantizers", 1, 1)
    acoustic: Indices = derived(find_acoustic)
    has_decoder: Flag = derived(lambda js, c: js.get("decoder_config", "derived") is not None)
    d_group: Positive = derived(group_of)

    activation: ClassVar = setting("hidden_act")
    norm_eps: ClassVar = setting("norm_eps")
    rope: ClassVar = rotary(positions=8000)
    window: ClassVar = setting("sliding_window")

    def encode(c, samples: Data) -> Data:
        """[samples, channels] to codes, [frames, codebooks]."""
        x = c.transform(block(samples, "encoder.", c.shrink), "encoder_transformer.")
        last = c.rates[-1]
        x = convolve_frames(
            x,
            "downsample.conv",
            c.d_model,
            2 * last,
            stride=last,
            padding=Padding("before, filled", "repeated"),
            bias=False,
        )
        return c.quantise(x)

    def transform(c, x: Data, prefix: str) -> Data:
        return layers(x, prefix + "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))

    def layer(c, x: Data) -> Data:
        """Each branch is scaled by a learned vector. Source: arXiv:2103.17239."""
        mix = partial(attend, mask=see_earlier(c.window))
        h = attention(c, layer_norm(x, "input_layernorm", c.norm_eps), "self_attn.", bias=c.attention_bias, mix=mix)
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
        x = enlarge_groups(x, "upsample.conv", c.d_group, 2 * last, "frames", stride=last, crops=c.find_crops(last))
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
