"""Encoders of the samples of a sound: convolutions that leave one of many frames, then layers of a transformer.

Source: arXiv:2006.11477, section 2; modeling_wav2vec2.py of the reference.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.errors import FieldName, ParamcountError, describe_value
from paramcount.flow import Data

# Keys that heads alone read, and one that the reference writes and does not read.
HEAD_KEYS = (
    "classifier_proj_size", "codevector_dim", "num_codevector_groups", "num_codevectors_per_group",
    "num_feat_extract_layers", "num_negatives", "output_hidden_size", "proj_codevector_dim", "tdnn_dim",
    "tdnn_kernel", "xvector_output_dim",
)  # fmt: skip
LAYER_EPS = 1e-5  # of torch.nn.LayerNorm and GroupNorm: no config.json states it


def masks_frames(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    """Whether a learned vector takes the place of frames that training hides."""
    return bool(js.get("mask_time_prob", 0.05) > 0 or js.get("mask_feature_prob", 0.0) > 0)


def norms_every_convolution(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    return bool(js.get("feat_extract_norm", "group") == "layer")


def channels_per_group(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """Of the convolution over positions.

    Raises: ParamcountError if the groups do not fill d_model.
    """
    if c["d_model"] % c["n_position_groups"]:
        problem = f"= {c['n_position_groups']} does not divide " + FieldName("d_model") + f" = {c['d_model']}"
        raise ParamcountError(problem, where=FieldName("n_position_groups"), expected="a divisor")
    return int(c["d_model"] // c["n_position_groups"])


KNOWN_NORMS = sizes.one_of("feat_extract_norm", ("group", "layer"), "group")


class WaveEncoder(parts.Headed):
    """A subclass adds its `prefix`, `norm_kind`, `place` and `layer`, and the sizes that these read."""

    prefix: ClassVar[str]
    linear_heads: ClassVar[tuple[str, ...]] = ("lm_head.weight",)
    linear_routers: ClassVar[tuple[str, ...]] = ("lm_head.weight",)
    unused_keys: ClassVar[tuple[str, ...]] = HEAD_KEYS

    vocab_size: sizes.Positive = sizes.hf()
    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    channels: sizes.Widths = sizes.hf("conv_dim")
    kernels: sizes.Widths = sizes.hf("conv_kernel")
    strides: sizes.Widths = sizes.hf("conv_stride")
    conv_bias: sizes.Flag = sizes.hf("conv_bias")
    masks_frames: sizes.Flag = sizes.derived(masks_frames)

    activation: ClassVar = sizes.setting("hidden_act", usual="gelu")
    conv_activation: ClassVar = sizes.setting("feat_extract_activation", usual="gelu")
    norm_eps: ClassVar = sizes.setting("layer_norm_eps", usual=1e-5)

    def forward(c, tokens: Data, head: bool = True) -> Data:
        """Samples to scores of the letters that each frame may stand for, or without `head` to states."""

        def build(samples: Data, *masked: Data) -> Data:
            x = ops.block(samples, c.prefix, c.encode, reads=masked)
            return c.head(x) if head else x

        return ops.block(ops.given("samples", "frames", 1), "", build, reads=c.list_masks(), part="encoder")

    def list_masks(c) -> tuple[Data, ...]:
        """Which frames are hidden, if training hides any."""
        return (ops.given("masked frames", "frames", default=0),) if c.masks_frames else ()

    def head(c, x: Data) -> Data:
        return ops.linear(x, "lm_head", "lm_head", c.vocab_size, bias=True)

    def encode(c, samples: Data, *masked: Data) -> Data:
        """Samples [frames, 1] to states [frames, d_model], and beside them what the layers start from."""
        features = c.norm_features(c.convolve(samples))
        x = c.project(features)
        for mask in masked:
            x = ops.insert_learned(x, mask, "masked_spec_embed", 1)
        return ops.bundle(c.adapt(ops.block(x, "encoder.", c.transform)), features)

    def convolve(c, x: Data) -> Data:
        for i, channels in enumerate(c.channels):
            name = f"feature_extractor.conv_layers.{i}."
            stride, zeros = c.strides[i], ops.Zeros(0)
            x = ops.convolve_frames(
                x, name + "conv", channels, c.kernels[i], stride=stride, padding=zeros, bias=c.conv_bias
            )
            x = ops.activate(c.norm_convolved(x, name + "layer_norm", i), c.conv_activation)
        return x

    def norm_convolved(c, x: Data, name: str, i: int) -> Data:
        """The output of the i-th convolution, normed."""
        return ops.layer_norm(x, name, LAYER_EPS)

    def norm_features(c, x: Data) -> Data:
        return c.norm(x, "feature_projection.layer_norm")

    def project(c, x: Data) -> Data:
        return ops.linear(x, "feature_projection.projection", "mixer", c.d_model, bias=True)

    def transform(c, x: Data) -> Data:
        """Projected features to states: positions, layers, and a norm before or after them."""
        x = x + c.place(x)
        return c.run_layers(c.norm(x, "layer_norm"))

    def run_layers(c, x: Data) -> Data:
        shared = c.share(x)
        return ops.layers(x, "layers.{layer}.", [("layer", c.n_layers)], lambda kind, *x: c.layer(*x), reads=shared)

    def share(c, x: Data) -> tuple[Data, ...]:
        """What every layer reads besides x."""
        return ()

    def place(c, x: Data) -> Data:
        """Positions, which a convolution makes of what stands around each frame."""
        raise NotImplementedError

    def layer(c, x: Data, *shared: Data) -> Data:
        """A norm behind attention and one behind the MLP."""
        x = c.norm(x + c.attend(x, *shared), "layer_norm")
        return c.norm(x + c.feed_forward(x), "final_layer_norm")

    def attend(c, x: Data, *shared: Data) -> Data:
        return parts.multi_head(c, x, "attention.", mix=ops.attend)

    def feed_forward(c, x: Data) -> Data:
        names = ("feed_forward.intermediate_dense", "feed_forward.output_dense")
        return parts.plain_mlp(x, names, "mlp", c.d_ff, activation=c.activation, bias=True)

    def adapt(c, x: Data) -> Data:
        """What stands behind the layers: nothing."""
        return x

    def norm(c, x: Data, name: str) -> Data:
        return ops.layer_norm(x, name, c.norm_eps)

    def check(c) -> None:
        sizes.check_heads_fill(c)
        for field in ("kernels", "strides"):
            if len(found := getattr(c, field)) != len(c.channels):
                problem = f"has {len(found)} entries for {len(c.channels)} convolutions"
                raise ParamcountError(problem, where=FieldName(field), expected=f"{len(c.channels)} entries")


class PlacedByConvolution(WaveEncoder):
    """One convolution with weight norm makes the positions; the first feature convolution has a group norm, or each a
    layer norm.
    """

    conditions: ClassVar[tuple[sizes.Condition, ...]] = (KNOWN_NORMS,)

    norms_convolutions: sizes.Flag = sizes.derived(norms_every_convolution)
    d_position_conv: sizes.Positive = sizes.hf("num_conv_pos_embeddings")
    n_position_groups: sizes.Positive = sizes.hf("num_conv_pos_embedding_groups")
    d_position_group: sizes.Positive = sizes.derived(channels_per_group)

    def norm_convolved(c, x: Data, name: str, i: int) -> Data:
        if c.norms_convolutions:
            return super().norm_convolved(x, name, i)
        return x if i else ops.group_norm(x, name, x.shape[-1], LAYER_EPS)

    def place(c, x: Data) -> Data:
        name, size, group = "pos_conv_embed.conv", c.d_position_conv, c.d_position_group
        h = ops.convolve_tokens(c.norm_places(x), name, c.d_model, size, group=group, component="position")
        return ops.activate(c.norm_kernel(h), c.conv_activation)

    def norm_places(c, x: Data) -> Data:
        """What the convolution reads: x itself."""
        return x

    def norm_kernel(c, x: Data) -> Data:
        return ops.normalise_kernel_by_place(x)


class PreOrPostNorm(PlacedByConvolution):
    """With a flag for norms before attention and MLP, the last one behind the layers."""

    pre_norm: sizes.Flag = sizes.hf("do_stable_layer_norm")

    def transform(c, x: Data) -> Data:
        if not c.pre_norm:
            return super().transform(x)
        return c.norm(c.run_layers(x + c.place(x)), "layer_norm")

    def layer(c, x: Data, *shared: Data) -> Data:
        if not c.pre_norm:
            return super().layer(x, *shared)
        x = x + c.attend(c.norm(x, "layer_norm"), *shared)
        return x + c.feed_forward(c.norm(x, "final_layer_norm"))


class PlacedByLayers(WaveEncoder):
    """Several convolutions in a row make the positions, each with a norm that learns nothing."""

    d_position_conv: sizes.Positive = sizes.hf("conv_pos_kernel_size")
    n_position_layers: sizes.Natural = sizes.hf("num_conv_pos_embeddings")
    n_position_groups: sizes.Positive = sizes.hf("num_conv_pos_embedding_groups")
    d_position_group: sizes.Positive = sizes.derived(channels_per_group)

    def place(c, x: Data) -> Data:
        kinds = [("position layer", c.n_position_layers)]
        return ops.layers(x, "pos_conv_embed.layers.{layer}.", kinds, lambda kind, x: c.convolve_places(x))

    def convolve_places(c, x: Data) -> Data:
        size, group = c.d_position_conv, c.d_position_group
        x = ops.convolve_tokens(x, "conv", c.d_model, size, group=group, component="position")
        return ops.activate(ops.plain_norm(x, "layer", LAYER_EPS), c.conv_activation)


class AdaptedWaves(WaveEncoder):
    """With convolutions behind the layers that leave one of several states, if a flag says so."""

    has_adapter: sizes.Flag = sizes.hf("add_adapter")
    n_adapter_layers: sizes.Natural = sizes.hf("num_adapter_layers")
    d_adapter_conv: sizes.Positive = sizes.hf("adapter_kernel_size")
    adapter_stride: sizes.Positive = sizes.hf("adapter_stride")
    d_adapted: sizes.Positive = sizes.derived(lambda js, c: js.get("output_hidden_size") or c["d_model"])
    adapter_projected: sizes.Flag = sizes.derived(lambda js, c: c["d_adapted"] != c["d_model"])

    def adapt(c, x: Data) -> Data:
        return ops.block(x, "adapter.", c.leave_fewer) if c.has_adapter else x

    def leave_fewer(c, x: Data) -> Data:
        if c.adapter_projected:
            x = ops.layer_norm(ops.linear(x, "proj", "mixer", c.d_adapted, bias=True), "proj_layer_norm", LAYER_EPS)
        kinds = [("adapter layer", c.n_adapter_layers)]
        return ops.layers(x, "layers.{layer}.", kinds, lambda kind, x: c.adapter_layer(x))

    def adapter_layer(c, x: Data) -> Data:
        """Source: arXiv:1612.08083."""
        width, stride, d = c.d_adapter_conv, c.adapter_stride, c.d_adapted
        h = ops.convolve_frames(x, "conv", 2 * d, width, stride=stride, padding=ops.Zeros(1))
        value, gate = ops.split(h, d, d)
        return value * ops.activate(gate, "sigmoid")

    def check(c) -> None:
        super().check()
        if c.adapter_projected != (c.d_adapted != c.d_model):
            raise ParamcountError("contradicts the sizes", where="adapter_projected", expected="the other value")


# ---- heads

PROJECTED: dict[str, Any] = {
    "d_projected": (sizes.Positive, sizes.hf("classifier_proj_size", absent=256)),
    "weighted_layers": (sizes.Flag, sizes.hf("use_weighted_layer_sum", absent=False)),
}
WEIGHTED: dict[str, Any] = {"weighted_layers": PROJECTED["weighted_layers"]}
SPEAKERS: dict[str, Any] = WEIGHTED | {
    "tdnn_channels": (sizes.Widths, sizes.hf("tdnn_dim", absent=(512, 512, 512, 512, 1500))),
    "tdnn_kernels": (sizes.Widths, sizes.hf("tdnn_kernel", absent=(5, 3, 3, 1, 1))),
    "tdnn_dilations": (sizes.Widths, sizes.hf("tdnn_dilation", absent=(1, 2, 3, 1, 1))),
    "d_speaker": (sizes.Positive, sizes.hf("xvector_output_dim", absent=512)),
}


def without_adapter(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference puts these heads on no adapter."""
    if js.get("add_adapter"):
        raise ParamcountError("= true", where="add_adapter", expected="false, for this class")


def adapter_keeps_size(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference projects states of the hidden size, and runs only if the adapter's output has it too."""
    size = js.get("output_hidden_size")
    if js.get("add_adapter") and size not in (None, c["d_model"]):
        expected = f"hidden_size = {c['d_model']}, for this class"
        raise ParamcountError(f"= {describe_value(size)}", where="output_hidden_size", expected=expected)


def one_of_each_per_step(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The convolutions that hear a speaker have a width and a dilation each."""
    for field in ("tdnn_kernels", "tdnn_dilations"):
        if len(c[field]) < len(c["tdnn_channels"]):
            found = f"has {len(c[field])} entries for {len(c['tdnn_channels'])} convolutions"
            raise ParamcountError(found, where=FieldName(field), expected=f"{len(c['tdnn_channels'])} entries")


def weigh_layers(c: Any, x: Data) -> Data:
    """The last states, or the weighted sum of those of all layers."""
    return ops.sum_of_layers(x, "layer_weights", c.n_layers + 1) if c.weighted_layers else x


def classify_sound(c: Any, x: Data) -> Data:
    h = ops.linear(weigh_layers(c, x), "projector", "other", c.d_projected, bias=True)
    return ops.linear(ops.pool_text(h, "mean"), "classifier", "other", c.n_labels, bias=True)


def classify_frames(c: Any, x: Data) -> Data:
    return ops.linear(weigh_layers(c, x), "classifier", "other", c.n_labels, bias=True)


def recognise_speaker(c: Any, x: Data) -> Data:
    """An x-vector, and how similar it is to each speaker's. Source: the x-vectors of Snyder et al., ICASSP 2018."""
    x = ops.linear(weigh_layers(c, x), "projector", "other", c.tdnn_channels[0], bias=True)
    for i, channels in enumerate(c.tdnn_channels):
        width, dilation = c.tdnn_kernels[i], c.tdnn_dilations[i]
        x = ops.activate(ops.convolve_flat(x, f"tdnn.{i}.kernel", channels, width, dilation=dilation), "relu")
    h = ops.join(ops.pool_text(x, "mean"), ops.sample_deviation(x))
    h = ops.linear(h, "feature_extractor", "other", c.d_speaker, bias=True)
    h = ops.linear(h, "classifier", "other", c.d_speaker, bias=True)
    return ops.bundle(h, ops.similarities(h, "objective.weight", c.n_labels))


SOUND_CLASS = parts.TaskHead(classify_sound, parts.tasks.labels() | PROJECTED, (without_adapter,))
FRAME_CLASS = parts.TaskHead(classify_frames, parts.tasks.labels() | WEIGHTED, (without_adapter,))
SPEAKER = parts.TaskHead(recognise_speaker, parts.tasks.labels() | SPEAKERS, (adapter_keeps_size, one_of_each_per_step))
SOUND = {"ForSequenceClassification": SOUND_CLASS}
SOUND_HEADS = SOUND | {"ForAudioFrameClassification": FRAME_CLASS, "ForXVector": SPEAKER}


def read_code_size(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """Of the code of one group.

    Raises: ParamcountError if the groups do not fill codevector_dim.
    """
    d: int = js.get("codevector_dim", 256)
    if type(d) is not int or d < 1 or d % c["n_codebooks"]:
        expected = f"a multiple of num_codevector_groups = {c['n_codebooks']}"
        raise sizes.make_value_error(d, "codevector_dim", expected)
    return d // int(c["n_codebooks"])


CODES: dict[str, Any] = {
    "n_codebooks": (sizes.Positive, sizes.hf("num_codevector_groups", absent=2)),
    "n_codes": (sizes.Positive, sizes.hf("num_codevectors_per_group", absent=320)),
    "d_code": (sizes.Positive, sizes.derived(read_code_size)),
    "d_compared": (sizes.Positive, sizes.hf("proj_codevector_dim", absent=256)),
}


def quantise(c: Any, x: Data) -> Data:
    """The best code of each codebook for each frame, side by side. Source: arXiv:2006.11477, section 2."""
    scores = ops.linear(x, "quantizer.weight_proj", "other", c.n_codebooks * c.n_codes, bias=True)
    return ops.best_codes(scores, "quantizer.codevectors", c.n_codebooks, c.d_code)


def compare_with_codes(c: Any, x: Data) -> Data:
    """States and the codes of what the layers started from, as vectors of one size."""
    codes = quantise(c, ops.second_value(x, c.channels[-1], "frames"))
    states = ops.linear(x, "project_hid", "other", c.d_compared, bias=True)
    return ops.bundle(states, ops.linear(codes, "project_q", "other", c.d_compared, bias=True))


def states_are_as_wide(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The matrix behind them reads states as wide as the layers'."""
    if js.get("add_adapter") and c["d_adapted"] != c["d_model"]:
        raise sizes.make_value_error(c["d_adapted"], "output_hidden_size", f"{c['d_model']}, for this class")
