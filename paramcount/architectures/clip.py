"""CLIP: an encoder of images and one of texts, whose vectors are compared; and each of them alone."""

from typing import Any

from paramcount.declare import Data, ops, parts, sizes

SECTIONS = {"text_config_dict": "text_config", "vision_config_dict": "vision_config"}


def project_text(c: Any, x: Data) -> Data:
    """The vector of the last token, which ends the text, as wide as that of an image."""
    x = ops.pool_text(x, "last position")
    return parts.project_apart(x, "text_projection", c.d_projected)


def project_image(c: Any, x: Data) -> Data:
    """The normed vector of the class token, as wide as that of a text."""
    x = ops.second_value(x, c.vision.d_model)
    return parts.project_apart(x, "visual_projection", c.d_projected)


class SeeingClip(parts.ClipVision):
    """The encoder of a model that cannot run without an image."""

    conditions = (parts.has_patches,)


class ClipPair(parts.ImageAndText):
    """Source: arXiv:2103.00020, section 2.3; CLIPModel of the reference."""

    reference = "CLIPModel"
    replaced_sections = SECTIONS

    vision: SeeingClip
    text: parts.ClipText
    d_projected: sizes.Positive = sizes.hf("projection_dim")

    def represent_image(c) -> Data:
        return project_image(c, parts.encode_image(c, c.vision_prefix))

    def represent_text(c, tokens: Data) -> Data:
        return project_text(c, parts.encode_text(c, tokens, c.text_prefix))


class ClipClassifier(parts.ImageAlone):
    """Labels out of the mean of an image's patches. Source: CLIPForImageClassification of the reference."""

    reference = "CLIPForImageClassification"
    model_types = ("clip.CLIPForImageClassification",)

    vision: SeeingClip
    n_labels: sizes.Natural = sizes.derived(lambda js, c: parts.count_labels(js))

    def forward(c, tokens: Data) -> Data:
        patches = ops.other_tokens(parts.encode_image(c, c.vision_prefix))
        return parts.classify_tokens(c, ops.pool_text(patches, "mean"))


class WholeClipVision(SeeingClip):
    section = None


class WholeClipText(parts.ClipText):
    section = None


class ClipImages(parts.ImageAlone):
    """Source: CLIPVisionModel of the reference."""

    reference = "CLIPVisionModel"
    model_types = ("clip_vision_model",)
    reference_names = {"vision_model.": ""}

    vision: WholeClipVision


class ClipProjectedImages(ClipImages):
    """Source: CLIPVisionModelWithProjection of the reference."""

    reference = "CLIPVisionModelWithProjection"
    model_types = ("clip_vision_model.CLIPVisionModelWithProjection",)
    reference_names = {}

    d_projected: sizes.Positive = sizes.hf("projection_dim")

    def forward(c, tokens: Data) -> Data:
        return project_image(c, super().forward(tokens))


class ClipTexts(parts.TextAlone):
    """Source: CLIPTextModel of the reference."""

    reference = "CLIPTextModel"
    model_types = ("clip_text_model",)
    reference_names = {"text_model.": ""}

    text: WholeClipText


class ClipProjectedTexts(ClipTexts):
    """Source: CLIPTextModelWithProjection of the reference."""

    reference = "CLIPTextModelWithProjection"
    model_types = ("clip_text_model.CLIPTextModelWithProjection",)
    reference_names = {}

    d_projected: sizes.Positive = sizes.hf("projection_dim")

    def forward(c, tokens: Data) -> Data:
        return project_text(c, super().forward(tokens))
