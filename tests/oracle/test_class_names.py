"""The model type of every class that paramcount supports is the one of the reference's config class."""

from __future__ import annotations

import transformers

from paramcount.architectures.classes import model_types


def test_the_reference_maps_every_class_to_the_same_model_type() -> None:
    theirs = {
        cls: getattr(transformers, cls).config_class.model_type for cls in model_types() if hasattr(transformers, cls)
    }
    assert len(theirs) > 200
    assert theirs == {cls: model_types()[cls] for cls in theirs}
