"""The vocoder of Qwen3-Omni: codes to the samples of a sound, by a transformer and causal transposed convolutions.

Source: arXiv:2509.17765, section 2.4; Qwen3OmniMoeCode2Wav of the reference.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import (
    BEFORE,
    Data,
    Size,
    activate_by_snake,
    attend,
    block,
    clip,
    convolve_earlier_frames,
    convolve_frames,
    enlarge_frames,
    layer_norm,
    layers,
    lookup,
    mean_of_blocks,
    multiply_vector,
    rms_norm,
    see_earlier,
)
from paramcount.parts.attentions import attention
from paramcount.parts.bigvgan import halved_channels
from paramcount.parts.feed_forward import gated_mlp, plain_mlp
from paramcount.sizes import (
    ConfigJson,
    FieldValues,
    Flag,
    Indices,
    Natural,
    Positive,
    Sizes,
    Widths,
    d_model_per_head,
    derived,
    hf,
    rotary,
    setting,
)

WIDTH = 7  # of a convolution
DILATIONS = (1, 3, 9)


class Code2Wav(Sizes):
    """`factors`: frames that a state becomes before the convolutions; `rates`: samples that a frame becomes at each
    level.
    """

    rotated = "d_head"

    d_model: Positive = hf()
    n_layers: Natural = hf()
    n_heads: Positive = hf()
    n_kv_heads: Positive = hf()
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Natural = hf()
    attention_bias: Flag = hf()
    n_codes: Positive = hf("codebook_size")
    n_codebooks: Positive = hf("num_quantizers")
    factors: Widths = hf("upsampling_ratios")
    rates: Widths = hf("upsample_rates")
    d_first: Positive = hf("decoder_dim")
    channels: Indices = derived(halved_channels)

    activation: ClassVar = setting("hidden_act", usual="silu")
    norm_eps: ClassVar = setting("rms_norm_eps", usual=1e-5)
    rope: ClassVar = rotary(positions=8000)
    window: ClassVar = setting("sliding_window", usual=72)

    def forward(c, codes: Data) -> Data:
        """The codes of all codebooks, numbered one after the other, frame by frame, to samples, [samples, 1]."""
        x = lookup(codes, "code_embedding.weight", "embedding", c.n_codes * c.n_codebooks, c.d_model)
        x = mean_of_blocks(x, c.n_codebooks)
        x = layers(x, "pre_transformer.layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))
        x = rms_norm(x, "pre_transformer.norm", c.norm_eps)
        for i, factor in enumerate(c.factors):
            x = enlarge_frames(x, f"upsample.{i}.0.conv", c.d_model, factor, "frames", stride=factor)
            x = block(x, f"upsample.{i}.1.", c.convnext)
        x = c.convolve(x, "decoder.0.conv", c.d_first)
        for i, (rate, channels) in enumerate(zip(c.rates, c.channels)):
            x = activate_by_snake(x, f"decoder.{i + 1}.block.0.")
            name = f"decoder.{i + 1}.block.1.conv"
            x = enlarge_frames(x, name, channels, 2 * rate, "samples", stride=rate, crops=(rate, rate))
            for j, dilation in enumerate(DILATIONS):
                x = block(x, f"decoder.{i + 1}.block.{j + 2}.", lambda x, by=dilation: c.residual(x, by))
        n = len(c.rates) + 1
        x = activate_by_snake(x, f"decoder.{n}.")
        return clip(c.convolve(x, f"decoder.{n + 1}.conv", 1), -1.0, 1.0)

    def layer(c, x: Data) -> Data:
        """Each branch is scaled by a learned vector. Source: arXiv:2103.17239."""
        h = rms_norm(x, "input_layernorm", c.norm_eps)
        mix = partial(attend, mask=see_earlier(c.window))
        h = attention(c, h, "self_attn.", bias=c.attention_bias, mix=mix)
        x = x + multiply_vector(h, "self_attn_layer_scale.scale", "other", c.d_model)
        h = rms_norm(x, "post_attention_layernorm", c.norm_eps)
        h = gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation)
        return x + multiply_vector(h, "mlp_layer_scale.scale", "other", c.d_model)

    def convnext(c, x: Data) -> Data:
        """Source: arXiv:2201.03545, section 2.6."""
        h = layer_norm(convolve_earlier_frames(x, "dwconv.conv", WIDTH, bias=True), "norm", 1e-6)
        h = plain_mlp(h, ("pwconv1", "pwconv2"), "mlp", 4 * c.d_model, activation="gelu", bias=True)
        return x + multiply_vector(h, "gamma", "other", c.d_model)

    def residual(c, x: Data, dilation: int) -> Data:
        h = c.convolve(activate_by_snake(x, "act1."), "conv1.conv", x.shape[-1], dilation=dilation)
        return x + convolve_frames(activate_by_snake(h, "act2."), "conv2.conv", x.shape[-1], 1)

    def convolve(c, x: Data, name: str, channels: Size, dilation: int = 1) -> Data:
        return convolve_frames(x, name, channels, WIDTH, dilation=dilation, padding=BEFORE)


def check_code2wav(c: Code2Wav) -> None:
    """What the reference needs to run it."""
    if not c.channels[-1]:
        expected = f"at least {2 ** len(c.rates)}, which is halved {len(c.rates)} times"
        raise ParamcountError(f"= {c.d_first}", where=FieldName("d_first"), expected=expected)


def both_rates_are_given(js: ConfigJson, c: FieldValues) -> None:
    """The reference cannot join a list with its own default."""
    keys = ("upsample_rates", "upsampling_ratios")
    missing = [key for key in keys if key not in js]
    if len(missing) == 1:
        other = keys[not keys.index(missing[0])]
        raise ParamcountError(f"is missing, but {other} is given", where=missing[0], expected="both, or neither")
