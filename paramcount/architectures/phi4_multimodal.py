"""Phi-4-multimodal: Phi-3's layers, a SigLIP encoder for images and a Conformer for speech.

The Conformer has a second projector for speech that accompanies an image.
"""

from math import log2
from typing import Any

from paramcount.architectures.phi3 import Phi3, long_rope
from paramcount.declare import Data, ops, parts, sizes


class Phi4Vision(parts.SiglipVision):
    """The vision tower: SigLIP's, always with its pooling head, whose vector nothing reads."""

    config_class = "Phi4MultimodalVisionConfig"

    unused_keys = ("crop_size",)
    conditions = ()

    n_patches: sizes.Natural = sizes.derived(lambda js, c: (js.get("image_size", 448) // c["patch_size"]) ** 2)
    pooling_head: sizes.Flag = sizes.derived(lambda js, c: True)


def halvings(js: sizes.ConfigJson) -> int:
    """How often the convolutions halve time and frequency."""
    reduction = js.get("time_reduction", 8)
    if type(reduction) is not int or reduction < 1 or reduction % 2:
        raise sizes.make_value_error(reduction, "audio_config.time_reduction", "an even number")
    return int(log2(reduction))


def bands_left(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    n: int = c["n_bands"]
    for _ in range(halvings(js)):
        n = (n - 1) // 2 + 1
    return n


def one_width(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Widths that the reference lets a config set, though its tower runs only where they are equal."""
    for key, fits in (
        ("ext_pw_out_channel", c["d_model"]),
        ("depthwise_separable_out_channel", c["d_model"]),
        ("downsample_rate", 1),
    ):
        if (found := js.get(key, 1 if key == "downsample_rate" else 1024)) != fits:
            raise sizes.make_value_error(found, f"audio_config.{key}", f"{fits}")


class Phi4Audio(sizes.Sizes):
    """The speech tower: a Conformer, arXiv:2005.08100, behind convolutions that halve time and frequency."""

    config_class = "Phi4MultimodalAudioConfig"

    section = "audio_config"
    unused_keys = ("nemo_final_size",)
    conditions = (one_width,)

    d_model: sizes.Positive = sizes.hf()
    n_layers: sizes.Natural = sizes.hf("num_blocks")
    n_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf()
    d_conv: sizes.Positive = sizes.hf("kernel_size")
    n_multiples: sizes.Positive = sizes.hf("depthwise_multiplier")  # of each channel in the convolution over time
    n_bands: sizes.Positive = sizes.hf("input_size")
    n_channels: sizes.Positive = sizes.hf("nemo_conv_channels")
    later_halvings: sizes.Indices = sizes.derived(
        lambda js, c: tuple(2 + 3 * i for i in range(halvings(js) - 1))
    )  # their places in the stack
    n_bands_left: sizes.Natural = sizes.derived(bands_left)
    n_distances: sizes.Positive = sizes.derived(
        lambda js, c: (
            sizes.check_no_types(js, "bias_max_distance", 1000) * (1 if js.get("bias_symmetric", False) else 2)
        )
    )


class Phi4Multimodal(Phi3):
    """Source: arXiv:2503.01743, section 2."""

    reference = "Phi4MultimodalForCausalLM"
    is_section_type = False
    conditions = (sizes.padding_in_table(199999), sizes.one_mask(), long_rope)

    n_kv_heads: sizes.Positive = sizes.hf(null=sizes.equal_to("n_heads"))
    vision: Phi4Vision
    audio: Phi4Audio

    def forward(c, tokens: Data) -> Data:
        prefix = "model.embed_tokens_extend."
        image = ops.block(c.vision.image(), prefix + "image_embed.img_processor.", c.vision.forward, part="vision")
        image = Data("hidden states", (image,), image.shape)
        image = ops.block(image, prefix + "image_embed.", lambda x: project_image(c, x), part="projector")
        sound = ops.block(
            ops.given("mel bands", "frames", c.audio.n_bands),
            prefix + "audio_embed.encoder.",
            lambda x: audio(c.audio, x),
            part="audio",
        )
        ways = [
            ops.block(sound, prefix + "audio_embed.", lambda x, way=way: project_sound(c, x, way), part="projector")
            for way in ("speech", "vision_speech")
        ]
        return c.decode(parts.insert(c.embed(tokens), image, Data("select projector", tuple(ways), ways[0].shape)))


def project_image(c: Any, x: Data) -> Data:
    """Squares of four patches as one, with learned vectors at the ends of rows and between the image and its parts."""
    x = Data("pool", (x,), ("image tokens", c.vision.d_model))
    x = ops.elementwise(x, "row separators", "sub_img_feature_extensor", "projector", 1, 1, 1, c.vision.d_model)
    x = ops.elementwise(x, "image separators", "global_img_feature_extensor", "projector", 1, 1, c.vision.d_model)
    x = ops.activate(ops.linear(x, "img_projection_up", "projector", c.d_model, bias=True), "gelu")
    return ops.linear(x, "img_projection_down", "projector", c.d_model, bias=True)


def project_sound(c: Any, x: Data, way: str) -> Data:
    x = ops.activate(ops.linear(x, f"up_proj_for_{way}", "projector", c.d_model, bias=True), "gelu")
    return ops.linear(x, f"down_proj_for_{way}", "projector", c.d_model, bias=True)


def audio(c: Any, x: Data) -> Data:
    x = ops.elementwise(x, "subtract", "encoder_embedding.global_mean", "norm", c.n_bands, role="buffer")
    x = ops.elementwise(x, "scale", "encoder_embedding.global_invstd", "norm", c.n_bands, role="buffer")
    x = convolve(x, "embed.conv.0", (c.n_channels, 1, 3, 3), "frames", c.n_channels)
    for at in c.later_halvings:
        x = convolve(ops.activate(x, "relu"), f"embed.conv.{at}", (c.n_channels, 1, 3, 3), "frames", c.n_channels)
        x = convolve(x, f"embed.conv.{at + 1}", (c.n_channels, c.n_channels, 1, 1), "frames", c.n_channels)
    x = Data("flatten", (ops.activate(x, "relu"),), ("frames", c.n_channels * c.n_bands_left))
    x = ops.linear(x, "embed.out", "embedding", c.d_model, bias=True)
    bias = ops.lookup(
        Data("relative positions", (x,), ("distances",)),
        "relative_attention_bias_layer.bias_values.weight",
        "position",
        c.n_distances,
        c.n_heads,
    )
    return ops.layers(
        x, "encoders.{layer}.", [("layer", c.n_layers)], lambda kind, x, bias: conformer(c, x, bias), reads=(bias,)
    )


def convolve(x: Data, name: str, weight: tuple[Any, ...], *shape: Any, component: str = "embedding") -> Data:
    return Data(
        "convolve",
        (x,),
        shape,
        (ops.Weight(name + ".weight", component, weight), ops.Weight(name + ".bias", component, weight[:1])),
    )


def conformer(c: Any, x: Data, bias: Data) -> Data:
    x = x + ops.activate(mlp(c, x, "feed_forward_in."), "times ½")
    h = ops.norm(x, "layer_norm_att", bias=True)
    x = x + parts.multi_head(
        c,
        h,
        "self_attn.",
        ("q_proj", "k_proj", "v_proj", "o_proj"),
        turn=lambda q, k, v: (parts.relative(q, bias), k, v),
    )
    x = x + convolution(c, x)
    x = x + ops.activate(mlp(c, x, "feed_forward_out."), "times ½")
    return ops.norm(x, "layer_norm", bias=True)


def mlp(c: Any, x: Data, prefix: str) -> Data:
    return parts.fused_gated_mlp(
        ops.norm(x, prefix + "layer_norm", bias=True), prefix, "mlp", c.d_ff, bias=True, up_first=True
    )


def convolution(c: Any, x: Data) -> Data:
    """A gated matrix, a convolution over time channel by channel, two matrices."""
    d, wide = c.d_model, c.n_multiples * c.d_model
    h = convolve(
        ops.norm(x, "conv.layer_norm", bias=True),
        "conv.glu.ext_pw_conv_1d",
        (2 * d, d, 1),
        "frames",
        2 * d,
        component="mixer",
    )
    kept, gate = (Data("split", (h,), ("frames", d)) for _ in range(2))
    kept, gate = (
        ops.elementwise(kept, "shift", "conv.glu.b1", "mixer", 1, d, 1),
        ops.elementwise(gate, "shift", "conv.glu.b2", "mixer", 1, d, 1),
    )
    h = convolve(
        kept * ops.activate(gate, "silu"),
        "conv.dw_sep_conv_1d.dw_conv",
        (wide, 1, c.d_conv),
        "frames",
        wide,
        component="mixer",
    )
    h = ops.activate(convolve(h, "conv.dw_sep_conv_1d.pw_conv", (d, wide, 1), "frames", d, component="mixer"), "silu")
    return convolve(h, "conv.ext_pw_conv_1d", (d, d, 1), "frames", d, component="mixer")
