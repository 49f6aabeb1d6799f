"""CLAP: an encoder of sounds and one of texts, whose vectors are compared; and each of them alone."""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

PROJECTION = ("linear1", "linear2")


def one_map(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference reads one map of a sound, whatever it fuses."""
    if c["fused"] and js.get("fusion_type") == "channel_map":
        raise sizes.make_value_error("channel_map", "fusion_type", "null, for enable_fusion = true")


def windows_fit(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Each stage with layers has a window of patches a side."""
    size, stride = js.get("spec_size", 256), js.get("patch_stride", (4, 4))
    across = size // (min(stride) if isinstance(stride, (list, tuple)) else stride)
    last = max((i for i, depth in enumerate(c["depths"]) if depth), default=0)
    if across // 2**last < c["window_size"]:
        problem = f"= {size} leaves {across // 2**last} patches a side for windows of {c['window_size']}"
        raise ParamcountError(problem, where="spec_size", expected=f"at least {c['window_size']} patches in each stage")


class ClapAudio(parts.Swin):
    """A Swin Transformer on an image of a sound: mel frames, cut and laid one below the other.

    Source: arXiv:2202.00874, section 2.1; ClapAudioModel of the reference.
    """

    model_types = ()  # type: ignore[assignment]  # those of classes around it
    config_class = "ClapAudioConfig"
    section: ClassVar[str | None] = "audio_config"
    modules = {}
    has_index = True
    unused_keys = ("num_classes", "num_hidden_layers")
    conditions = (*parts.Swin.conditions, one_map, windows_fit)

    n_channels: sizes.Positive = sizes.hf("patch_embed_input_channels")
    patch_size: sizes.Positive = sizes.hf("patch_size")
    n_patches = sizes.constant(0)
    d_embedding: sizes.Positive = sizes.hf("patch_embeds_hidden_size")
    heads: sizes.Widths = sizes.hf("num_attention_heads")
    absolute_positions = sizes.constant(False)
    n_mels: sizes.Positive = sizes.hf("num_mel_bins")
    norms_patches: sizes.Flag = sizes.hf("enable_patch_layer_norm")
    fused: sizes.Flag = sizes.hf("enable_fusion")
    d_fused: sizes.Natural = sizes.derived(lambda js, c: c["d_embedding"] // max(js.get("aff_block_r", 4), 1))

    def hear(c, prefix: str = "audio_model.") -> Data:
        """Mel frames to one vector. Names of weights stand behind "audio_"."""
        frames = ops.given("log-mel frames", "frames", c.n_mels)
        return ops.block(frames, prefix + "audio_", c.represent, part="audio")

    def represent(c, frames: Data) -> Data:
        x = ops.batch_norm(frames, "encoder.batch_norm", 1e-5)
        pixels = Data("fold into an image", (x,), (c.n_channels, "height", "width"))
        name, side = "encoder.patch_embed.", c.patch_size
        x = parts.embed_patches(pixels, name + "proj", c.d_embedding, side, bias=True)
        if c.fused:
            x = c.fuse(x, name)
        x = ops.layer_norm(x, name + "norm", 1e-5) if c.norms_patches else x
        for stage, depth in enumerate(c.depths):
            x = c.stage(x, pixels, stage, side) if depth else x
            if stage + 1 < len(c.depths):
                x, side = c.narrow(x, pixels, stage, side), side * 2
        return ops.pool_text(ops.layer_norm(x, "encoder.norm", 1e-5), "mean")

    def narrow(c, x: Data, pixels: Data, stage: int, side: int) -> Data:
        """Squares of patches to one each."""
        name = f"encoder.layers.{stage}.downsample."
        squares = ops.merge_squares(x, 4, ops.patch_places(pixels, side, side), columns_first=True)
        squares = ops.layer_norm(squares, name + "norm", 1e-5)
        return ops.linear(squares, name + "reduction", "mixer", c.d_embedding * 2 ** (stage + 1))

    def fuse(c, x: Data, name: str) -> Data:
        """A part of a longer sound is mixed into the whole of it. Source: arXiv:2211.06687, section 3.3."""
        d, inner, area = c.d_embedding, c.d_fused, (c.patch_size, 3 * c.patch_size)
        kernel = ops.Weight(name + "mel_conv2d.weight", "mixer", (d, c.n_channels, *area))
        weights = (kernel, ops.Weight(name + "mel_conv2d.bias", "mixer", (d,)))
        part = Data("patches of a part", (x,), x.shape, weights)
        found = []
        for branch, first, pooled in (("local_att", 0, False), ("global_att", 1, True)):
            h = Data("mean of all patches", (part,), part.shape) if pooled else part
            for i, width in ((first, inner), (first + 3, d)):
                h = convolve_points(h, f"{name}fusion_model.{branch}.{i}", width)
                h = ops.batch_norm(h, f"{name}fusion_model.{branch}.{i + 1}", 1e-5)
                h = ops.activate(h, "relu") if i == first else h
            found.append(h)
        return Data("mix", (x, *found), x.shape)


def convolve_points(x: Data, name: str, width: ops.Size) -> Data:
    """A matrix for each patch, which the reference stores as the kernel of a convolution."""
    kernel = ops.Weight(name + ".weight", "mixer", (width, x.shape[-1], 1, 1))
    weights = (kernel, ops.Weight(name + ".bias", "mixer", (width,)))
    return Data("convolution over single patches", (x,), (*x.shape[:-1], width), weights)


class ClapText(parts.LikeRoberta, parts.MaskedEncoder):
    """RoBERTa's layers with a pooler, whose positions and segments files have, too."""

    config_class = "ClapTextConfig"
    section: ClassVar[str | None] = "text_config"
    prefix = ""
    pooled: ClassVar[bool] = True

    n_token_types: sizes.Positive = sizes.hf()

    def represent(c, tokens: Data, prefix: str = "text_model.") -> Data:
        return ops.block(tokens, prefix, c.encode_text, reads=c.list_inputs(tokens), part="encoder")

    def encode_text(c, tokens: Data, *inputs: Data) -> Data:
        x = c.read(tokens, inputs, (), head=False)
        for name in ("position_ids", "token_type_ids"):
            x = ops.elementwise(x, "stored ids", f"embeddings.{name}", "position", 1, c.n_positions, role="buffer")
        return ops.second_value(x, c.d_model)


class WholeClapAudio(ClapAudio):
    section = None


def stages_agree_alone(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Without a projection nothing reads the size of what comes out."""
    parts.stages_agree({key: value for key, value in js.items() if key != "hidden_size"}, c)


class UnprojectedClapAudio(WholeClapAudio):
    conditions = (stages_agree_alone, one_map, windows_fit)


class WholeClapText(ClapText):
    section = None


def project(c: Any, x: Data, name: str) -> Data:
    def build(x: Data) -> Data:
        h = ops.activate(ops.linear(x, PROJECTION[0], "projector", c.d_projected, bias=True), c.projection_activation)
        return ops.linear(h, PROJECTION[1], "projector", c.d_projected, bias=True)

    return ops.block(x, name + "_projection.", build, part="projector")


class Projected(sizes.Sizes):
    base_model: ClassVar[str | None] = ""

    d_projected: sizes.Positive = sizes.hf("projection_dim")

    projection_activation: ClassVar = sizes.setting("projection_hidden_act", usual="relu")


class Clap(Projected):
    """Source: arXiv:2211.06687, section 3; ClapModel of the reference."""

    reference = "ClapModel"
    unused_keys = ("hidden_size", "num_hidden_layers")

    audio: ClapAudio
    text: ClapText

    def forward(c, tokens: Data) -> Data:
        """How similar a text and a sound are, scaled in two ways."""
        text, sound = project(c, c.text.represent(tokens), "text"), project(c, c.audio.hear(), "audio")
        text, sound = ops.plain_norm(text, "l2", 0.0), ops.plain_norm(sound, "l2", 0.0)
        found = ops.similarity(text, sound)
        scaled = (ops.multiply_vector(found, f"logit_scale_{name}", "other", function="exp") for name in "ta")
        return ops.bundle(*scaled)


class ClapTexts(sizes.Sizes):
    """Source: ClapTextModel of the reference."""

    reference = "ClapTextModel"
    model_types = ("clap_text_model",)
    unused_keys = ("projection_dim",)
    base_model = ""

    text: WholeClapText

    def forward(c, tokens: Data) -> Data:
        return c.text.represent(tokens, "")


class ClapProjectedTexts(Projected):
    """Source: ClapTextModelWithProjection of the reference."""

    reference = "ClapTextModelWithProjection"
    model_types = ("clap_text_model.ClapTextModelWithProjection",)

    text: WholeClapText

    def forward(c, tokens: Data) -> Data:
        return project(c, c.text.represent(tokens), "text")


class ClapSounds(sizes.Sizes):
    """Source: ClapAudioModel of the reference."""

    reference = "ClapAudioModel"
    model_types = ("clap_audio_model",)
    unused_keys = ("hidden_size", "projection_dim")
    base_model = ""

    audio: UnprojectedClapAudio

    def forward(c, tokens: Data) -> Data:
        return c.audio.hear("")


class ClapProjectedSounds(Projected):
    """Source: ClapAudioModelWithProjection of the reference."""

    reference = "ClapAudioModelWithProjection"
    model_types = ("clap_audio_model.ClapAudioModelWithProjection",)

    audio: WholeClapAudio

    def forward(c, tokens: Data) -> Data:
        return project(c, c.audio.hear(), "audio")
