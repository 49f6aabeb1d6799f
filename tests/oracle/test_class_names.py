"""The model type of every class that paramcount supports is the one of the reference's config class."""

from __future__ import annotations

import pytest

from paramcount.architectures.classes import model_types

pytestmark = pytest.mark.oracle
transformers = pytest.importorskip(
    "transformers", reason="the oracle tests need transformers: pip install transformers==5.23.0"
)


def test_the_reference_maps_every_class_to_the_same_model_type() -> None:
    theirs = {
        cls: getattr(transformers, cls).config_class.model_type for cls in model_types() if hasattr(transformers, cls)
    }
    assert len(theirs) > 200
    assert theirs == {cls: model_types()[cls] for cls in theirs}
