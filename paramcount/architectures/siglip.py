"""SigLIP 1 and 2: an encoder of images and one of texts, whose vectors are compared; and each of them alone."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


class SeeingSiglip(parts.SiglipVision):
    """The encoder of a model that cannot run without an image."""

    conditions = (*parts.SiglipVision.conditions, parts.has_patches)


class Siglip(parts.ImageAndText):
    """Source: arXiv:2303.15343; SiglipModel of the reference."""

    reference = "SiglipModel"

    vision: SeeingSiglip
    text: parts.SiglipText

    def represent_image(c) -> Data:
        return ops.second_value(parts.encode_image(c, c.vision_prefix), c.vision.d_model)

    def represent_text(c, tokens: Data) -> Data:
        return ops.second_value(parts.encode_text(c, tokens, c.text_prefix), c.text.d_projected)

    def scale(c, x: Data) -> Data:
        x = ops.multiply_vector(x, "logit_scale", "other", 1, function="exp")
        return ops.add_vector(x, "logit_bias", "other", 1)

    def check(c: Any) -> None:
        if not c.vision.pooling_head:
            raise ParamcountError("= false leaves no vector to compare", where="vision_use_head", expected="true")
        if c.text.d_projected != c.vision.d_model:
            found = f"= {c.text.d_projected} is compared with " + FieldName("vision.d_model") + f" = {c.vision.d_model}"
            raise ParamcountError(found, where=FieldName("text.d_projected"), expected=f"{c.vision.d_model}")


class SiglipClassifier(parts.ImageAlone):
    """Labels out of the mean of an image's patches. Source: SiglipForImageClassification of the reference."""

    reference = "SiglipForImageClassification"
    model_types: ClassVar[tuple[str, ...]] = ("siglip.SiglipForImageClassification",)

    vision: SeeingSiglip
    n_labels: sizes.Positive = sizes.derived(lambda js, c: parts.count_labels(js))

    def forward(c, tokens: Data) -> Data:
        return parts.classify_tokens(c, ops.pool_text(parts.encode_image(c, c.vision_prefix), "mean"))


class WholeSiglipVision(SeeingSiglip):
    section = None


class WholeSiglipText(parts.SiglipText):
    section = None


class SiglipImages(parts.ImageAlone):
    """Source: SiglipVisionModel of the reference."""

    reference = "SiglipVisionModel"
    model_types = ("siglip_vision_model",)
    reference_names = {"vision_model.": ""}

    vision: WholeSiglipVision


class SiglipTexts(parts.TextAlone):
    """Source: SiglipTextModel of the reference."""

    reference = "SiglipTextModel"
    model_types = ("siglip_text_model",)
    reference_names = {"text_model.": ""}

    text: WholeSiglipText


class Siglip2(Siglip):
    """Source: arXiv:2502.14786; Siglip2Model of the reference, of the releases whose images may have any shape."""

    reference = "Siglip2Model"
    model_types = ("siglip2",)

    vision: parts.Siglip2Vision  # type: ignore[assignment]
    text: parts.Siglip2Text


class Siglip2Classifier(SiglipClassifier):
    """Source: Siglip2ForImageClassification of the reference."""

    reference = "Siglip2ForImageClassification"
    model_types = ("siglip2.Siglip2ForImageClassification",)

    vision: parts.Siglip2Vision  # type: ignore[assignment]


class WholeSiglip2Vision(parts.Siglip2Vision):
    section = None


class WholeSiglip2Text(parts.Siglip2Text):
    section = None


class Siglip2Images(parts.ImageAlone):
    """Source: Siglip2VisionModel of the reference."""

    reference = "Siglip2VisionModel"
    model_types = ("siglip2_vision_model",)
    reference_names = {"vision_model.": ""}

    vision: WholeSiglip2Vision


class Siglip2Texts(parts.TextAlone):
    """Source: Siglip2TextModel of the reference."""

    reference = "Siglip2TextModel"
    model_types = ("siglip2_text_model",)
    reference_names = {"text_model.": ""}

    text: WholeSiglip2Text
