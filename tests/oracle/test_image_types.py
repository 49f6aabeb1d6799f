"""The list of model types of images alone is what the reference's mappings say."""

from __future__ import annotations

from tests.oracle.differential import silence
from tests.oracle.image_types import PATH, format_types, list_image_types


def test_the_model_types_of_images_alone_are_those_of_the_reference() -> None:
    """Otherwise: python -m tests.oracle.image_types"""
    silence()
    assert PATH.read_text(encoding="utf-8") == format_types(list_image_types())
