"""The audio encoders of Gemma 3n and Gemma 4: a Universal Speech Model, whose conformer attends to the frames before.

Source: arXiv:2303.01037; Gemma3nAudioEncoder and Gemma4AudioModel of the reference.
"""

from __future__ import annotations

from math import e, log
from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import sizes
from paramcount.flow import Data

STRIDES = "sscp_conv_stride_size"
LOG_2 = 0.6931471805599453  # softplus of 0, by which the scale of queries is divided
KEY_SCALE = log(1 + e) / LOG_2  # softplus of 1


@sizes.options_first
def read_pair(js: sizes.ConfigJson, c: sizes.FieldValues, key: str, default: tuple[Any, Any], at: int) -> Any:
    """One of two entries of a key."""
    found = js.get(key, default)
    if not isinstance(found, list | tuple) or len(found) < 2:
        raise sizes.make_value_error(found, f"audio_config.{key}", "two entries")
    return found[at]


@sizes.options_first
def read_square(js: sizes.ConfigJson, c: Any, key: str, default: int, at: int) -> int:
    """One of two entries of a key, the number of frames of a convolution and of its bands."""
    found = js.get(key, ((default, default),) * 2)
    sides = found[at] if isinstance(found, list | tuple) and len(found) > at else found
    if not isinstance(sides, list | tuple) or len(sides) != 2 or sides[0] != sides[1] or type(sides[0]) is not int:
        raise sizes.make_value_error(found, f"audio_config.{key}", "as many frames as bands")
    return sides[0]


@sizes.options_first
def count_bands(js: sizes.ConfigJson, c: sizes.FieldValues, before: str, kernel: str, at: int) -> int:
    """How many bands a convolution leaves, with a zero on either side of them."""
    return (c[before] + 2 - c[kernel]) // max(read_square(STRIDES, 2, at)(js, c), 1) + 1


class SpeechConformer(sizes.Sizes):
    """The layers of a Universal Speech Model: attention to the frames before and a convolution, between two MLPs."""

    section = "audio_config"

    activation: ClassVar[Any] = "silu"
    key_scale: ClassVar[float] = 1.0

    def check(c) -> None:
        sizes.check_heads_fill(c)

    def layer(c: Any, x: Data) -> Data:
        """Attention and a convolution between two MLPs, of whose outputs half is added."""
        x = c.feed_forward(x, "ffw_layer_start.")
        h = c.attention(ops.rms_norm(c.limit(x), "attention.pre_attn_norm", 1e-6), "attention.attn.")
        h = c.limit(c.linear(h, "attention.post", "output_projection", c.d_model))
        x = x + ops.rms_norm(h, "attention.post_norm", 1e-6)
        x = x + c.convolution(x, "lconv1d.")
        return ops.rms_norm(c.limit(c.feed_forward(x, "ffw_layer_end.")), "norm", 1e-6)

    def feed_forward(c: Any, x: Data, prefix: str) -> Data:
        h = ops.rms_norm(c.limit(x), prefix + "pre_layer_norm", 1e-6)
        h = ops.activate(c.linear(h, prefix + "ffw_layer_1", "mlp.up", 4 * c.d_model), c.activation)
        h = c.limit(c.linear(h, prefix + "ffw_layer_2", "mlp.down", c.d_model))
        return x + ops.scale_by(ops.rms_norm(h, prefix + "post_layer_norm", 1e-6), c.residual_weight)

    def attention(c: Any, x: Data, prefix: str) -> Data:
        """The scores gain what the query says of the distance. Queries have a learned scale per dimension."""
        heads = (c.n_heads, c.d_head)
        q, k, v = (c.linear(x, f"{prefix}{name}_proj", f"qkv.{name}", heads) for name in "qkv")
        q = ops.multiply_vector(q, prefix + "per_dim_scale", "other", c.d_head, function="softplus")
        q = ops.scale_by(ops.scale_by_root(q, c.d_head, "divided by √d_head", inverse=True), 1 / LOG_2)
        k = ops.scale_by(k, c.key_scale)
        distances = ops.distance_sinusoids(x, causal=c.n_later_frames == 0, slowest="base")
        distances = ops.linear(distances, prefix + "relative_position_embedding.pos_proj", "position", heads)
        by_distance = ops.select_by_pair(ops.index_distances(x), ops.score_keys(q, distances), axis=2)
        s = ops.soft_cap(ops.add_bias(ops.scores(q, k, 1.0), by_distance), c.score_cap)  # [n_heads, n, m]
        return ops.weighted_sum(ops.softmax(s, mask=ops.Window(c.n_earlier_frames + 1, c.n_later_frames)), v)

    def convolution(c: Any, x: Data, prefix: str) -> Data:
        h = ops.rms_norm(x, prefix + "pre_layer_norm", c.norm_eps)
        kept, gate = ops.split(c.linear(h, prefix + "linear_start", "mixer", 2 * c.d_model), c.d_model, c.d_model)
        h = ops.convolve_earlier_frames(kept * ops.activate(gate, "sigmoid"), prefix + "depthwise_conv1d", c.d_conv)
        h = ops.activate(ops.rms_norm(c.limit(h), prefix + "conv_norm", c.norm_eps), c.activation)
        return c.linear(h, prefix + "linear_end", "mixer", c.d_model)

    def linear(c: Any, x: Data, name: str, component: str, width: ops.Width) -> Data:
        return ops.linear(x, name, component, width)

    def limit(c: Any, x: Data) -> Data:
        return ops.clip(x, *c.limits())

    def limits(c: Any) -> tuple[Any, Any]:
        return (-c.largest, c.largest) if isinstance(c.largest, int | float) else (c.largest, c.largest)


class Gemma3nAudio(SpeechConformer):
    """Two convolutions over frames and bands, then the conformer, of whose output every fourth frame is kept."""

    config_class = "Gemma3nAudioConfig"

    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf("conf_num_hidden_layers")
    n_heads: sizes.Positive = sizes.hf("conf_num_attention_heads")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    n_mels: sizes.Positive = sizes.hf("input_feat_size")
    n_channels: sizes.Positive = sizes.derived(read_pair("sscp_conv_channel_size", (128, 32), 0))
    n_channels_2: sizes.Positive = sizes.derived(read_pair("sscp_conv_channel_size", (128, 32), 1))
    d_kernel: sizes.Positive = sizes.derived(read_square("sscp_conv_kernel_size", 3, 0))
    d_kernel_2: sizes.Positive = sizes.derived(read_square("sscp_conv_kernel_size", 3, 1))
    n_bands: sizes.Positive = sizes.derived(count_bands("n_mels", "d_kernel", 0))
    n_bands_2: sizes.Positive = sizes.derived(count_bands("n_bands", "d_kernel_2", 1))
    n_earlier_frames: sizes.Natural = sizes.derived(lambda js, c: max(js.get("conf_attention_context_left", 13) - 1, 0))
    n_later_frames: sizes.Natural = sizes.hf("conf_attention_context_right")
    d_conv: sizes.Positive = sizes.hf("conf_conv_kernel_size")
    vocab_size: sizes.Positive = sizes.hf()

    norm_eps: ClassVar = sizes.setting("rms_norm_eps")
    conv_eps: ClassVar = sizes.setting("sscp_conv_group_norm_eps")
    stride: ClassVar = sizes.setting(default=read_square(STRIDES, 2, 0))
    stride_2: ClassVar = sizes.setting(default=read_square(STRIDES, 2, 1))
    largest: ClassVar = sizes.setting("gradient_clipping")
    score_cap: ClassVar = sizes.setting("conf_attention_logit_cap")
    residual_weight: ClassVar = sizes.setting("conf_residual_weight")
    reduction: ClassVar = sizes.setting("conf_reduction_factor")
    first_token: ClassVar = sizes.setting("vocab_offset")

    def sound(c) -> Data:
        return ops.given("log-mel frames", "frames", c.n_mels)

    def forward(c, frames: Data) -> Data:
        """Log-mel frames [frames, n_mels] to vectors [audio tokens, d_model]."""
        x = ops.reshape(frames, c.n_mels, 1)
        x = c.halve(x, "subsample_conv_projection.conv_0.", c.n_channels, c.d_kernel, c.n_bands, c.stride)
        x = c.halve(x, "subsample_conv_projection.conv_1.", c.n_channels_2, c.d_kernel_2, c.n_bands_2, c.stride_2)
        x = ops.reshape(x, c.n_bands_2 * c.n_channels_2)
        x = ops.linear(x, "subsample_conv_projection.input_proj_linear", "embedding", c.d_model)
        x = ops.layers(x, "conformer.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))
        return ops.block_starts(x, c.reduction)

    def halve(c, x: Data, prefix: str, channels: int, kernel: int, bands: int, stride: Any) -> Data:
        x = ops.convolve_later_frames(x, prefix + "conv", channels, kernel, bands, stride=stride)
        return ops.activate(ops.cumulative_norm(x, prefix + "norm", c.conv_eps), "relu")


NAMES = (  # of Gemma 4, by those of Gemma 3n
    (".conv_0.", ".layer0."),
    (".conv_1.", ".layer1."),
    ("conformer.", "layers."),
    (".ffw_layer_start.", ".feed_forward1."),
    (".ffw_layer_end.", ".feed_forward2."),
    (".attention.pre_attn_norm.", ".norm_pre_attn."),
    (".attention.post_norm.", ".norm_post_attn."),
    (".attention.attn.relative_position_embedding.pos_proj.", ".self_attn.relative_k_proj."),
    (".attention.attn.", ".self_attn."),
    (".attention.post.", ".self_attn.post."),
    ("}.norm.", "}.norm_out."),
)


def cap_of_scores(config: sizes.ConfigJson, c: Any) -> float:
    """Frames are attended to in chunks, where distances are right if a chunk is as long as what it sees before it."""
    chunk, before = config.get("attention_chunk_size", 12), config.get("attention_context_left", 13)
    if chunk + 1 != before or config.get("attention_context_right", 0):
        raise ValueError("the distances between frames are not described for other chunks than those of the release")
    return config.get("attention_logit_cap", 50.0)


class Gemma4Audio(SpeechConformer):
    """Gemma 3n's conformer after two convolutions that see as many frames on either side, without its reduction. Its
    matrices may stand between two clippings, whose bounds are stored.
    """

    config_class = "Gemma4AudioConfig"

    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    n_channels: sizes.Positive = sizes.derived(read_pair("subsampling_conv_channels", (128, 32), 0))
    n_channels_2: sizes.Positive = sizes.derived(read_pair("subsampling_conv_channels", (128, 32), 1))
    n_bands: sizes.Natural = sizes.derived(lambda js, c: c["n_channels"] // 4)  # which the convolutions leave
    n_earlier_frames: sizes.Natural = sizes.derived(lambda js, c: max(js.get("attention_context_left", 13) - 2, 0))
    n_later_frames: sizes.Natural = sizes.derived(lambda js, c: max(js.get("attention_context_right", 0) - 1, 0))
    d_conv: sizes.Positive = sizes.hf("conv_kernel_size")
    d_out: sizes.Positive = sizes.hf("output_proj_dims")
    clipped: sizes.Flag = sizes.hf("use_clipped_linears")

    norm_eps: ClassVar = sizes.setting("rms_norm_eps")
    activation = sizes.setting("hidden_act")
    largest: ClassVar = sizes.setting("gradient_clipping")
    score_cap: ClassVar = sizes.setting(default=cap_of_scores)
    residual_weight: ClassVar = sizes.setting("residual_weight")
    key_scale = KEY_SCALE

    def sound(c) -> Data:
        return ops.given("log-mel frames", "frames", 4 * c.n_bands)

    def forward(c, frames: Data) -> Data:
        """Log-mel frames [frames, bands] to vectors [audio tokens, d_out]."""
        x = ops.reshape(frames, 4 * c.n_bands, 1)
        x = c.halve(x, "subsample_conv_projection.conv_0.", c.n_channels, 2 * c.n_bands)
        x = c.halve(x, "subsample_conv_projection.conv_1.", c.n_channels_2, c.n_bands)
        x = ops.reshape(x, c.n_bands * c.n_channels_2)
        x = ops.linear(x, "subsample_conv_projection.input_proj_linear", "embedding", c.d_model)
        x = ops.layers(x, "conformer.{layer}.", [("layer", c.n_layers)], lambda kind, x: c.layer(x))
        return ops.linear(x, "output_proj", "other", c.d_out, bias=True)

    def halve(c, x: Data, prefix: str, channels: ops.Size, bands: ops.Size) -> Data:
        x = ops.convolve_spectrum(x, prefix + "conv", channels, 3, bands, stride=2)
        return ops.activate(ops.layer_norm(x, prefix + "norm", c.norm_eps, bias=False), "relu")

    def linear(c, x: Data, name: str, component: str, width: ops.Width) -> Data:
        return clipped_linear(x, name, component, width, clipped=c.clipped)


def clipped_linear(x: Data, name: str, component: str, width: ops.Width, *, clipped: bool) -> Data:
    """A matrix of Gemma 4's encoders; between two clippings, their bounds are stored where they are used."""
    if not clipped:
        return ops.linear(x, name + ".linear", component, width)
    x = ops.linear(ops.clip_to_stored(x, name + ".input_"), name + ".linear", component, width)
    return ops.clip_to_stored(x, name + ".output_")
