"""Phi-4-multimodal: Phi-3's layers, a SigLIP encoder for images and a Conformer for speech.

The Conformer has a second projector for speech that accompanies an image.
"""

from math import log2
from typing import Any

from paramcount.architectures.phi3 import Phi3, long_rope
from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Weight, activate, block, elementwise, given, layers, linear, lookup, norm
from paramcount.parts.attentions import relative
from paramcount.parts.classic import multi_head
from paramcount.parts.feed_forward import fused_gated_mlp
from paramcount.parts.siglip import SiglipVision
from paramcount.parts.vision import insert
from paramcount.sizes import ConfigJson, FieldValues, Flag, Indices, Natural, Positive, Sizes, derived, hf
from paramcount.sizes.conditions import one_mask, padding_in_table
from paramcount.sizes.derivations import d_model_per_head, equal_to
from paramcount.sizes.layer_types import check_no_types


class Phi4Vision(SiglipVision):
    """The vision tower: SigLIP's, always with its pooling head, whose vector nothing reads."""

    config_class = "Phi4MultimodalVisionConfig"

    unused_keys = ("crop_size",)
    conditions = ()

    n_patches: Natural = derived(lambda js, c: (js.get("image_size", 448) // c["patch_size"]) ** 2)
    pooling_head: Flag = derived(lambda js, c: True)


def halvings(js: ConfigJson) -> int:
    """How often the convolutions halve time and frequency."""
    reduction = js.get("time_reduction", 8)
    if type(reduction) is not int or reduction < 1 or reduction % 2:
        raise ParamcountError(
            f"= {describe_value(reduction)}", where="audio_config.time_reduction", expected="an even number"
        )
    return int(log2(reduction))


def bands_left(js: ConfigJson, c: FieldValues) -> int:
    n: int = c["n_bands"]
    for _ in range(halvings(js)):
        n = (n - 1) // 2 + 1
    return n


def one_width(js: ConfigJson, c: FieldValues) -> None:
    """Widths that the reference lets a config set, though its tower runs only where they are equal."""
    for key, fits in (
        ("ext_pw_out_channel", c["d_model"]),
        ("depthwise_separable_out_channel", c["d_model"]),
        ("downsample_rate", 1),
    ):
        if (found := js.get(key, 1 if key == "downsample_rate" else 1024)) != fits:
            raise ParamcountError(f"= {describe_value(found)}", where=f"audio_config.{key}", expected=f"{fits}")


class Phi4Audio(Sizes):
    """The speech tower: a Conformer, arXiv:2005.08100, behind convolutions that halve time and frequency."""

    config_class = "Phi4MultimodalAudioConfig"

    section = "audio_config"
    unused_keys = ("nemo_final_size",)
    conditions = (one_width,)

    d_model: Positive = hf()
    n_layers: Natural = hf("num_blocks")
    n_heads: Positive = hf()
    d_head: Positive = hf(absent=d_model_per_head)
    d_ff: Natural = hf()
    d_conv: Positive = hf("kernel_size")
    n_multiples: Positive = hf("depthwise_multiplier")  # of each channel in the convolution over time
    n_bands: Positive = hf("input_size")
    n_channels: Positive = hf("nemo_conv_channels")
    later_halvings: Indices = derived(
        lambda js, c: tuple(2 + 3 * i for i in range(halvings(js) - 1))
    )  # their places in the stack
    n_bands_left: Natural = derived(bands_left)
    n_distances: Positive = derived(
        lambda js, c: check_no_types(js, "bias_max_distance", 1000) * (1 if js.get("bias_symmetric", False) else 2)
    )


class Phi4Multimodal(Phi3):
    """Source: arXiv:2503.01743, section 2."""

    reference = "Phi4MultimodalForCausalLM"
    conditions = (padding_in_table(199999), one_mask(), long_rope)

    n_kv_heads: Positive = hf(null=equal_to("n_heads"))
    vision: Phi4Vision
    audio: Phi4Audio

    def forward(c, tokens: Data) -> Data:
        prefix = "model.embed_tokens_extend."
        image = block(c.vision.image(), prefix + "image_embed.img_processor.", c.vision.forward, part="vision")
        image = Data("hidden states", (image,), image.shape)
        image = block(image, prefix + "image_embed.", lambda x: project_image(c, x), part="projector")
        sound = block(
            given("mel bands", "frames", c.audio.n_bands),
            prefix + "audio_embed.encoder.",
            lambda x: audio(c.audio, x),
            part="audio",
        )
        ways = [
            block(sound, prefix + "audio_embed.", lambda x, way=way: project_sound(c, x, way), part="projector")
            for way in ("speech", "vision_speech")
        ]
        return c.decode(insert(c.embed(tokens), image, Data("select projector", tuple(ways), ways[0].shape)))


def project_image(c: Any, x: Data) -> Data:
    """Squares of four patches as one, with learned vectors at the ends of rows and between the image and its parts."""
    x = Data("pool", (x,), ("image tokens", c.vision.d_model))
    x = elementwise(x, "row separators", "sub_img_feature_extensor", "projector", 1, 1, 1, c.vision.d_model)
    x = elementwise(x, "image separators", "global_img_feature_extensor", "projector", 1, 1, c.vision.d_model)
    x = activate(linear(x, "img_projection_up", "projector", c.d_model, bias=True), "gelu")
    return linear(x, "img_projection_down", "projector", c.d_model, bias=True)


def project_sound(c: Any, x: Data, way: str) -> Data:
    x = activate(linear(x, f"up_proj_for_{way}", "projector", c.d_model, bias=True), "gelu")
    return linear(x, f"down_proj_for_{way}", "projector", c.d_model, bias=True)


def audio(c: Any, x: Data) -> Data:
    x = elementwise(x, "subtract", "encoder_embedding.global_mean", "norm", c.n_bands, role="buffer")
    x = elementwise(x, "scale", "encoder_embedding.global_invstd", "norm", c.n_bands, role="buffer")
    x = convolve(x, "embed.conv.0", (c.n_channels, 1, 3, 3), "frames", c.n_channels)
    for at in c.later_halvings:
        x = convolve(activate(x, "relu"), f"embed.conv.{at}", (c.n_channels, 1, 3, 3), "frames", c.n_channels)
        x = convolve(x, f"embed.conv.{at + 1}", (c.n_channels, c.n_channels, 1, 1), "frames", c.n_channels)
    x = Data("flatten", (activate(x, "relu"),), ("frames", c.n_channels * c.n_bands_left))
    x = linear(x, "embed.out", "embedding", c.d_model, bias=True)
    bias = lookup(
        Data("relative positions", (x,), ("distances",)),
        "relative_attention_bias_layer.bias_values.weight",
        "position",
        c.n_distances,
        c.n_heads,
    )
    return layers(
        x, "encoders.{layer}.", [("layer", c.n_layers)], lambda kind, x, bias: conformer(c, x, bias), reads=(bias,)
    )


def convolve(x: Data, name: str, weight: tuple[Any, ...], *shape: Any, component: str = "embedding") -> Data:
    return Data(
        "convolve",
        (x,),
        shape,
        (Weight(name + ".weight", component, weight), Weight(name + ".bias", component, weight[:1])),
    )


def conformer(c: Any, x: Data, bias: Data) -> Data:
    x = x + activate(mlp(c, x, "feed_forward_in."), "times ½")
    h = norm(x, "layer_norm_att", bias=True)
    x = x + multi_head(
        c,
        h,
        "self_attn.",
        ("q_proj", "k_proj", "v_proj", "o_proj"),
        cached=False,
        turn=lambda q, k, v: (relative(q, bias), k, v),
    )
    x = x + convolution(c, x)
    x = x + activate(mlp(c, x, "feed_forward_out."), "times ½")
    return norm(x, "layer_norm", bias=True)


def mlp(c: Any, x: Data, prefix: str) -> Data:
    return fused_gated_mlp(norm(x, prefix + "layer_norm", bias=True), prefix, "mlp", c.d_ff, bias=True, up_first=True)


def convolution(c: Any, x: Data) -> Data:
    """A gated matrix, a convolution over time channel by channel, two matrices."""
    d, wide = c.d_model, c.n_multiples * c.d_model
    h = convolve(
        norm(x, "conv.layer_norm", bias=True),
        "conv.glu.ext_pw_conv_1d",
        (2 * d, d, 1),
        "frames",
        2 * d,
        component="mixer",
    )
    kept, gate = (Data("split", (h,), ("frames", d)) for _ in range(2))
    kept, gate = (
        elementwise(kept, "shift", "conv.glu.b1", "mixer", 1, d, 1),
        elementwise(gate, "shift", "conv.glu.b2", "mixer", 1, d, 1),
    )
    h = convolve(
        kept * activate(gate, "silu"),
        "conv.dw_sep_conv_1d.dw_conv",
        (wide, 1, c.d_conv),
        "frames",
        wide,
        component="mixer",
    )
    h = activate(convolve(h, "conv.dw_sep_conv_1d.pw_conv", (d, wide, 1), "frames", d, component="mixer"), "silu")
    return convolve(h, "conv.ext_pw_conv_1d", (d, d, 1), "frames", d, component="mixer")
