"""Gemma 4 with its vision and audio encoders, either of which a model may lack.

Vision has positions in two dimensions; audio has convolutions between attention and MLPs. Gemma 4 12B has neither
encoder: pixels and sound go through one matrix each.
"""

from collections.abc import Callable, Mapping
from typing import Any

from paramcount.architectures.gemma4_text import Gemma4Text, Gemma4UnifiedText
from paramcount.errors import FieldName, ParamcountError, describe_value
from paramcount.flow import (
    Data,
    Size,
    Unknown,
    Weight,
    Width,
    activate,
    attend,
    block,
    elementwise,
    given,
    layers,
    linear,
    norm,
    plain_norm,
    rope,
    split,
)
from paramcount.parts.decoders import sandwich
from paramcount.sizes import ConfigJson, FieldValues, Flag, Natural, Positive, Sizes, d_model_per_head, derived, hf
from paramcount.sizes.conditions import not_null
from paramcount.sizes.rules import check_heads_fill


class Gemma4Vision(Sizes):
    """The vision tower: patches with a place across and a place down."""

    section = "vision_config"
    unused_keys = ("pooling_kernel_size",)

    d_model: Positive = hf(absent=768)
    n_layers: Positive = hf(absent=16)
    n_heads: Positive = hf(absent=12)
    n_kv_heads: Positive = hf(absent=12)
    d_head: Positive = hf(absent=64)
    d_ff: Positive = hf(absent=3072)
    patch_size: Positive = hf("patch_size", absent=16)
    n_places: Positive = hf("position_embedding_size", absent=10240)
    clipped: Flag = hf("use_clipped_linears", absent=False)
    standardised: Flag = hf("standardize", absent=False)

    def check(c) -> None:
        if c.d_head % 4:
            raise ParamcountError(
                f"= {c.d_head} cannot be split into pairs for 2D rotary embedding",
                where=FieldName("d_head"),
                expected="a multiple of 4",
            )


def conv_channels(at: int) -> Callable[[Mapping[str, Any], Mapping[str, Any]], int]:
    def channels(js: ConfigJson, c: FieldValues) -> int:
        n: int = js.get("subsampling_conv_channels", (128, 32))[at]
        return n

    return channels


class Gemma4Audio(Sizes):
    """The audio tower: a Universal Speech Model, arXiv:2303.01037."""

    section = "audio_config"

    d_model: Positive = hf(absent=1024)
    n_layers: Positive = hf(absent=12)
    n_heads: Positive = hf(absent=8)
    d_head: Positive = derived(d_model_per_head)
    n_channels: Positive = derived(conv_channels(0))
    n_channels_2: Positive = derived(conv_channels(1))
    d_subsampled: Natural = derived(lambda js, c: c["n_channels"] // 4 * c["n_channels_2"])
    d_conv: Positive = hf("conv_kernel_size", absent=5)
    d_out: Positive = hf("output_proj_dims", absent=1536)
    clipped: Flag = hf("use_clipped_linears", absent=True)

    def check(c) -> None:
        check_heads_fill(c)


class Gemma4TextOf(Gemma4Text):
    """The language model of a config that has towers too."""

    section = "text_config"


class Gemma4(Gemma4Text):
    """Source: modeling_gemma4.py of the reference."""

    reference = "Gemma4ForConditionalGeneration"
    base_model = "Gemma4Model"
    prefix = "model.language_model."
    section = "text_config"

    tie_word_embeddings: Flag = hf("/tie_word_embeddings", absent=True)
    vision: Gemma4Vision | None
    audio: Gemma4Audio | None

    def forward(c, tokens: Data) -> Data:
        others = []
        if c.vision:
            pixels = given("pixels", "patches", 3 * c.vision.patch_size * c.vision.patch_size)
            image = block(pixels, "model.vision_tower.", lambda x: vision(c.vision, x), part="vision")
            others.append(block(image, "model.embed_vision.", lambda x: project(c, x), part="projector"))
        if c.audio:
            frames = given("mel bands", "frames", 1, c.audio.n_channels)
            sound = block(frames, "model.audio_tower.", lambda x: audio(c.audio, x), part="audio")
            others.append(block(sound, "model.embed_audio.", lambda x: project(c, x), part="projector"))
        return c.read(tokens, *others)


def project(c: Any, x: Data) -> Data:
    return linear(plain_norm(x, "rms", Unknown("norm_eps")), "embedding_projection", "projector", c.d_model)


def clipped_linear(c: Any, x: Data, name: str, component: str, width: Width) -> Data:
    """A matrix between two clippings, whose bounds are stored where they are used."""
    if not c.clipped:
        return linear(x, name + ".linear", component, width)
    x = linear(clip(x, name + ".input_"), name + ".linear", component, width)
    return clip(x, name + ".output_")


def clip(x: Data, name: str) -> Data:
    return Data("clip", (x,), x.shape, tuple(Weight(name + end, "other", (), role="buffer") for end in ("min", "max")))


def vision(c: Any, pixels: Data) -> Data:
    x = linear(pixels, "patch_embedder.input_proj", "embedding", c.d_model)
    x = elementwise(x, "positions", "patch_embedder.position_embedding_table", "position", 2, c.n_places, c.d_model)
    x = layers(x, "encoder.layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: vision_layer(c, x))
    x = activate(Data("pool", (x,), ("image tokens", c.d_model)), "times √d_model")
    if c.standardised:
        x = elementwise(
            elementwise(x, "subtract", "std_bias", "other", c.d_model, role="buffer"),
            "scale",
            "std_scale",
            "other",
            c.d_model,
            role="buffer",
        )
    return x


def vision_layer(c: Any, x: Data) -> Data:
    return sandwich(x, lambda h: vision_attention(c, h, "self_attn."), lambda h: vision_mlp(c, h, "mlp."))


def vision_attention(c: Any, x: Data, prefix: str) -> Data:
    q = clipped_linear(c, x, prefix + "q_proj", "qkv.q", (c.n_heads, c.d_head))
    k = clipped_linear(c, x, prefix + "k_proj", "qkv.k", (c.n_kv_heads, c.d_head))
    v = clipped_linear(c, x, prefix + "v_proj", "qkv.v", (c.n_kv_heads, c.d_head))
    a = attend(
        rope(norm(q, prefix + "q_norm")),
        rope(norm(k, prefix + "k_norm")),
        plain_norm(v, "rms", Unknown("norm_eps")),
        cached=(),
    )
    return clipped_linear(c, a, prefix + "o_proj", "output_projection", c.d_model)


def vision_mlp(c: Any, x: Data, prefix: str) -> Data:
    gate = activate(clipped_linear(c, x, prefix + "gate_proj", "mlp.gate", c.d_ff), "gelu")
    return clipped_linear(
        c,
        gate * clipped_linear(c, x, prefix + "up_proj", "mlp.up", c.d_ff),
        prefix + "down_proj",
        "mlp.down",
        c.d_model,
    )


def audio(c: Any, frames: Data) -> Data:
    x = halved(c, frames, "subsample_conv_projection.layer0.", c.n_channels)
    x = halved(c, x, "subsample_conv_projection.layer1.", c.n_channels_2)
    x = Data("flatten", (x,), ("frames", c.d_subsampled))
    x = linear(x, "subsample_conv_projection.input_proj_linear", "embedding", c.d_model)
    x = layers(x, "layers.{layer}.", [("layer", c.n_layers)], lambda kind, x: audio_layer(c, x))
    return linear(x, "output_proj", "other", c.d_out, bias=True)


def halved(c: Any, x: Data, prefix: str, channels: Size) -> Data:
    """A convolution over time and frequency that keeps every second place of both, then a norm over its channels."""
    weight = Weight(prefix + "conv.weight", "embedding", (channels, x.shape[1], 3, 3))
    y = Data("convolve", (x,), ("frames", channels), (weight,))
    return activate(norm(y, prefix + "norm"), "relu")


def audio_layer(c: Any, x: Data) -> Data:
    x = audio_mlp(c, x, "feed_forward1.")
    x = x + norm(audio_attention(c, norm(x, "norm_pre_attn"), "self_attn."), "norm_post_attn")
    x = light_convolution(c, x, "lconv1d.")
    return norm(audio_mlp(c, x, "feed_forward2."), "norm_out")


def audio_mlp(c: Any, x: Data, prefix: str) -> Data:
    """Half of what it finds is added."""
    h = activate(
        clipped_linear(c, norm(x, prefix + "pre_layer_norm"), prefix + "ffw_layer_1", "mlp.up", 4 * c.d_model), "silu"
    )
    h = norm(clipped_linear(c, h, prefix + "ffw_layer_2", "mlp.down", c.d_model), prefix + "post_layer_norm")
    return x + activate(h, "times ½")


def audio_attention(c: Any, x: Data, prefix: str) -> Data:
    """Local attention with relative positions. Queries have a learned scale per dimension; distances are sinusoids."""
    heads = (c.n_heads, c.d_head)
    q = clipped_linear(c, x, prefix + "q_proj", "qkv.q", heads)
    k = clipped_linear(c, x, prefix + "k_proj", "qkv.k", heads)
    v = clipped_linear(c, x, prefix + "v_proj", "qkv.v", heads)
    q = elementwise(q, "scale", prefix + "per_dim_scale", "other", c.d_head)
    distances = linear(
        Data("sines of the distance", (x,), ("distances", c.d_model)), prefix + "relative_k_proj", "position", heads
    )
    k = Data("with distances", (k, distances), k.shape)
    return clipped_linear(c, attend(q, k, v, cached=()), prefix + "post", "output_projection", c.d_model)


def light_convolution(c: Any, x: Data, prefix: str) -> Data:
    h = clipped_linear(c, norm(x, prefix + "pre_layer_norm"), prefix + "linear_start", "mixer", 2 * c.d_model)
    kept, gate = split(h, c.d_model, c.d_model)
    h = elementwise(
        kept * activate(gate, "sigmoid"),
        "convolve",
        prefix + "depthwise_conv1d.weight",
        "mixer",
        c.d_model,
        1,
        c.d_conv,
    )
    h = activate(norm(h, prefix + "conv_norm"), "silu")
    return x + clipped_linear(c, h, prefix + "linear_end", "mixer", c.d_model)


def whole_patches(js: ConfigJson, c: FieldValues) -> None:
    size = c["patch_size"] * c["n_pooled"]
    if (found := js.get("model_patch_size", size)) != size:
        raise ParamcountError(f"= {describe_value(found)}", where="model_patch_size", expected=f"{size}")


class Gemma4Patches(Sizes):
    """How the 12B reads pixels."""

    section = "vision_config"
    conditions = (whole_patches,)

    patch_size: Positive = hf("patch_size", absent=16)
    n_pooled: Positive = hf("pooling_kernel_size", absent=3)  # patches read together, across as well as down
    d_model: Positive = hf("mm_embed_dim", absent=3840)
    n_places: Positive = hf("mm_posemb_size", absent=1120)
    d_out: Positive = hf("output_proj_dims", absent=3840)

    def check(c) -> None:
        if c.d_out != c.d_model:
            raise ParamcountError(
                f"= {c.d_out} is not " + FieldName("d_model") + f" = {c.d_model}",
                where=FieldName("d_out"),
                expected=f"{c.d_model}",
                sizes=(c.d_out, c.d_model),
            )


def samples(js: ConfigJson, c: FieldValues) -> Any:
    """One number under four names, of which the reference takes the last that stands in the file."""
    found = js.get("audio_embed_dim", 640)
    for key in js:
        if key in ("hidden_size", "output_proj_dims", "audio_samples_per_token"):
            found = js[key]
    return found


class Gemma4Samples(Sizes):
    """How the 12B reads sound: so many samples at once."""

    section = "audio_config"
    conditions = (not_null("hidden_size", "output_proj_dims", "audio_samples_per_token"),)

    n_samples: Positive = derived(samples)


class Gemma4UnifiedTextOf(Gemma4UnifiedText):
    """The language model of a config that has other inputs too."""

    section = "text_config"


class Gemma4Unified(Gemma4UnifiedText):
    """Source: modeling_gemma4_unified.py of the reference."""

    reference = "Gemma4UnifiedForConditionalGeneration"
    base_model = "Gemma4UnifiedModel"
    prefix = "model.language_model."
    section = "text_config"

    tie_word_embeddings: Flag = hf("/tie_word_embeddings", absent=True)
    vision: Gemma4Patches | None
    audio: Gemma4Samples | None

    def forward(c, tokens: Data) -> Data:
        others = []
        if c.vision:
            side = c.vision.patch_size * c.vision.n_pooled
            image = block(
                given("pixels", "patches", 3 * side * side),
                "model.vision_embedder.",
                lambda x: read_patches(c.vision, x),
                part="vision",
            )
            others.append(block(image, "model.embed_vision.", lambda x: project(c, x), part="projector"))
        if c.audio:
            sound = given("samples", "frames", c.audio.n_samples)
            others.append(block(sound, "model.embed_audio.", lambda x: project(c, x), part="projector"))
        return c.read(tokens, *others)


def read_patches(c: Any, x: Data) -> Data:
    x = linear(norm(x, "patch_ln1", bias=True), "patch_dense", "embedding", c.d_model, bias=True)
    x = elementwise(norm(x, "patch_ln2", bias=True), "positions", "pos_embedding", "position", c.n_places, 2, c.d_model)
    return norm(x, "pos_norm", bias=True)
