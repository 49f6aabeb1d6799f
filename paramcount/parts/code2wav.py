"""The vocoder of Qwen3-Omni: codes to the samples of a sound, by a transformer and causal transposed convolutions.

Source: arXiv:2509.17765, section 2.4; Qwen3OmniMoeCode2Wav of the reference.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data

WIDTH = 7  # of a convolution
DILATIONS = (1, 3, 9)


class Code2Wav(sizes.Sizes):
    """`factors`: frames that a state becomes before the convolutions; `rates`: samples that a frame becomes at each
    level.
    """

    rotated = "d_head"

    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    attention_bias: sizes.Flag = sizes.hf()
    n_codes: sizes.Positive = sizes.hf("codebook_size")
    n_codebooks: sizes.Positive = sizes.hf("num_quantizers")
    factors: sizes.Widths = sizes.hf("upsampling_ratios")
    rates: sizes.Widths = sizes.hf("upsample_rates")
    d_first: sizes.Positive = sizes.hf("decoder_dim")
    channels: sizes.Indices = sizes.derived(parts.halved_channels)

    activation: ClassVar = sizes.setting("hidden_act", usual="silu")
    norm_eps: ClassVar = sizes.setting("rms_norm_eps", usual=1e-5)
    rope: ClassVar = sizes.rotary(positions=8000)
    window: ClassVar = sizes.setting("sliding_window", usual=72)

    def forward(c, codes: Data) -> Data:
        """The codes of all codebooks, numbered one after the other, frame by frame, to samples, [samples, 1]."""
        x = ops.lookup(codes, "code_embedding.weight", "embedding", c.n_codes * c.n_codebooks, c.d_model)
        x = ops.mean_of_blocks(x, c.n_codebooks)
        x = ops.layers(x, "pre_transformer.layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))
        x = ops.rms_norm(x, "pre_transformer.norm", c.norm_eps)
        for i, factor in enumerate(c.factors):
            x = ops.enlarge_frames(x, f"upsample.{i}.0.conv", c.d_model, factor, "frames", stride=factor)
            x = ops.block(x, f"upsample.{i}.1.", c.convnext)
        x = c.convolve(x, "decoder.0.conv", c.d_first)
        for i, (rate, channels) in enumerate(zip(c.rates, c.channels)):
            x = ops.activate_by_snake(x, f"decoder.{i + 1}.block.0.")
            name = f"decoder.{i + 1}.block.1.conv"
            x = ops.enlarge_frames(x, name, channels, 2 * rate, "samples", stride=rate, crops=(rate, rate))
            for j, dilation in enumerate(DILATIONS):
                x = ops.block(x, f"decoder.{i + 1}.block.{j + 2}.", lambda x, by=dilation: c.residual(x, by))
        n = len(c.rates) + 1
        x = ops.activate_by_snake(x, f"decoder.{n}.")
        return ops.clip(c.convolve(x, f"decoder.{n + 1}.conv", 1), -1.0, 1.0)

    def layer(c, x: Data) -> Data:
        """Each branch is scaled by a learned vector. Source: arXiv:2103.17239."""
        h = ops.rms_norm(x, "input_layernorm", c.norm_eps)
        mix = partial(ops.attend, mask=ops.see_earlier(c.window))
        h = parts.attentions.attention(c, h, "self_attn.", bias=c.attention_bias, mix=mix)
        x = x + ops.multiply_vector(h, "self_attn_layer_scale.scale", "other", c.d_model)
        h = ops.rms_norm(x, "post_attention_layernorm", c.norm_eps)
        h = parts.gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation)
        return x + ops.multiply_vector(h, "mlp_layer_scale.scale", "other", c.d_model)

    def convnext(c, x: Data) -> Data:
        """Source: arXiv:2201.03545, section 2.6."""
        h = ops.layer_norm(ops.convolve_earlier_frames(x, "dwconv.conv", WIDTH, bias=True), "norm", 1e-6)
        h = parts.plain_mlp(h, ("pwconv1", "pwconv2"), "mlp", 4 * c.d_model, activation="gelu", bias=True)
        return x + ops.multiply_vector(h, "gamma", "other", c.d_model)

    def residual(c, x: Data, dilation: int) -> Data:
        h = c.convolve(ops.activate_by_snake(x, "act1."), "conv1.conv", x.shape[-1], dilation=dilation)
        return x + ops.convolve_frames(ops.activate_by_snake(h, "act2."), "conv2.conv", x.shape[-1], 1)

    def convolve(c, x: Data, name: str, channels: ops.Size, dilation: int = 1) -> Data:
        return ops.convolve_frames(x, name, channels, WIDTH, dilation=dilation, padding=ops.BEFORE)


def check_code2wav(c: Code2Wav) -> None:
    """What the reference needs to run it."""
    if not c.channels[-1]:
        expected = f"at least {2 ** len(c.rates)}, which is halved {len(c.rates)} times"
        raise ParamcountError(f"= {c.d_first}", where=FieldName("d_first"), expected=expected)


def both_rates_are_given(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference cannot join a list with its own default."""
    keys = ("upsample_rates", "upsampling_ratios")
    missing = [key for key in keys if key not in js]
    if len(missing) == 1:
        other = keys[not keys.index(missing[0])]
        raise ParamcountError(f"is missing, but {other} is given", where=missing[0], expected="both, or neither")
