"""Nemotron 3 Nano Omni: C-RADIO for images and videos and Parakeet's encoder for sounds, before Nemotron-H."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

FRAMES = "video_temporal_patch_size"


def same_frames(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Both the model and its encoder state how many frames of a video are one patch."""
    section = js.get("vision_config")
    expected, found = js.get(FRAMES, 2), 2 if section is None else section.get(FRAMES)
    if expected != found or type(found) is not int or found < 2:
        problem = "is missing" if found is None else f"= {describe_value(found)}"
        expected_text = f"{FRAMES} = {describe_value(expected)}" if expected != found else "at least 2"
        raise ParamcountError(problem, where=f"vision_config.{FRAMES}", expected=expected_text)


def fitting_patches(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    expected, found = c["vision"]["d_model"], js.get("vision_hidden_size", js.get("vit_hidden_size", 1280))
    if found != expected:
        raise sizes.make_value_error(found, "vision_hidden_size", f"vision_config.hidden_size = {expected}")


class OmniEars(parts.ParakeetEars):
    """The encoder, and the projector behind it. `d_projector`: the hidden size of that."""

    config_class = "ParakeetEncoderConfig"

    d_projector: sizes.Positive = sizes.hf("projection_hidden_size")
    projector_bias: sizes.Flag = sizes.hf("projection_bias", null=False)

    attention_bias: sizes.Flag = sizes.hf("attention_bias", absent=False)

    is_scaled = sizes.setting("scale_input", default=False)


class NemotronHOmni(parts.Multimodal):
    """Source: modeling_nemotron_h_omni.py of the reference. `n_merged`: patches that become one vector.

    `last_norm`: a model with multi-token-prediction layers also has a norm behind its vision encoder.
    """

    reference = "NemotronH_Omni_Reasoning_V3"
    sections = sizes.Sections(
        "nemotron_h",
        tie_rule="text",
        other_sections=("vision_config", "audio_config"),
        supported_types=("nemotron_h",),
    )
    older_sections = {"llm_config": "text_config", "sound_config": "audio_config"}
    reference_names = {
        "language_model.backbone.": "language_model.model.",
        "vision_model.radio_model.model.blocks.": "vision_model.encoder.layer.",
    }
    conditions = (same_frames, fitting_patches)
    linear_heads = ("lm_head.weight",)
    modules = {
        "mlp1.1": ("multi_modal_projector.linear_1",),
        "mlp1.3": ("multi_modal_projector.linear_2",),
        "sound_projection.linear1": ("embed_audio.linear_1",),
        "sound_projection.linear2": ("embed_audio.linear_2",),
    }
    encoder_prefix = "vision_model."
    projector_prefix = "mlp1."
    moved = None

    vision: parts.RadioVision
    audio: OmniEars | None
    n_merged: sizes.Positive = sizes.derived(lambda js, c: int(1 / js.get("downsample_ratio", 0.5)) ** 2)
    d_projector: sizes.Positive = sizes.hf("projector_hidden_size")
    last_norm: sizes.Flag = sizes.derived(
        lambda js, c: (js.get("text_config") or js.get("llm_config") or {}).get("num_nextn_predict_layers", 0) > 0
    )

    image_token = sizes.setting("image_token_id", "img_context_token_id", default=None)
    audio_token = sizes.setting("audio_token_id", "sound_context_token_id", default=None)

    def see(c: Any) -> Data:
        return c.read_pixels(c.vision.image())

    def see_more(c: Any) -> Sequence[tuple[Data, int | ops.Unknown]]:
        """A video, which has a matrix of its own for its patches, and a sound."""
        found = [(c.read_pixels(c.vision.video(), parts.VIDEO), c.image_token)]
        if c.audio is not None:
            frames = ops.given("log-mel frames", "frames", c.audio.n_mels)
            sound = ops.block(frames, "sound_encoder.encoder.", c.audio.forward, part="audio")
            found.append((ops.block(sound, "sound_projection.", c.project_sound, part="projector"), c.audio_token))
        return found

    def read_pixels(c: Any, pixels: Data, name: str = "embedder") -> Data:
        """An image to vectors of the language model's size; a video, by the same weights but for its patches."""
        vision, side = c.vision, c.vision.patch_size

        def run(x: Data, prefix: str, body: Callable[..., Data], part: str, *reads: Data) -> Data:
            x = ops.block(x, prefix, body, reads=reads, part=part)
            return ops.tie_weights(x, prefix, own=(parts.VIDEO + ".weight",)) if name == parts.VIDEO else x

        x = run(pixels, c.encoder_prefix, lambda x: vision.forward(x, name), "vision")
        if c.last_norm:
            x = run(x, "vision_final_", lambda x: ops.layer_norm(x, "layernorm", vision.norm_eps), "vision")
        return run(x, c.projector_prefix, c.project, "projector", ops.patch_places(pixels, side, side))

    def project(c: Any, x: Data, *places: Data) -> Data:
        return c.enlarge(ops.merge_squares(x, c.n_merged, *places), ("0", "1", "3"), c.d_projector)

    def project_sound(c: Any, x: Data) -> Data:
        names = ("norm", "linear1", "linear2")
        return c.enlarge(x, names, c.audio.d_projector, bias=c.audio.projector_bias)

    def enlarge(c: Any, x: Data, names: tuple[str, str, str], d_hidden: ops.Size, *, bias: bool = False) -> Data:
        h = ops.linear(ops.rms_norm(x, names[0], 1e-5), names[1], "projector", d_hidden, bias=bias)
        return ops.linear(ops.activate(h, "relu2"), names[2], "projector", c.language.d_model, bias=bias)
