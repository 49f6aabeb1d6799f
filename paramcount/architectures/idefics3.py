"""Idefics 3 and SmolVLM: SigLIP's vision encoder without its pooling head.

Squares of patches become one vector through one matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import SerializeAsAny

from paramcount.flow import Data, block, given, linear
from paramcount.parts.composite import with_language
from paramcount.parts.siglip import SiglipVision
from paramcount.sizes import Condition, Flag, Positive, Sizes, derived, hf

NAMES = ("model.", "model.text_model.")


class Idefics3Vision(SiglipVision):
    """The sizes of the tower."""

    conditions: ClassVar[tuple[Condition, ...]] = ()
    defaults: ClassVar[Mapping[str, Any]] = {"d_model": 1152, "n_heads": 16, "patch_size": 32}

    pooling_head: Flag = derived(lambda js, c: False)


class Idefics3(Sizes):
    """Source: arXiv:2408.12637, section 4.1."""

    reference: ClassVar[str] = "Idefics3ForConditionalGeneration"

    language: SerializeAsAny[Sizes]
    vision: Idefics3Vision
    merge_size: Positive = hf("scale_factor", absent=2)

    def forward(c, tokens: Data) -> Data:
        return with_language(c, tokens, seen(c), head=True, moved=NAMES)

    def body(c, tokens: Data) -> Data:
        return with_language(c, tokens, seen(c), head=False, moved=NAMES)


class SmolVLM(Idefics3):
    """Source: arXiv:2504.05299, section 2."""

    reference: ClassVar[str] = "SmolVLMForConditionalGeneration"


def seen(c: Any) -> Data:
    """Pixels to vectors of the language model's width."""
    eyes = c.vision
    pixels = given("pixels", "patches", eyes.n_channels, eyes.patch_size, eyes.patch_size)
    image = block(pixels, "model.vision_model.", eyes.forward, part="vision")
    return block(image, "model.connector.", lambda x: project(c, x), part="projector")


def project(c: Any, x: Data) -> Data:
    x = Data("merge", (x,), ("image", c.merge_size * c.merge_size * c.vision.d_model))
    return linear(x, "modality_projection.proj", "projector", c.language.d_model)
