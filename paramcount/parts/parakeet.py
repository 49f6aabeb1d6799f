"""Parakeet's audio encoder: a Fast Conformer, whose convolutions leave one of eight frames.

Source: arXiv:2305.05084; ParakeetEncoder of the reference.
"""

from __future__ import annotations

from math import log2
from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import Data


def bands_left(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """How many bands each convolution leaves.

    Raises: ParamcountError if the linear layer behind them, whose size is the quotient, does not fit.
    """
    width, stride = c["d_kernel"], c["stride"]
    found = [c["n_mels"]]
    for _ in range(max(1, int(log2(js.get("subsampling_factor", 8))))):
        found.append((found[-1] + (width - 1) // 2 * 2 - width) // stride + 1)
    divisor = stride ** (len(found) - 1)
    if found[-1] != (read := c["n_mels"] // divisor):
        problem = f"= {c['n_mels']} leaves {found[-1]} bands, but the linear layer behind the convolutions reads {read}"
        raise ParamcountError(problem, where=FieldName("n_mels"), expected=f"a multiple of {divisor}")
    return tuple(found[1:])


class ParakeetEars(sizes.Sizes):
    """`bands`: how many each convolution leaves."""

    section = "audio_config"
    n_mels: sizes.Positive = sizes.hf("num_mel_bins")
    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf("head_dim", absent=sizes.floor_d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    attention_bias: sizes.Flag = sizes.hf("attention_bias", absent=True)
    conv_bias: sizes.Flag = sizes.hf("convolution_bias")
    d_conv: sizes.Positive = sizes.hf("conv_kernel_size")
    n_channels: sizes.Positive = sizes.hf("subsampling_conv_channels")
    d_kernel: sizes.Positive = sizes.hf("subsampling_conv_kernel_size")
    stride: sizes.Positive = sizes.hf("subsampling_conv_stride")
    bands: sizes.Widths = sizes.derived(bands_left)

    activation: ClassVar = sizes.setting("hidden_act", usual="silu")
    is_scaled: ClassVar = sizes.setting("scale_input", usual=True)

    def forward(c: Any, frames: Data) -> Data:
        """Log-mel frames [frames, n_mels] to states [frames, d_model]."""
        x = c.subsample(ops.reshape(frames, c.n_mels, 1))
        if c.is_scaled is True:
            x = ops.scale_by_root(x, c.d_model, "times √d_model")
        return ops.layers(x, "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))

    def subsample(c, x: Data) -> Data:
        """Convolutions over frames and bands, all but the first of each channel by itself."""
        for i, bands in enumerate(c.bands):
            prefix = "subsampling.layers."
            if i == 0:
                x = ops.convolve_spectrum(x, prefix + "0", c.n_channels, c.d_kernel, bands, stride=c.stride, bias=True)
            else:
                x = ops.convolve_spectrum_of_each(x, f"{prefix}{3 * i - 1}", c.d_kernel, bands, stride=c.stride)
                x = ops.convolve_spectrum(x, f"{prefix}{3 * i}", c.n_channels, 1, bands, bias=True)
            x = ops.activate(x, "relu")
        x = ops.reshape(ops.channels_first(x), c.n_channels * c.bands[-1])
        return ops.linear(x, "subsampling.linear", "mixer", c.d_model, bias=True)

    def layer(c, x: Data) -> Data:
        x = x + ops.scale_by(c.feed_forward(c.norm(x, "norm_feed_forward1"), "feed_forward1."), 0.5)
        x = x + c.attend(c.norm(x, "norm_self_att"))
        x = x + c.convolve(c.norm(x, "norm_conv"))
        x = x + ops.scale_by(c.feed_forward(c.norm(x, "norm_feed_forward2"), "feed_forward2."), 0.5)
        return c.norm(x, "norm_out")

    def norm(c, x: Data, name: str) -> Data:
        return ops.layer_norm(x, name, 1e-5)

    def feed_forward(c, x: Data, prefix: str) -> Data:
        names = (prefix + "linear1", prefix + "linear2")
        return parts.plain_mlp(x, names, "mlp", c.d_ff, activation=c.activation, bias=c.attention_bias)

    def attend(c, x: Data) -> Data:
        """The scores are the sum of two terms: content and relative position. Source: arXiv:1901.02860."""
        heads, bias = (c.n_heads, c.d_head), c.attention_bias
        q, k, v = (ops.linear(x, f"self_attn.{name}_proj", f"qkv.{name}", heads, bias=bias) for name in "qkv")
        r = ops.distance_sinusoids(x, causal=False, waves="interleaved")
        r = ops.linear(r, "self_attn.relative_k_proj", "qkv.k", heads)
        at_content, at_distance = (ops.add_vector(q, f"self_attn.bias_{name}", "qkv.q", *heads) for name in "uv")
        scores = ops.select_by_pair(ops.index_distances(x), ops.score_keys(at_distance, r), axis=2)
        scores = ops.scale_by_root(scores, c.d_head, "over √d_head", inverse=True)
        a = ops.attend(at_content, k, v, scores)  # [n, n_heads, d_head]
        return ops.linear(a, "self_attn.o_proj", "output_projection", c.d_model, bias=bias)

    def convolve(c, x: Data) -> Data:
        """Source: arXiv:2005.08100, section 2.2."""
        d, bias = c.d_model, c.conv_bias
        value, gate = ops.split(ops.convolve_tokens(x, "conv.pointwise_conv1", 2 * d, 1, bias=bias), d, d)
        h = value * ops.activate(gate, "sigmoid")
        h = ops.convolve_tokens(h, "conv.depthwise_conv", d, c.d_conv, group=1, bias=bias)
        h = ops.activate(ops.batch_norm(h, "conv.norm", 1e-5), c.activation)
        return ops.convolve_tokens(h, "conv.pointwise_conv2", d, 1, bias=bias)
