"""Models of images alone are refused by name; encoders of images that multimodal models are made of are counted."""

from __future__ import annotations

import pytest

import paramcount as pc
from paramcount.architectures import ARCHITECTURES
from paramcount.huggingface.config import list_image_types


@pytest.mark.parametrize(
    ("model_type", "cls"),
    [
        ("vit", "ViTForImageClassification"),
        ("deit", "DeiTForImageClassification"),
        ("convnext", "ConvNextForImageClassification"),
        ("swin", "SwinModel"),
        ("dinov2", "Dinov2Model"),
        ("sam", "SamModel"),
        ("sam2_vision_model", "Sam2VisionModel"),
        ("detr", "DetrForObjectDetection"),
        ("videomae", "VideoMAEForPreTraining"),
        ("vit_mae", "ViTMAEForPreTraining"),
    ],
)
def test_a_model_of_images_alone_is_refused_by_name(model_type: str, cls: str) -> None:
    with pytest.raises(pc.ParamcountError) as caught:
        pc.count({"model_type": model_type, "architectures": [cls], "hidden_size": 768})
    assert str(caught.value) == (
        f"model_type = {model_type} is a model of images alone, which paramcount does not count "
        "(expected a model that reads or writes text or speech)"
    )


@pytest.mark.parametrize("model_type", ["clip", "siglip", "aimv2", "sam3", "blip", "llama", "whisper", "clipseg"])
def test_a_model_that_reads_text_or_speech_is_none_of_them(model_type: str) -> None:
    assert model_type not in list_image_types()


def test_the_encoders_of_images_that_are_counted_are_parts_of_multimodal_models() -> None:
    known = {"clip_vision_model", "siglip_vision_model", "siglip2_vision_model", "perceiver"}
    assert list_image_types() & set(ARCHITECTURES) == known
