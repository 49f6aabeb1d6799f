"""Models of images alone are refused by name; encoders of images that multimodal models are made of are counted."""

from __future__ import annotations

import pytest

from paramcount.architectures import ARCHITECTURES
from paramcount.huggingface.config import list_image_types


@pytest.mark.parametrize("model_type", ["clip", "siglip", "aimv2", "sam3", "blip", "llama", "whisper", "clipseg"])
def test_a_model_that_reads_text_or_speech_is_none_of_them(model_type: str) -> None:
    assert model_type not in list_image_types()


def test_the_encoders_of_images_that_are_counted_are_parts_of_multimodal_models() -> None:
    known = {"clip_vision_model", "siglip_vision_model", "siglip2_vision_model", "perceiver"}
    assert list_image_types() & set(ARCHITECTURES) == known
