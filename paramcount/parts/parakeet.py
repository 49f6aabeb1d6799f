"""Parakeet's audio encoder: a Fast Conformer, whose convolutions leave one of eight frames.

Source: arXiv:2305.05084; ParakeetEncoder of the reference.
"""

from __future__ import annotations

from math import log2
from typing import Any, ClassVar

from paramcount.errors import FieldName, ParamcountError
from paramcount.flow import (
    Data,
    activate,
    add_vector,
    attend,
    batch_norm,
    channels_first,
    convolve_spectrum,
    convolve_spectrum_of_each,
    convolve_tokens,
    distance_sinusoids,
    index_distances,
    layer_norm,
    layers,
    linear,
    reshape,
    scale_by,
    scale_by_root,
    score_keys,
    select_by_pair,
    split,
)
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ConfigJson, FieldValues, Flag, Natural, Positive, Sizes, Widths, derived, hf, setting
from paramcount.sizes.derivations import floor_d_model_per_head


def bands_left(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
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


class ParakeetEars(Sizes):
    """`bands`: how many each convolution leaves."""

    section = "audio_config"
    n_mels: Positive = hf("num_mel_bins")
    d_model: Positive = hf()
    n_layers: Natural = hf()
    n_heads: Positive = hf()
    d_head: Positive = hf("head_dim", absent=floor_d_model_per_head)
    d_ff: Natural = hf()
    attention_bias: Flag = hf("attention_bias", absent=True)
    conv_bias: Flag = hf("convolution_bias")
    d_conv: Positive = hf("conv_kernel_size")
    n_channels: Positive = hf("subsampling_conv_channels")
    d_kernel: Positive = hf("subsampling_conv_kernel_size")
    stride: Positive = hf("subsampling_conv_stride")
    bands: Widths = derived(bands_left)

    activation: ClassVar = setting("hidden_act", usual="silu")
    is_scaled: ClassVar = setting("scale_input", usual=True)

    def forward(c: Any, frames: Data) -> Data:
        """Log-mel frames [frames, n_mels] to states [frames, d_model]."""
        x = c.subsample(reshape(frames, c.n_mels, 1))
        if c.is_scaled is True:
            x = scale_by_root(x, c.d_model, "times √d_model")
        return layers(x, "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))

    def subsample(c, x: Data) -> Data:
        """Convolutions over frames and bands, all but the first of each channel by itself."""
        for i, bands in enumerate(c.bands):
            prefix = "subsampling.layers."
            if i == 0:
                x = convolve_spectrum(x, prefix + "0", c.n_channels, c.d_kernel, bands, stride=c.stride, bias=True)
            else:
                x = convolve_spectrum_of_each(x, f"{prefix}{3 * i - 1}", c.d_kernel, bands, stride=c.stride)
                x = convolve_spectrum(x, f"{prefix}{3 * i}", c.n_channels, 1, bands, bias=True)
            x = activate(x, "relu")
        x = reshape(channels_first(x), c.n_channels * c.bands[-1])
        return linear(x, "subsampling.linear", "mixer", c.d_model, bias=True)

    def layer(c, x: Data) -> Data:
        x = x + scale_by(c.feed_forward(c.norm(x, "norm_feed_forward1"), "feed_forward1."), 0.5)
        x = x + c.attend(c.norm(x, "norm_self_att"))
        x = x + c.convolve(c.norm(x, "norm_conv"))
        x = x + scale_by(c.feed_forward(c.norm(x, "norm_feed_forward2"), "feed_forward2."), 0.5)
        return c.norm(x, "norm_out")

    def norm(c, x: Data, name: str) -> Data:
        return layer_norm(x, name, 1e-5)

    def feed_forward(c, x: Data, prefix: str) -> Data:
        names = (prefix + "linear1", prefix + "linear2")
        return plain_mlp(x, names, "mlp", c.d_ff, activation=c.activation, bias=c.attention_bias)

    def attend(c, x: Data) -> Data:
        """The scores are the sum of two terms: content and relative position. Source: arXiv:1901.02860."""
        heads, bias = (c.n_heads, c.d_head), c.attention_bias
        q, k, v = (linear(x, f"self_attn.{name}_proj", f"qkv.{name}", heads, bias=bias) for name in "qkv")
        r = distance_sinusoids(x, causal=False, waves="interleaved")
        r = linear(r, "self_attn.relative_k_proj", "qkv.k", heads)
        at_content, at_distance = (add_vector(q, f"self_attn.bias_{name}", "qkv.q", *heads) for name in "uv")
        scores = select_by_pair(index_distances(x), score_keys(at_distance, r), axis=2)
        scores = scale_by_root(scores, c.d_head, "over √d_head", inverse=True)
        a = attend(at_content, k, v, scores)  # [n, n_heads, d_head]
        return linear(a, "self_attn.o_proj", "output_projection", c.d_model, bias=bias)

    def convolve(c, x: Data) -> Data:
        """Source: arXiv:2005.08100, section 2.2."""
        d, bias = c.d_model, c.conv_bias
        value, gate = split(convolve_tokens(x, "conv.pointwise_conv1", 2 * d, 1, bias=bias), d, d)
        h = value * activate(gate, "sigmoid")
        h = convolve_tokens(h, "conv.depthwise_conv", d, c.d_conv, group=1, bias=bias)
        h = activate(batch_norm(h, "conv.norm", 1e-5), c.activation)
        return convolve_tokens(h, "conv.pointwise_conv2", d, 1, bias=bias)
