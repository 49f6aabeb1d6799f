"""Audio Spectrogram Transformer: the layers of DeiT on overlapping patches of mel frames."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName

PREFIX = "audio_spectrogram_transformer."


def count_patches(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """Of all bands and frames.

    Raises: ParamcountError if there are fewer bands or frames than a patch has.
    """
    found = 1
    for field, stride in (("n_mels", "band_stride"), ("n_frames", "frame_stride")):
        if c[field] < c["patch_size"]:
            raise sizes.make_value_error(c[field], FieldName(field), f"at least patch_size = {c['patch_size']}")
        found *= (c[field] - c["patch_size"]) // c[stride] + 1
    return found


class SpectrogramEncoder(parts.DeiT):
    model_types = ()  # type: ignore[assignment]  # that of the class around it
    config_class = "ASTConfig"
    modules = {
        stored.removeprefix("encoder."): (names[0].removeprefix("encoder."),)
        for stored, names in parts.vit.MODULES.items()
    }

    n_channels = sizes.constant(1)
    d_pooled = sizes.constant(0)
    band_stride: sizes.Positive = sizes.hf("frequency_stride")
    frame_stride: sizes.Positive = sizes.hf("time_stride")
    n_mels: sizes.Positive = sizes.hf("num_mel_bins")
    n_frames: sizes.Positive = sizes.hf("max_length")
    n_patches: sizes.Positive = sizes.derived(count_patches, late=True)

    pooler_activation = "tanh"

    def embed(c, frames: Data) -> Data:
        name, d = "embeddings.patch_embeddings.projection", c.d_model
        x = ops.spectrogram_patches(frames, name, c.n_patches, d, c.patch_size, c.band_stride, c.frame_stride)
        return ops.add_positions(c.add_tokens(x), "embeddings.position_embeddings", 1, c.n_patches + c.n_tokens, d)

    def pool(c, x: Data) -> Data:
        """The mean of the class token and the one for distillation."""
        return ops.scale_by(ops.first_token(x) + ops.first_token(ops.other_tokens(x)), 0.5)


def classify_sound(c: Any, x: Data) -> Data:
    h = ops.layer_norm(ops.second_value(x, c.encoder.d_model), "classifier.layernorm", c.encoder.norm_eps)
    return ops.linear(h, "classifier.dense", "other", c.n_labels, bias=True)


class AudioSpectrogramTransformer(sizes.Sizes):
    """Source: arXiv:2104.01778, section 2.1; modeling_audio_spectrogram_transformer.py of the reference."""

    reference = "ASTModel"
    model_types = ("audio-spectrogram-transformer",)
    base_model = ""
    task_head_prefix = "AST"
    task_heads: ClassVar[sizes.TaskHeads] = {
        "ForAudioClassification": parts.TaskHead(classify_sound, parts.tasks.LABELS)
    }

    encoder: SpectrogramEncoder

    def forward(c, tokens: Data) -> Data:
        """Mel frames to states of the patches; beside them one vector for the sound."""
        frames = ops.given("mel frames", c.encoder.n_frames, c.encoder.n_mels)
        return ops.block(frames, PREFIX, c.encoder.forward, part="audio")

    body = forward
